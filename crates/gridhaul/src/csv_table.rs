//! Answers as CSV: a line for each answer, point, and flow or link direction.

use gridhaul_scenario::answer::{Answer, Column, ColumnData, Estimate, Metric, Point, Row};
use indexmap::IndexSet;

use crate::error::Error;

/// Formats labelled answers as CSV: a line for each answer, point, and flow or link direction.
/// `only` selects metrics; if it is empty, all metrics of the answers are written. Each metric has
/// three columns: its mean in the unit of its name, the half width of its 95 % confidence interval
/// (`_ci95`) and its number of replications (`_n`). The cell of an unknown value is empty.
///
/// # Errors
/// An internal error of the CSV writer.
pub fn csv(answers: &[(String, &Answer)], only: &[Metric]) -> Result<String, Error> {
    text(answers, only).map_err(Error::Internal)
}

/// The table of [`csv()`] as columns, for other formats: point and count are whole numbers, metrics
/// are real numbers, NaN if they are unknown, and everything else is text.
#[must_use]
pub fn columns(answers: &[(String, &Answer)], only: &[Metric]) -> Vec<Column> {
    let (metrics, parameters) = (selected(answers, only), parameters(answers));
    let lines: Vec<Line<'_>> = lines(answers, only).collect();
    let mut columns = vec![
        text_column("answer", lines.iter().map(|line| line.label)),
        text_column("backend", lines.iter().map(|line| line.answer.backend.as_str())),
        whole_numbers("point", lines.iter().map(|line| line.number as u64)),
    ];
    columns.extend(parameters.iter().map(|key| {
        let values = lines.iter().map(|line| line.point.parameters.get(*key));
        text_column(key, values.map(|value| value.map_or("", String::as_str)))
    }));
    columns.extend([
        text_column("kind", lines.iter().map(|line| line.kind)),
        text_column("name", lines.iter().map(|line| line.row.name.as_str())),
        whole_numbers("count", lines.iter().map(|line| line.row.count)),
    ]);
    for metric in &metrics {
        let estimates = lines.iter().map(|line| line.row.metrics.get(metric));
        let real = |name: String, value: fn(&Estimate) -> Option<f64>| {
            let values = estimates.clone().map(|known| known.and_then(value).unwrap_or(f64::NAN));
            Column { name, data: ColumnData::Real(values.collect()) }
        };
        let name = metric.info().column;
        columns.push(real(name.to_owned(), |estimate| estimate.mean));
        columns.push(real(format!("{name}_ci95"), |estimate| estimate.ci95));
        columns.push(real(format!("{name}_n"), |estimate| Some(f64::from(estimate.n))));
    }
    columns
}

fn text_column<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> Column {
    let mut words: IndexSet<String> = IndexSet::new();
    let rows = values.map(|value| words.insert_full(value.to_owned()).0 as u32).collect();
    let data = ColumnData::Text { words: words.into_iter().collect(), rows };
    Column { name: name.to_owned(), data }
}

fn whole_numbers(name: &str, values: impl Iterator<Item = u64>) -> Column {
    Column { name: name.to_owned(), data: ColumnData::Whole(values.collect()) }
}

/// A line of the table: a flow or the direction of a link at a point of an answer.
struct Line<'a> {
    label: &'a str,
    answer: &'a Answer,
    number: usize,
    point: &'a Point,
    kind: &'static str,
    row: &'a Row,
}

fn lines<'a>(
    answers: &'a [(String, &'a Answer)],
    only: &'a [Metric],
) -> impl Iterator<Item = Line<'a>> {
    let of_point = |label: &'a str, answer: &'a Answer, (number, point): (usize, &'a Point)| {
        rows(point).map(move |(kind, row)| Line { label, answer, number, point, kind, row })
    };
    let all = answers.iter().flat_map(move |(label, answer)| {
        answer.points.iter().enumerate().flat_map(move |point| of_point(label, answer, point))
    });
    let is_present = |line: &Line<'_>, metric: &Metric| line.row.metrics.contains_key(metric);
    all.filter(move |line| only.is_empty() || only.iter().any(|metric| is_present(line, metric)))
}

fn selected(answers: &[(String, &Answer)], only: &[Metric]) -> Vec<Metric> {
    if only.is_empty() { known(answers) } else { only.to_vec() }
}

fn text(answers: &[(String, &Answer)], only: &[Metric]) -> anyhow::Result<String> {
    let (metrics, parameters) = (selected(answers, only), parameters(answers));
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(headings(&parameters, &metrics))?;
    for Line { label, answer, number, point, kind, row } in lines(answers, only) {
        let mut cells = vec![label.to_owned(), answer.backend.clone(), number.to_string()];
        let value = |key: &&String| point.parameters.get(*key).cloned().unwrap_or_default();
        cells.extend(parameters.iter().map(value));
        cells.extend([kind.to_owned(), row.name.clone(), row.count.to_string()]);
        cells.extend(metrics.iter().flat_map(|metric| estimate(row.metrics.get(metric))));
        writer.write_record(cells)?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Mean, half width of the confidence interval and number of replications.
fn estimate(estimate: Option<&Estimate>) -> [String; 3] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    match estimate {
        Some(Estimate { mean, ci95, n, .. }) => [number(*mean), number(*ci95), n.to_string()],
        None => [const { String::new() }; 3],
    }
}

fn headings(parameters: &[&String], metrics: &[Metric]) -> Vec<String> {
    let mut headings = ["answer", "backend", "point"].map(str::to_owned).to_vec();
    headings.extend(parameters.iter().map(|key| (*key).clone()));
    headings.extend(["kind", "name", "count"].map(str::to_owned));
    for metric in metrics {
        let column = metric.info().column;
        headings.extend([column.to_owned(), format!("{column}_ci95"), format!("{column}_n")]);
    }
    headings
}

/// Swept keys, in the order of the points.
fn parameters<'a>(answers: &[(String, &'a Answer)]) -> Vec<&'a String> {
    let mut keys: Vec<&String> = Vec::new();
    let points = answers.iter().flat_map(|(_, answer)| &answer.points);
    for key in points.flat_map(|point| point.parameters.keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Metrics that any row has, in the order of the columns.
fn known(answers: &[(String, &Answer)]) -> Vec<Metric> {
    let points = || answers.iter().flat_map(|(_, answer)| &answer.points);
    let has = |metric: &&Metric| {
        points().flat_map(rows).any(|(_, row)| row.metrics.contains_key(*metric))
    };
    Metric::ALL.iter().filter(has).copied().collect()
}

fn rows(point: &Point) -> impl Iterator<Item = (&'static str, &Row)> {
    let flows = point.flows.iter().map(|row| ("flow", row));
    flows.chain(point.links.iter().map(|row| ("link", row)))
}
