//! Charts of recorded time series.

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Series;
use indexmap::{IndexMap, IndexSet};

use super::recorded_lines::{is_key, recorded_lines};
use super::{NamedChart, capital, slug};
use crate::chart::{Axis, Chart, DataPoint, LineChart, LineSeries};
use crate::format::column;
use crate::parameter_label::PointLabels;

/// Maximum number of lines in a chart, and of charts for a quantity.
const LINES_MAX: usize = 8;
const CHARTS_MAX: usize = 6;

/// Quantities that share one chart.
const TOGETHER: (&str, &str) = ("cwnd_byte", "ssthresh_byte");

/// A quantity that is omitted because it is the first one in other units.
const REDUNDANT: (&str, &str) = ("queue_packets", "queue_byte");

/// Its rows have times and reasons, and no quantity over time.
const TABLE_WITHOUT_CHART: &str = "losses";

/// The data of a line.
struct Line {
    /// Label of the answer, point of the sweep, quantity, then the keys of the row.
    parts: Vec<String>,
    points: Vec<DataPoint>,
}

/// One chart for each table and quantity; several answers and several points of a sweep share the
/// axes. `names` are the names of the points, if they have any.
pub(super) fn charts(answers: &[(String, &Answer)], names: &[String]) -> Vec<NamedChart> {
    let mut quantities: IndexSet<(&str, &str)> = IndexSet::new();
    for (_, answer) in answers {
        for series in &answer.series {
            let (table, _) = table_and_point(series, answer);
            if table == TABLE_WITHOUT_CHART {
                continue;
            }
            let columns = series.columns.iter().skip(1).filter(|column| !is_key(column));
            quantities.extend(columns.map(|column| (table, column.name.as_str())));
        }
    }
    let all = quantities.clone();
    let follows = |table: &str, quantity: &str, (first, second): (&str, &str)| {
        quantity == second && all.contains(&(table, first))
    };
    quantities.retain(|(table, quantity)| {
        !follows(table, quantity, TOGETHER) && !follows(table, quantity, REDUNDANT)
    });
    let mut tables: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for (table, quantity) in &quantities {
        let of_table = tables.entry(table).or_default();
        of_table.push(quantity);
        of_table.extend((*quantity == TOGETHER.0).then_some(TOGETHER.1));
    }
    let mut found: IndexMap<(&str, &str), Vec<Line>> = IndexMap::new();
    for (table, of_table) in &tables {
        let lines = lines(answers, names, table, of_table);
        found.extend(of_table.iter().map(|quantity| (*table, *quantity)).zip(lines));
    }
    let mut take = |table, quantity| found.get_mut(&(table, quantity)).map(std::mem::take);
    let charts = quantities.into_iter().map(|(table, quantity)| {
        let mut lines = take(table, quantity).unwrap_or_default();
        if quantity == TOGETHER.0 {
            let thresholds = take(table, TOGETHER.1).unwrap_or_default();
            let thresholds = without_unreached(thresholds, &lines);
            lines.extend(thresholds);
        }
        draw(lines, table, quantity)
    });
    charts.flatten().collect()
}

/// Slow-start thresholds without those above the largest window. An initial threshold that no
/// window reaches, such as the receive window, would reduce the windows to a line at the bottom.
fn without_unreached(mut thresholds: Vec<Line>, windows: &[Line]) -> Vec<Line> {
    let points = windows.iter().flat_map(|line| &line.points);
    let largest = points.map(|point| point.y).fold(0.0, f64::max);
    for point in thresholds.iter_mut().flat_map(|line| &mut line.points) {
        if point.y > largest {
            point.y = f64::NAN;
        }
    }
    thresholds.retain(|line| line.points.iter().any(|point| point.y.is_finite()));
    thresholds
}

/// Congestion windows and queues explain most; all time series rank below charts of differences
/// between points.
pub(super) fn rank(chart: &NamedChart) -> f64 {
    let ranks = [("queues-", 0.3), ("windows-cwnd", 0.28), ("delays-", 0.22), ("throughput-", 0.2)];
    let found = ranks.iter().find(|(name, _)| chart.name.starts_with(name));
    found.map_or(0.1, |(_, rank)| *rank)
}

/// One quantity of one flow or direction, with a line for each point of the sweep.
pub(super) fn chart_of(
    answer: &Answer,
    names: &[String],
    title: &str,
    quantity: &str,
    of: &str,
) -> Option<Chart> {
    let has = |series: &&Series| series.columns.iter().any(|column| column.name == quantity);
    let (table, _) = table_and_point(answer.series.iter().find(has)?, answer);
    let lines = lines(&[(String::new(), answer)], names, table, &[quantity]);
    let mut lines: Vec<Line> = lines.into_iter().flatten().collect();
    lines.retain(|line| line.parts[3..].iter().any(|part| part == of));
    let (heading, unit) = column(quantity);
    let y = Axis::new(heading, unit).including(0.0);
    let mut chart = LineChart::new(title, Axis::new("time", "s"), y);
    chart.series = lines
        .into_iter()
        .map(|Line { parts, points }| LineSeries {
            name: parts[1].clone(),
            points,
            ..LineSeries::default()
        })
        .collect();
    (!chart.series.is_empty()).then(|| chart.into())
}

