//! Tables of answers: texts in rows, for a terminal or a page.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric, Row, Scope};

use crate::format::{self, Prefix, UNKNOWN};
use crate::parameter_label;

/// How much a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The metrics that are looked at first; fits a terminal.
    #[default]
    Headline,
    /// Every metric that is known and not zero everywhere.
    Full,
}

/// A table of texts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextTable {
    /// What the table is about: `Flows`, `Links`.
    pub title: String,
    /// Headings of the columns, units included.
    pub headers: Vec<String>,
    /// Rows, each as long as the headings.
    pub rows: Vec<Vec<String>>,
    /// Number of columns from the left that name the row; the others hold numbers, to be aligned right.
    pub key_columns: usize,
    /// What was left out, as a sentence.
    pub note: Option<String>,
}

/// The headline metrics of the flows of one answer; of its links where it has no flows.
#[must_use]
pub fn table(answer: &Answer) -> TextTable {
    tables(&[(String::new(), answer)], Detail::Headline).into_iter().next().unwrap_or_default()
}

/// Flows and links of answers to the same scenario, each under its label (a backend, a variant).
/// Few rows are turned, so that metrics run downwards and what is compared stands side by side.
#[must_use]
pub fn tables(answers: &[(String, &Answer)], detail: Detail) -> Vec<TextTable> {
    let scopes = [(Scope::Flow, "Flows", "flow"), (Scope::Link, "Links", "link")];
    let tables = scopes.into_iter().filter_map(|(scope, title, name)| {
        let records = Records::new(answers, scope, name);
        (!records.rows.is_empty()).then(|| records.table(title, detail))
    });
    let mut tables: Vec<TextTable> = tables.collect();
    if let (Some(first), Some(note)) = (tables.first_mut(), deterministic_note(answers)) {
        first.add_note(&note);
    }
    tables
}

impl TextTable {
    /// Adds a line to the note.
    pub fn add_note(&mut self, line: &str) {
        match &mut self.note {
            Some(note) => *note = format!("{note}\n{line}"),
            None => self.note = Some(line.to_owned()),
        }
    }
}

/// Why replications have no interval, where no random number influences them.
fn deterministic_note(answers: &[(String, &Answer)]) -> Option<String> {
    let replicated = answers.iter().filter(|(_, answer)| answer.replications > 1);
    let points: Vec<bool> = replicated
        .flat_map(|(_, answer)| answer.points.iter().map(|point| point.deterministic))
        .collect();
    let count = points.iter().filter(|deterministic| **deterministic).count();
    let place = match count {
        0 => return None,
        _ if count == points.len() => String::new(),
        _ => format!(" ({count} of {} points)", points.len()),
    };
    Some(format!(
        "Deterministic{place}: no random number influences the result, so the replications are equal \
         and there is no confidence interval."
    ))
}

/// As [`tables`], of these metrics only, in their order and also where none is known.
#[must_use]
pub fn tables_of(answers: &[(String, &Answer)], only: &[Metric]) -> Vec<TextTable> {
    let scopes = [(Scope::Flow, "Flows", "flow"), (Scope::Link, "Links", "link")];
    let tables = scopes.into_iter().filter_map(|(scope, title, name)| {
        let asked = only.iter().copied().filter(|metric| metric.info().scope == scope);
        let metrics: Vec<_> = asked.collect();
        let records = Records::new(answers, scope, name);
        (!records.rows.is_empty() && !metrics.is_empty())
            .then(|| TextTable { title: title.to_owned(), ..records.shape(&metrics) })
    });
    tables.collect()
}

/// The metrics that are looked at first, in the order of the columns.
pub(crate) const HEADLINE: &[Metric] = &[
    Metric::Goodput,
    Metric::Throughput,
    Metric::CompletionTime,
    Metric::TransfersFinished,
    Metric::TransfersUnfinished,
    Metric::RetransmissionRatio,
    Metric::Timeouts,
    Metric::RttMean,
    Metric::MessageLoss,
    Metric::DelayMean,
    Metric::DelayP98,
    Metric::Fairness,
    Metric::LinkThroughput,
    Metric::Utilisation,
    Metric::LossRatio,
    Metric::QueueMean,
    Metric::LinkDelayMean,
];

