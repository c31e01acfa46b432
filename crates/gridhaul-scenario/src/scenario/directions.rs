//! Numbers of the link directions, one for each member of a group, in the order of the file.

use super::{Diagnostic, Direction, Hop, LinkQuality, LinkTraceContent, Scenario};
use crate::units::{BitRate, Instant};

/// Content of the files of the directions of each row, in the order of the rows; empty if no files
/// have been read.
#[derive(Debug, Clone, Default)]
pub struct LinkFiles {
    /// Traces.
    pub traces: Vec<Option<LinkTraceContent>>,
    /// Qualities that are in a file.
    pub qualities: Vec<Option<LinkQuality>>,
}

/// Numbers for the directions of all links. Equal directions, those of the members of a group,
/// share a row of the answer.
#[derive(Debug, Clone)]
pub struct Directions {
    /// Name and number of equal directions of each row.
    rows: Vec<(String, u64)>,
    /// Mean rate of the directions of each row over the measured time.
    rates: Vec<BitRate>,
    files: LinkFiles,
    /// Row of each direction.
    row_of: Vec<u32>,
    /// Name and number of equal directions of the row of each class of a scheduler.
    class_rows: Vec<(String, u64)>,
    /// Mean rate of the direction of each of these rows.
    class_rates: Vec<BitRate>,
    /// Row of each class of each direction, counted after `rows`.
    row_of_class: Vec<u32>,
    /// For each link, forward and reverse: number of the direction of its first member.
    first: Vec<[Option<u32>; 2]>,
}