/// Name of the table, and the index of its point in the sweep.
fn table_and_point<'a>(series: &'a Series, answer: &Answer) -> (&'a str, Option<usize>) {
    let parts = series.name.rsplit_once('-').filter(|_| answer.points.len() > 1);
    let found = parts.and_then(|(table, point)| Some((table, point.parse().ok()?)));
    found.map_or((series.name.as_str(), None), |(table, point)| (table, Some(point)))
}

/// The lines of each of some quantities of a table, if they were recorded and are not always zero.
fn lines(
    answers: &[(String, &Answer)],
    names: &[String],
    of: &str,
    quantities: &[&str],
) -> Vec<Vec<Line>> {
    let mut lines: Vec<Vec<Line>> = quantities.iter().map(|_| Vec::new()).collect();
    for (label, answer) in answers {
        let labels = PointLabels::new(&answer.points);
        for series in &answer.series {
            let (table, point) = table_and_point(series, answer);
            if table != of {
                continue;
            }
            let point =
                point.map(|index| names.get(index).cloned().unwrap_or_else(|| labels.of(index)));
            let label = if answers.len() > 1 { label.as_str() } else { "" };
            let first = [label.to_owned(), point.unwrap_or_default()];
            // A read error is reported when the same rows are written to the results folder.
            let recorded = recorded_lines(series, quantities).unwrap_or_default();
            for ((lines, quantity), recorded) in lines.iter_mut().zip(quantities).zip(recorded) {
                let first = first.iter().cloned().chain([column(quantity).0]);
                lines.extend(recorded.into_iter().map(|line| Line {
                    parts: first.clone().chain(line.keys).collect(),
                    points: line.points,
                }));
            }
        }
    }
    for lines in &mut lines {
        lines.retain(|line| line.points.iter().any(|point| point.y.is_finite() && point.y != 0.0));
    }
    lines
}

/// One chart, or one for each flow or link if there are too many lines.
fn draw(lines: Vec<Line>, table: &str, quantity: &str) -> Vec<NamedChart> {
    if lines.is_empty() {
        return Vec::new();
    }
    let rows: IndexSet<Vec<String>> = lines.iter().map(|line| line.parts[3..].to_vec()).collect();
    if lines.len() <= LINES_MAX || rows.len() < 2 {
        return vec![chart(lines, table, quantity, "")];
    }
    let (mut lines, mut charts) = (lines, Vec::new());
    let more = rows.len().saturating_sub(CHARTS_MAX);
    let note = if more > 0 { format!(" ({more} more without a chart)") } else { String::new() };
    for (index, row) in rows.iter().take(CHARTS_MAX).enumerate() {
        let (own, others) = lines.into_iter().partition(|line| line.parts[3..] == **row);
        let note = if index + 1 == CHARTS_MAX { note.as_str() } else { "" };
        charts.push(chart(own, table, quantity, note));
        lines = others;
    }
    charts
}

fn chart(mut lines: Vec<Line>, table: &str, quantity: &str, note: &str) -> NamedChart {
    let all = lines.len();
    lines.truncate(LINES_MAX);
    let (heading, unit) = column(quantity);
    let mut title = format!("{} over time", capital(&heading));
    // Common parts of the names are in the title, the others in the legend.
    let shared: Vec<bool> = (0..lines[0].parts.len())
        .map(|part| lines.iter().all(|line| line.parts.get(part) == lines[0].parts.get(part)))
        .collect();
    for (part, text) in lines[0].parts.iter().enumerate() {
        if shared[part] && part != 2 && !text.is_empty() {
            title += &format!(", {text}");
        }
    }
    if all > lines.len() {
        title += &format!(" (first {LINES_MAX} of {all} lines)");
    }
    title += note;
    let name = slug(&format!("{table}-{quantity}"));
    let mut chart = LineChart::new(title, Axis::new("time", "s"), Axis::new(heading, unit));
    chart.series = lines
        .into_iter()
        .map(|line| {
            let own = line
                .parts
                .iter()
                .zip(&shared)
                .filter(|(text, shared)| !**shared && !text.is_empty());
            let own: Vec<&str> = own.map(|(text, _)| text.as_str()).collect();
            LineSeries { name: own.join(", "), points: line.points, ..LineSeries::default() }
        })
        .collect();
    NamedChart { name, section: "Over time".to_owned(), chart: chart.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[f64]) -> Line {
        let point = |(second, &y): (usize, &f64)| DataPoint { x: second as f64, y, ci95: None };
        Line { parts: Vec::new(), points: values.iter().enumerate().map(point).collect() }
    }

    #[test]
    fn a_threshold_that_no_window_reaches_is_not_drawn() {
        let windows = [line(&[3.0, 9.0, 4.0])];
        let found = without_unreached(vec![line(&[1e6, 1e6, 4.5]), line(&[9.5])], &windows);
        let [first] = &found[..] else { panic!("{} lines", found.len()) };
        let drawn: Vec<bool> = first.points.iter().map(|point| point.y.is_finite()).collect();
        assert_eq!(drawn, [false, false, true]);
    }
}
