//! Charts of recorded series: quantities over time.

use std::collections::BTreeMap;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Column, ColumnData, Series};

use super::{NamedChart, capital, slug};
use crate::chart::{Axis, DataPoint, LineChart, LineSeries};
use crate::format::column;

const LINES_MAX: usize = 8;

/// One chart for each table and quantity; the same quantity of several answers in the same axes.
pub(super) fn charts(answers: &[(String, &Answer)]) -> Vec<NamedChart> {
    let mut quantities: Vec<(&str, &str)> = Vec::new();
    for series in answers.iter().flat_map(|(_, answer)| &answer.series) {
        for column in series.columns.iter().skip(1).filter(|column| !is_key(column)) {
            let quantity = (series.name.as_str(), column.name.as_str());
            if !quantities.contains(&quantity) {
                quantities.push(quantity);
            }
        }
    }
    quantities.into_iter().filter_map(|(table, quantity)| draw(answers, table, quantity)).collect()
}

fn draw(answers: &[(String, &Answer)], table: &str, quantity: &str) -> Option<NamedChart> {
    let mut lines: Vec<LineSeries> = Vec::new();
    let mut time = ("time".to_owned(), "s");
    for (label, answer) in answers {
        for series in answer.series.iter().filter(|series| series.name == table) {
            let Some(first) = series.columns.first() else { continue };
            time = column(&first.name);
            let label = (answers.len() > 1).then_some(label.as_str());
            lines.extend(split(series, quantity, label));
        }
    }
    // A quantity that is not recorded, or never differs from zero, is not worth a chart.
    let says =
        |line: &LineSeries| line.points.iter().any(|point| point.y.is_finite() && point.y != 0.0);
    lines.retain(says);
    if lines.is_empty() {
        return None;
    }
    let (heading, unit) = column(quantity);
    let mut title = format!("{} over time", capital(&heading));
    if lines.len() > LINES_MAX {
        title += &format!(" (first {LINES_MAX} of {} lines)", lines.len());
        lines.truncate(LINES_MAX);
    }
    if let [only] = lines.as_mut_slice()
        && !only.name.is_empty()
    {
        title += &format!(", {}", only.name);
        only.name.clear();
    }
    let mut chart = LineChart::new(title, Axis::new(time.0, time.1), Axis::new(heading, unit));
    chart.series = lines;
    let name = slug(&format!("{table}-{quantity}"));
    Some(NamedChart { name, section: "Over time".to_owned(), chart: chart.into() })
}

/// The lines of a quantity: one for each combination of keys.
fn split(series: &Series, quantity: &str, label: Option<&str>) -> Vec<LineSeries> {
    let Some(values) = series.columns.iter().find(|column| column.name == quantity) else {
        return Vec::new();
    };
    let keys: Vec<&Column> =
        series.columns.iter().skip(1).filter(|column| is_key(column)).collect();
    let times = &series.columns[0].data;
    let mut index: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut lines: Vec<LineSeries> = Vec::new();
    for row in 0..times.len().min(values.data.len()) {
        let key: Vec<u64> = keys.iter().map(|key| code(&key.data, row)).collect();
        let place = *index.entry(key).or_insert_with(|| {
            let words = keys.iter().map(|key| word(key, row));
            let name: Vec<String> = label.map(str::to_owned).into_iter().chain(words).collect();
            lines.push(LineSeries { name: name.join(", "), ..LineSeries::default() });
            lines.len() - 1
        });
        let (x, y) = (number(times, row), number(&values.data, row));
        lines[place].points.push(DataPoint { x, y, ci95: None });
    }
    // Messages are recorded as they arrive, under the time at which they were ready.
    for line in &mut lines {
        line.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    lines
}

/// Texts name what a row is about, and so do these numbers.
fn is_key(column: &Column) -> bool {
    matches!(column.data, ColumnData::Text { .. })
        || matches!(column.name.as_str(), "point" | "repeat" | "run")
}

fn number(data: &ColumnData, row: usize) -> f64 {
    match data {
        ColumnData::Real(rows) => rows[row],
        ColumnData::Whole(rows) => rows[row] as f64,
        ColumnData::Text { .. } => f64::NAN,
    }
}

fn code(data: &ColumnData, row: usize) -> u64 {
    match data {
        ColumnData::Real(rows) => rows.get(row).map_or(0, |value| value.to_bits()),
        ColumnData::Whole(rows) => rows.get(row).copied().unwrap_or(0),
        ColumnData::Text { rows, .. } => rows.get(row).copied().map_or(0, u64::from),
    }
}

fn word(column: &Column, row: usize) -> String {
    match &column.data {
        ColumnData::Text { words, rows } => {
            let word = rows.get(row).and_then(|word| words.get(*word as usize));
            word.cloned().unwrap_or_default()
        }
        data => format!("{} {}", column.name, code(data, row)),
    }
}