impl Directions {
    /// Numbers the directions of a scenario. Files of links are not read: the mean rate of such a
    /// direction is 0.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        Self::with_files(scenario, LinkFiles::default())
    }

    /// Numbers the directions of a scenario, with the content of the files of each row.
    #[must_use]
    pub fn with_files(scenario: &Scenario, files: LinkFiles) -> Self {
        let [start, end] = [scenario.warmup, scenario.duration].map(|time| Instant::ZERO + time);
        let rates = Self::keys(scenario).enumerate().map(|(row, direction)| {
            let quality = files.qualities.get(row).and_then(Option::as_ref);
            match files.traces.get(row).and_then(Option::as_ref) {
                Some(trace) => trace.mean_rate(start, end),
                None => quality
                    .and_then(LinkQuality::mean_rate)
                    .unwrap_or_else(|| direction.mean_rate(scenario)),
            }
        });
        let mut numbered = Self {
            rows: Vec::new(),
            rates: rates.collect(),
            files,
            row_of: Vec::new(),
            class_rows: Vec::new(),
            class_rates: Vec::new(),
            row_of_class: Vec::new(),
            first: Vec::new(),
        };
        for (name, link) in &scenario.link {
            let members = u64::from(scenario.link_members(link));
            let mut first = [None; 2];
            let directions = [("forward", link.forward()), ("reverse", link.reverse())];
            for (index, (suffix, direction)) in directions.into_iter().enumerate() {
                if direction.is_none() {
                    continue;
                }
                first[index] = Some(numbered.row_of.len() as u32);
                numbered.row_of.extend((0..members).map(|_| numbered.rows.len() as u32));
                numbered.rows.push((format!("{name}.{suffix}"), members));
            }
            numbered.first.push(first);
        }
        numbered.add_classes(scenario);
        numbered
    }

    /// Adds a row for each class of a scheduler, after those of all directions.
    fn add_classes(&mut self, scenario: &Scenario) {
        for (row, direction) in Self::keys(scenario).enumerate() {
            let Some(scheduler) = &direction.scheduler else { continue };
            let first = (self.rows.len() + self.class_rows.len()) as u32;
            let (direction, members) = &self.rows[row];
            let classes = scheduler.class.keys();
            self.class_rows.extend(classes.map(|class| (format!("{direction}.{class}"), *members)));
            let count = scheduler.class.len();
            self.class_rates.extend(std::iter::repeat_n(self.rates[row], count));
            for _ in 0..*members {
                self.row_of_class.extend(first..first + count as u32);
            }
        }
    }

    /// Name and number of equal directions of each row of the answer: the rows of directions, and
    /// then those of the classes of schedulers, `<link>.forward.<class>`.
    #[must_use]
    pub fn answer_rows(&self) -> Vec<(String, u64)> {
        self.rows.iter().chain(&self.class_rows).cloned().collect()
    }

    /// Mean rate of the direction of the row of each class.
    #[must_use]
    pub fn class_rates(&self) -> &[BitRate] {
        &self.class_rates
    }

    /// Row of the answer of each class, in the order of the directions and their classes.
    #[must_use]
    pub fn row_of_class(&self) -> &[u32] {
        &self.row_of_class
    }

    /// Name (`<link>.forward` or `<link>.reverse`) and number of equal directions of each row.
    #[must_use]
    pub const fn rows(&self) -> &Vec<(String, u64)> {
        &self.rows
    }

    /// Mean rate of the directions of each row over the measured time; it differs from `rate` with
    /// `rate_change`, `trace` and `quality` only.
    #[must_use]
    pub fn rates(&self) -> &[BitRate] {
        &self.rates
    }

    /// Content of the trace of the directions of a row, if it has been read.
    #[must_use]
    pub fn trace(&self, row: usize) -> Option<&LinkTraceContent> {
        self.files.traces.get(row)?.as_ref()
    }

    /// Quality of the directions of a row that is in a file, if it has been read.
    #[must_use]
    pub fn quality(&self, row: usize) -> Option<&LinkQuality> {
        self.files.qualities.get(row)?.as_ref()
    }

    /// Content of the trace of the direction of this name, if it has been read.
    #[must_use]
    pub fn trace_of(&self, name: &str) -> Option<&LinkTraceContent> {
        self.trace(self.rows.iter().position(|(row, _)| row == name)?)
    }

    /// Row of each direction.
    #[must_use]
    pub fn row_of(&self) -> &[u32] {
        &self.row_of
    }

    /// Numbers of the directions on these hops for member `member` of a group of size `group`.
    pub fn of(&self, hops: &[Hop], member: u64, group: u64) -> impl Iterator<Item = u32> {
        hops.iter().map(move |hop| {
            let first = self.first[hop.link][usize::from(!hop.forward)].unwrap_or(0);
            let row = self.row_of[first as usize] as usize;
            first + assigned_member(member, group, self.rows[row].1) as u32
        })
    }

    /// The keys of the direction of each row, in order.
    pub fn keys(scenario: &Scenario) -> impl Iterator<Item = &Direction> {
        scenario.link.values().flat_map(|link| [link.forward(), link.reverse()]).flatten()
    }

    /// For each direction, the directions whose latency depends on whether it is in use: those with
    /// `load_latency.paired_with`, and those with `drx` on the same link.
    ///
    /// # Errors
    /// `paired_with` names a direction that does not exist; a valid scenario has none.
    pub fn paired(&self, scenario: &Scenario) -> Result<Vec<Vec<u32>>, Diagnostic> {
        let of_row = |row: usize| {
            let rows = self.row_of.iter().enumerate();
            rows.filter(move |(_, of)| **of as usize == row).map(|(number, _)| number as u32)
        };
        let mut paired = vec![Vec::new(); self.row_of.len()];
        for (row, keys) in Self::keys(scenario).enumerate() {
            let latency = keys.load_latency.as_ref();
            let Some(pair) = latency.and_then(|latency| latency.paired_with.as_ref()) else {
                continue;
            };
            let Some(other) = self.rows.iter().position(|(name, _)| name == pair) else {
                let key = format!("link.{}.load_latency.paired_with", self.rows[row].0);
                return Err(Diagnostic::new(key, format!("there is no direction {pair:?}"), ""));
            };
            let own: Vec<u32> = of_row(row).collect();
            for (index, direction) in of_row(other).enumerate() {
                paired[direction as usize].push(own[index.min(own.len() - 1)]);
            }
        }
        for (link, first) in scenario.link.values().zip(&self.first) {
            let sides = [link.forward(), link.reverse()].map(|side| side.and_then(|side| side.drx));
            let members = scenario.link_members(link);
            if let [Some(forward), Some(reverse)] = *first {
                for member in 0..members {
                    let [forward, reverse] = [forward, reverse].map(|first| first + member);
                    if sides[0].is_some() {
                        paired[reverse as usize].push(forward);
                    }
                    if sides[1].is_some() {
                        paired[forward as usize].push(reverse);
                    }
                }
            }
        }
        Ok(paired)
    }
}

/// Index in a group of `other_size` members that member `member` of a group of `size` is assigned
/// to: ⌊i·k/n⌋.
#[must_use]
pub const fn assigned_member(member: u64, size: u64, other_size: u64) -> u64 {
    member * other_size / size
}