/// Up to this many rows are turned into columns.
const TURNED: usize = 4;

/// All rows of one scope, each with the texts that name it.
struct Records<'a> {
    scope: Scope,
    keys: Vec<String>,
    rows: Vec<Record<'a>>,
}

/// A row of an answer, and the texts that name it.
struct Record<'a> {
    names: Vec<String>,
    row: &'a Row,
    /// Replications behind the answer.
    replications: u32,
}

impl<'a> Records<'a> {
    fn new(answers: &[(String, &'a Answer)], scope: Scope, name: &str) -> Self {
        let points = || {
            answers.iter().flat_map(|(label, answer)| {
                answer.points.iter().map(move |point| (label, answer.replications, point))
            })
        };
        let rows_of = |point: &'a gridhaul_scenario::answer::Point| match scope {
            Scope::Flow => &point.flows,
            Scope::Link => &point.links,
        };
        let mut parameters: Vec<&String> = Vec::new();
        for key in points().flat_map(|(_, _, point)| point.parameters.keys()) {
            if !parameters.contains(&key) {
                parameters.push(key);
            }
        }
        let compared = answers.len() > 1;
        let counted = points().flat_map(|(_, _, point)| rows_of(point)).any(|row| row.count != 1);
        let mut keys: Vec<String> = parameters.iter().map(|key| (*key).clone()).collect();
        keys.push(name.to_owned());
        if counted {
            keys.push("count".to_owned());
        }
        if compared {
            keys.push("answer".to_owned());
        }
        let mut rows = Vec::new();
        for (label, replications, point) in points() {
            for row in rows_of(point) {
                let value = |key: &&String| {
                    parameter_label::value(point, key).unwrap_or_else(|| UNKNOWN.to_owned())
                };
                let mut names: Vec<String> = parameters.iter().map(value).collect();
                names.push(row.name.clone());
                if counted {
                    names.push(format::fixed(row.count as f64, 0));
                }
                if compared {
                    names.push(label.clone());
                }
                rows.push(Record { names, row, replications });
            }
        }
        let mut records = Self { scope, keys, rows };
        if compared {
            records.pair();
        }
        records
    }

    /// Puts the same row of several answers below each other, in the order of the first answer.
    fn pair(&mut self) {
        let own = |names: &[String]| names[..names.len() - 1].to_vec();
        let mut order: Vec<Vec<String>> = Vec::new();
        let mut index = std::collections::BTreeMap::new();
        for Record { names, .. } in &self.rows {
            index.entry(own(names)).or_insert_with_key(|key| {
                order.push(key.clone());
                order.len()
            });
        }
        self.rows.sort_by_key(|record| index.get(&own(&record.names)).copied());
    }

    fn table(&self, title: &str, detail: Detail) -> TextTable {
        let in_scope =
            Metric::ALL.iter().copied().filter(|metric| metric.info().scope == self.scope);
        let (kept, dropped): (Vec<_>, Vec<_>) = in_scope.partition(|metric| self.says(*metric));
        let wanted = |metric: &Metric| detail == Detail::Full || HEADLINE.contains(metric);
        let metrics: Vec<_> = kept.into_iter().filter(wanted).collect();
        // Quantities that do not exist here, most of all metrics, are not worth a line.
        let zero = dropped.iter().filter(|metric| self.is_known(**metric));
        let zero = zero.map(|metric| metric.info().heading).collect::<Vec<_>>().join(", ");
        let note = (detail == Detail::Full && !zero.is_empty())
            .then(|| format!("Left out, zero everywhere: {zero}."));
        TextTable { title: title.to_owned(), note, ..self.shape(&metrics) }
    }

    fn shape(&self, metrics: &[Metric]) -> TextTable {
        if self.rows.len() <= TURNED { self.turned(metrics) } else { self.upright(metrics) }
    }

    fn says(&self, metric: Metric) -> bool {
        self.rows.iter().any(|record| record.row.mean(metric).is_some_and(|mean| mean != 0.0))
    }

    fn is_known(&self, metric: Metric) -> bool {
        self.rows.iter().any(|record| record.row.mean(metric).is_some())
    }

    /// One row for each flow or link, one column for each metric.
    fn upright(&self, metrics: &[Metric]) -> TextTable {
        let columns: Vec<_> = metrics.iter().map(|metric| self.column(*metric)).collect();
        let headers =
            self.keys.iter().cloned().chain(columns.iter().map(|(header, _)| header.clone()));
        let rows = self.rows.iter().enumerate().map(|(index, record)| {
            let cells = columns.iter().map(|(_, cells)| cells[index].clone());
            record.names.iter().cloned().chain(cells).collect()
        });
        TextTable {
            headers: headers.collect(),
            rows: rows.collect(),
            key_columns: self.keys.len(),
            ..TextTable::default()
        }
    }

    /// One row for each metric, one column for each flow or link.
    fn turned(&self, metrics: &[Metric]) -> TextTable {
        // A name that all share says nothing; the flow or link itself always does.
        let own = self.keys.iter().position(|key| key == "flow" || key == "link");
        let counts = self.keys.iter().position(|key| key == "count");
        let differs =
            |key: usize| self.rows.iter().any(|it| it.names[key] != self.rows[0].names[key]);
        let told: Vec<usize> = (0..self.keys.len())
            .filter(|key| Some(*key) == own || Some(*key) != counts && differs(*key))
            .collect();
        let swept = &self.keys[..own.unwrap_or(0)];
        let name = |names: &[String]| {
            let part = |index: &usize| match swept.get(*index) {
                Some(key) => parameter_label::named(key, &names[*index], swept),
                None => names[*index].clone(),
            };
            told.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        let first = self.keys[own.unwrap_or(0)].clone();
        let headers =
            std::iter::once(first).chain(self.rows.iter().map(|record| name(&record.names)));
        let rows = metrics.iter().map(|metric| {
            let info = metric.info();
            let all: Vec<_> = self.rows.iter().map(|record| record.estimate(*metric)).collect();
            let texts = format::estimates(&all, info.unit).into_iter().zip(&all).zip(&self.rows);
            let cells = texts.map(|((text, estimate), record)| {
                text + &format::qualification(estimate, record.replications)
            });
            std::iter::once(info.heading.to_owned()).chain(cells).collect()
        });
        let mut rows: Vec<Vec<String>> = rows.collect();
        if let Some(count) = counts {
            let cells = self.rows.iter().map(|record| record.names[count].clone());
            rows.insert(0, std::iter::once("count".to_owned()).chain(cells).collect());
        }
        TextTable { headers: headers.collect(), rows, key_columns: 1, ..TextTable::default() }
    }

    /// A column in one unit, named in the heading; where that would hide small values, each cell has
    /// its own.
    fn column(&self, metric: Metric) -> (String, Vec<String>) {
        let info = metric.info();
        let all: Vec<_> = self.rows.iter().map(|record| record.estimate(metric)).collect();
        let common = Prefix::common(&all, info.unit).filter(|_| !info.unit.is_empty());
        let Some(prefix) = common else {
            let cells = self.rows.iter().map(|record| record.cell(metric));
            return (info.heading.to_owned(), cells.collect());
        };
        let cells = self.rows.iter().zip(&all).map(|(record, estimate)| match estimate.mean {
            Some(mean) => {
                format::interval(mean, estimate.ci95, prefix.factor)
                    + &format::qualification(estimate, record.replications)
            }
            None => UNKNOWN.to_owned(),
        });
        (format!("{} ({})", info.heading, prefix.unit), cells.collect())
    }
}

impl Record<'_> {
    fn estimate(&self, metric: Metric) -> Estimate {
        self.row.metrics.get(&metric).copied().unwrap_or_default()
    }

    fn cell(&self, metric: Metric) -> String {
        format::qualified(&self.estimate(metric), metric.info().unit, self.replications)
    }
}
