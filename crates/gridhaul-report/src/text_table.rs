//! Text tables of answers, for the terminal and for reports.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric, Point, Row, Scope};

use crate::format::{self, Prefix, UNKNOWN};
use crate::parameter_label;

/// The level of detail of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// The headline metrics; the table fits a terminal.
    #[default]
    Headline,
    /// Every known metric that is not zero in all rows.
    Full,
}

/// A table of text cells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TextTable {
    /// Title: `Flows`, `Links`.
    pub title: String,
    /// Headings of the columns, units included.
    pub headers: Vec<String>,
    /// Rows, each with as many cells as there are headings.
    pub rows: Vec<Vec<String>>,
    /// Number of leading columns that identify the row; the others contain right-aligned numbers.
    pub key_columns: usize,
    /// Note below the table, such as omitted metrics.
    pub note: Option<String>,
}

/// The headline metrics of the flows of one answer, or of its links if it has no flows.
#[must_use]
pub fn table(answer: &Answer) -> TextTable {
    let answers = [(String::new(), answer)];
    let first = of_scopes(&answers, Detail::Headline).next();
    first.map(|table| with_deterministic_note(table, &answers)).unwrap_or_default()
}

/// Flows and links of answers to the same scenario, each with its label (a backend, a scenario
/// variant). A table with few rows is transposed, so that compared values are side by side.
#[must_use]
pub fn tables(answers: &[(String, &Answer)], detail: Detail) -> Vec<TextTable> {
    let mut tables = of_scopes(answers, detail);
    let first = tables.next().map(|first| with_deterministic_note(first, answers));
    first.into_iter().chain(tables).collect()
}

/// The tables of flows and links that have rows.
fn of_scopes(answers: &[(String, &Answer)], detail: Detail) -> impl Iterator<Item = TextTable> {
    let scopes = [(Scope::Flow, "Flows", "flow"), (Scope::Link, "Links", "link")];
    scopes.into_iter().filter_map(move |(scope, title, name)| {
        let records = Records::new(answers, scope, name);
        (!records.rows.is_empty()).then(|| records.table(title, detail))
    })
}

fn with_deterministic_note(mut table: TextTable, answers: &[(String, &Answer)]) -> TextTable {
    if let Some(note) = deterministic_note(answers) {
        table.add_note(&note);
    }
    table
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

/// The note on deterministic answers, whose replications have no confidence interval.
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
        "Deterministic{place}: no random number influences the result, so the replications are \
         equal and there is no confidence interval."
    ))
}

/// The note on rows whose goodput and throughput have different times.
const GOODPUT_OF_PART: &str = "Goodput of transfers and bursts: per time in which one is in \
                               progress. Throughput: per time of the run.";

/// Whether the goodput of a row exceeds its throughput: that of transfers and bursts is per time in
/// which one of them is in progress, and the throughput is per time of the run.
pub(crate) fn is_goodput_of_part(row: &Row) -> bool {
    let has_part =
        row.mean(Metric::TransfersFinished).or(row.mean(Metric::LastCompletion)).is_some();
    let rates = row.mean(Metric::Goodput).zip(row.mean(Metric::Throughput));
    has_part && rates.is_some_and(|(goodput, throughput)| goodput > throughput)
}

/// As [`tables`], restricted to these metrics, in their order and including unknown ones.
#[must_use]
pub fn tables_of(answers: &[(String, &Answer)], only: &[Metric]) -> Vec<TextTable> {
    let scopes = [(Scope::Flow, "Flows", "flow"), (Scope::Link, "Links", "link")];
    let tables = scopes.into_iter().filter_map(|(scope, title, name)| {
        let selected = only.iter().copied().filter(|metric| metric.info().scope == scope);
        let metrics: Vec<_> = selected.collect();
        let records = Records::new(answers, scope, name);
        (!records.rows.is_empty() && !metrics.is_empty())
            .then(|| TextTable { title: title.to_owned(), ..records.shape(&metrics) })
    });
    tables.collect()
}

