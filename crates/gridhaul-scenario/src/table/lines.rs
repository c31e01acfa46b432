//! The lines of tables.

use std::iter::repeat_n;

use super::TableError;
use super::metric_cursor::MetricCursor;
use crate::answer::{Answer, MemberRows, Metric, Point, Row, Scope};
use crate::units::BaseUnit;

/// A point of an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub label: &'a str,
    pub answer: &'a Answer,
    pub number: usize,
    pub point: &'a Point,
}

/// A flow or a direction of a link at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowLine<'a> {
    pub place: Place<'a>,
    pub kind: &'static str,
    pub row: &'a Row,
}

/// The lines of a point, which are the same in each replication.
#[derive(Debug)]
pub(super) struct RepeatedPoint<'a> {
    pub lines: Vec<RowLine<'a>>,
    /// For each line, the place of the last metric.
    cursors: Vec<MetricCursor>,
    /// Number of replications.
    replications: u32,
}

/// The members of a flow in one replication of a point.
#[derive(Debug)]
pub(super) struct Group<'a> {
    pub place: Place<'a>,
    pub rows: &'a MemberRows,
    /// Number of members.
    pub members: usize,
}

/// A swept key at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct ParameterLine<'a> {
    pub place: Place<'a>,
    pub key: &'a str,
    pub value: &'a str,
    pub label: &'a str,
    /// Column with the number, its unit and the number; `None` for a value that is no number.
    known: Option<(&'a str, BaseUnit, f64)>,
}

/// All points.
pub(super) fn places<'a>(
    answers: &'a [(String, &'a Answer)],
) -> impl Iterator<Item = Place<'a>> + Clone {
    answers.iter().flat_map(|(label, answer)| {
        let points = answer.points.iter().enumerate();
        points.map(|(number, point)| Place { label, answer, number, point })
    })
}

impl<'a> Place<'a> {
    /// The rows of a scope, or all rows.
    pub(super) fn rows(self, scope: Option<Scope>) -> impl Iterator<Item = RowLine<'a>> {
        let flows = self.point.flows.iter().filter(move |_| scope != Some(Scope::Link));
        let links = self.point.links.iter().filter(move |_| scope != Some(Scope::Flow));
        let flows = flows.map(move |row| RowLine { place: self, kind: "flow", row });
        flows.chain(links.map(move |row| RowLine { place: self, kind: "link", row }))
    }

    /// The number of finished replications.
    pub(super) fn replications(self) -> u32 {
        let stored = |row: &Row| row.replications.values().map(|values| values.len() as u32).max();
        let counted = |row: &Row| row.metrics.values().map(|estimate| estimate.n).max();
        let rows = || self.rows(None).map(|line| line.row);
        let found = rows().filter_map(stored).max();
        let found = self.point.replications.or(found);
        found.or_else(|| rows().filter_map(counted).max()).unwrap_or(1).max(1)
    }

    /// Checks that the value of each replication is known.
    pub(super) fn check_replications(self) -> Result<(), TableError> {
        let count = self.replications();
        let is_stored = |line: RowLine<'_>| !line.row.replications.is_empty();
        if count > 1 && !self.point.deterministic && !self.rows(None).any(is_stored) {
            let (answer, point) = (self.label.to_owned(), self.number);
            return Err(TableError::NoReplications { answer, point, count });
        }
        Ok(())
    }
}

impl<'a> ParameterLine<'a> {
    /// The swept keys of a point.
    pub(super) fn of_point(place: Place<'a>) -> impl Iterator<Item = Self> {
        place.point.parameters.iter().map(move |(key, value)| {
            let label = place.point.labels.get(key).map_or("", String::as_str);
            let mut numbers = place.point.numbers.iter();
            let known = numbers.find_map(|(column, number)| {
                let unit =
                    BaseUnit::of_suffix(column.strip_prefix(key.as_str())?.strip_prefix('_')?);
                Some((column.as_str(), unit?, *number))
            });
            Self { place, key, value, label, known }
        })
    }

    /// The value as a number.
    pub(super) fn number(&self) -> Option<f64> {
        self.known.map(|(_, _, number)| number)
    }

    /// The unit of the number; empty without one.
    pub(super) fn unit(&self) -> &'static str {
        self.known.map_or("", |(_, unit, _)| unit.symbol())
    }

    /// The name of the column with the number in other tables; empty without a number.
    pub(super) fn column(&self) -> &'a str {
        self.known.map_or("", |(column, ..)| column)
    }
}

impl<'a> RepeatedPoint<'a> {
    pub(super) fn new(lines: Vec<RowLine<'a>>, replications: u32) -> Self {
        let cursors = vec![MetricCursor::default(); lines.len()];
        Self { lines, cursors, replications }
    }

    /// The number of the replication and the line, of each line of each replication.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u32, RowLine<'a>)> + Clone {
        let lines = &self.lines;
        let of_replication = move |number| lines.iter().map(move |line| (number, *line));
        (0..self.replications).flat_map(of_replication)
    }

    /// The values of a metric, in the order of the lines.
    pub(super) fn values(&mut self, metric: Metric) -> std::vec::IntoIter<Option<f64>> {
        let of_line = self.lines.iter().zip(&mut self.cursors);
        let known: Vec<RowValues<'a>> =
            of_line.map(|(line, cursor)| line.values(metric, cursor)).collect();
        let mut values = Vec::with_capacity(known.len() * self.replications as usize);
        for replication in 0..self.replications as usize {
            values.extend(known.iter().map(|row| match row {
                RowValues::Equal(value) => *value,
                RowValues::Each(values) => values.get(replication).copied().flatten(),
            }));
        }
        values.into_iter()
    }
}

impl<'a> Group<'a> {
    /// The groups of a point.
    pub(super) fn of_point(place: Place<'a>) -> impl Iterator<Item = Self> {
        place.point.members.iter().map(move |rows| {
            let members = rows.metrics.values().map(Vec::len).max().unwrap_or(0);
            Self { place, rows, members }
        })
    }

    /// The number of the replication, for each member.
    pub(super) fn replications(&self) -> impl Iterator<Item = u64> {
        repeat_n(u64::from(self.rows.replication), self.members)
    }

    /// The value of a metric for each member.
    pub(super) fn values(&self, metric: Metric) -> impl Iterator<Item = Option<f64>> {
        let known = self.rows.metrics.get(&metric).map_or(&[][..], Vec::as_slice);
        (0..self.members).map(move |member| known.get(member).copied().flatten())
    }
}

/// The values of a metric in the replications of a row.
enum RowValues<'a> {
    /// All replications have this value.
    Equal(Option<f64>),
    /// The value of each replication.
    Each(&'a [Option<f64>]),
}

impl<'a> RowLine<'a> {
    /// The values of a metric in each replication.
    fn values(self, metric: Metric, cursor: &mut MetricCursor) -> RowValues<'a> {
        if self.row.replications.is_empty() {
            let estimate = cursor.find(&self.row.metrics, metric);
            return RowValues::Equal(estimate.and_then(|estimate| estimate.mean));
        }
        let values = cursor.find(&self.row.replications, metric);
        RowValues::Each(values.map_or(&[][..], Vec::as_slice))
    }

    /// Whether the row has one of these metrics; all rows are wanted without any.
    pub(super) fn has_any(self, only: &[Metric]) -> bool {
        only.is_empty() || self.row.metrics.keys().any(|metric| only.contains(metric))
    }
}