/// The headline metrics, in the order of the columns.
pub const HEADLINE: &[Metric] = &[
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
    Metric::MemberGoodputMin,
    Metric::MemberDeliveredMin,
    Metric::MemberDelayMax,
    Metric::Fairness,
    Metric::LinkThroughput,
    Metric::Utilisation,
    Metric::LossRatio,
    Metric::QueueMean,
    Metric::LinkDelayMean,
];

/// Maximum number of rows of a transposed table.
const TRANSPOSED_ROWS_MAX: usize = 4;

/// All rows of one scope, each with its identifying cells.
struct Records<'a> {
    scope: Scope,
    keys: Vec<String>,
    rows: Vec<Record<'a>>,
    columns: Columns<'a>,
}

/// The estimates of the rows by metric. A sweep has thousands of rows, in which looking up one
/// metric after the other takes long: the columns are filled row by row.
#[derive(Default)]
struct Columns<'a> {
    /// In the order of [`Metric::ALL`]; empty for a metric that no row has.
    of_metric: Vec<Vec<Option<&'a Estimate>>>,
}

/// A row of an answer with its identifying cells.
struct Record<'a> {
    names: Vec<String>,
    row: &'a Row,
    /// Number of replications of its point.
    replications: u32,
}

impl<'a> Records<'a> {
    fn new(answers: &[(String, &'a Answer)], scope: Scope, name: &str) -> Self {
        let points = || {
            answers.iter().flat_map(|(label, answer)| {
                answer.points.iter().map(move |point| (label, answer.replications_of(point), point))
            })
        };
        let rows_of = |point: &'a Point| match scope {
            Scope::Flow => &point.flows,
            Scope::Link => &point.links,
        };
        let all: Vec<&Point> = points().map(|(_, _, point)| point).collect();
        let (parameters, mut keys): (Vec<&String>, Vec<String>) =
            parameter_label::columns(&all).into_iter().unzip();
        let compared = answers.len() > 1;
        let counted = points().flat_map(|(_, _, point)| rows_of(point)).any(|row| row.count != 1);
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
        let mut records = Self { scope, keys, rows, columns: Columns::default() };
        if compared {
            records.pair();
        }
        records.columns = Columns::new(&records.rows);
        records
    }

    /// Groups the same row of several answers, in the order of the first answer.
    fn pair(&mut self) {
        let row_column = |names: &[String]| names[..names.len() - 1].to_vec();
        let mut order: Vec<Vec<String>> = Vec::new();
        let mut index = std::collections::BTreeMap::new();
        for Record { names, .. } in &self.rows {
            index.entry(row_column(names)).or_insert_with_key(|key| {
                order.push(key.clone());
                order.len()
            });
        }
        self.rows.sort_by_key(|record| index.get(&row_column(&record.names)).copied());
    }

    fn table(&self, title: &str, detail: Detail) -> TextTable {
        let in_scope =
            Metric::ALL.iter().copied().filter(|metric| metric.info().scope == self.scope);
        let (kept, dropped): (Vec<_>, Vec<_>) =
            in_scope.partition(|metric| self.columns.has_nonzero_value(*metric));
        let wanted = |metric: &Metric| detail == Detail::Full || HEADLINE.contains(metric);
        let metrics: Vec<_> = kept.into_iter().filter(wanted).collect();
        // Metrics without any value are omitted without a note.
        let zero = dropped.iter().filter(|metric| self.columns.is_known(**metric));
        let zero = zero.map(|metric| metric.info().heading).collect::<Vec<_>>().join(", ");
        let omitted = (detail == Detail::Full && !zero.is_empty())
            .then(|| format!("Omitted metrics, zero in all rows: {zero}."));
        let mut table = TextTable { title: title.to_owned(), ..self.shape(&metrics) };
        table.note = omitted;
        if self.rows.iter().any(|record| is_goodput_of_part(record.row)) {
            table.add_note(GOODPUT_OF_PART);
        }
        table
    }

    fn shape(&self, metrics: &[Metric]) -> TextTable {
        if self.rows.len() <= TRANSPOSED_ROWS_MAX {
            self.transposed(metrics)
        } else {
            self.regular(metrics)
        }
    }

    /// One row for each flow or link, one column for each metric.
    fn regular(&self, metrics: &[Metric]) -> TextTable {
        let mut headers = self.keys.clone();
        let mut rows: Vec<_> = self.rows.iter().map(|record| record.names.clone()).collect();
        for metric in metrics {
            let (header, cells) = self.column(*metric);
            headers.push(header);
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.push(cell);
            }
        }
        TextTable { headers, rows, key_columns: self.keys.len(), ..TextTable::default() }
    }

    /// One row for each metric, one column for each flow or link.
    fn transposed(&self, metrics: &[Metric]) -> TextTable {
        // A cell that all rows share is omitted, except the flow or link.
        let row_column = self.keys.iter().position(|key| key == "flow" || key == "link");
        let counts = self.keys.iter().position(|key| key == "count");
        let differs = |key: usize| {
            self.rows.iter().any(|record| record.names[key] != self.rows[0].names[key])
        };
        let shown: Vec<usize> = (0..self.keys.len())
            .filter(|key| Some(*key) == row_column || Some(*key) != counts && differs(*key))
            .collect();
        let swept = &self.keys[..row_column.unwrap_or(0)];
        let name = |names: &[String]| {
            let part = |index: &usize| match swept.get(*index) {
                Some(key) => parameter_label::named(key, &names[*index], swept),
                None => names[*index].clone(),
            };
            shown.iter().map(part).collect::<Vec<_>>().join(", ")
        };
        let first = self.keys[row_column.unwrap_or(0)].clone();
        let headers =
            std::iter::once(first).chain(self.rows.iter().map(|record| name(&record.names)));
        let rows = metrics.iter().map(|metric| {
            let info = metric.info();
            let all = self.estimates(*metric);
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

    /// A column in one unit, given in the heading; if that would hide small values, each cell has
    /// its own unit.
    fn column(&self, metric: Metric) -> (String, Vec<String>) {
        let info = metric.info();
        let all = self.estimates(metric);
        let common = Prefix::common(&all, info.unit).filter(|_| !info.unit.is_empty());
        let Some(prefix) = common else {
            let cells = self.rows.iter().zip(&all).map(|(record, estimate)| {
                format::qualified(estimate, info.unit, record.replications)
            });
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

    /// The estimates of a metric, one for each row.
    fn estimates(&self, metric: Metric) -> Vec<Estimate> {
        let column = self.columns.of(metric);
        let estimate = |row: usize| column.get(row).copied().flatten().copied();
        (0..self.rows.len()).map(|row| estimate(row).unwrap_or_default()).collect()
    }
}

impl<'a> Columns<'a> {
    fn new(rows: &[Record<'a>]) -> Self {
        let mut of_metric = vec![Vec::new(); Metric::ALL.len()];
        for (number, record) in rows.iter().enumerate() {
            for (metric, estimate) in &record.row.metrics {
                let column = &mut of_metric[*metric as usize];
                if column.is_empty() {
                    column.resize(rows.len(), None);
                }
                column[number] = Some(estimate);
            }
        }
        Self { of_metric }
    }

    fn of(&self, metric: Metric) -> &[Option<&'a Estimate>] {
        &self.of_metric[metric as usize]
    }

    /// The known means of a metric.
    fn means(&self, metric: Metric) -> impl Iterator<Item = f64> {
        self.of(metric).iter().flatten().filter_map(|estimate| estimate.mean)
    }

    fn has_nonzero_value(&self, metric: Metric) -> bool {
        self.means(metric).any(|mean| mean != 0.0)
    }

    fn is_known(&self, metric: Metric) -> bool {
        self.means(metric).next().is_some()
    }
}
