//! Charts of a sweep: metrics over a swept key.

use std::collections::BTreeMap;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric, Point, Row, Scope};
use indexmap::IndexSet;

use super::{CENSORED, NamedChart, Ranked, capital, contrast, slug, weight};
use crate::chart::{Axis, Bar, BarChart, BarSeries, DataPoint, LineChart, LineSeries, Scale};
use crate::parameter_label;
use crate::quantity::quantity;
use crate::swept_keys::axis;
use crate::text_table::HEADLINE;

/// Maximum number of lines in a chart, and of charts for a metric.
const LINES_MAX: usize = 8;
const CHARTS_MAX: usize = 6;

/// Charts of all headline metrics against the first key.
pub(super) fn charts(answers: &[(String, &Answer)], keys: &[String]) -> Vec<Ranked> {
    let points: Vec<&Point> = answers.iter().flat_map(|(_, answer)| &answer.points).collect();
    let Some(x) = keys.first() else { return Vec::new() };
    let numeric = axis(&points, x);
    let is_labelled = points.iter().any(|point| point.labels.contains_key(x));
    let shown = |metric: &&Metric| HEADLINE.contains(metric) || **metric == Metric::DeadlineMet;
    let metrics = Metric::ALL.iter().filter(shown);
    let of_scope = |scope| swept_rows(answers, scope, keys, numeric.is_some());
    let (flows, links) = (of_scope(Scope::Flow), of_scope(Scope::Link));
    let mut out = Vec::new();
    for metric in metrics {
        let rows = match metric.info().scope {
            Scope::Flow => &flows,
            Scope::Link => &links,
        };
        let mut lines: Vec<_> = rows.iter().map(|rows| Line::of(rows, *metric)).collect();
        remove_idle_links(&mut lines, *metric);
        if !lines.iter().any(Line::has_nonzero_value) {
            continue;
        }
        // Too many lines: one chart for each row with values other than zero.
        let split = lines.len() > LINES_MAX;
        let kept = lines.iter().filter(|line| !split || line.has_nonzero_value());
        let rows: IndexSet<&str> = kept.map(|line| line.row).collect();
        let parts: Vec<Option<&str>> = if split {
            rows.iter().take(CHARTS_MAX).copied().map(Some).collect()
        } else {
            vec![None]
        };
        for (index, part) in parts.into_iter().enumerate() {
            let own = lines.iter().filter(|line| part.is_none_or(|row| line.row == row));
            let (own, all): (Vec<_>, _) = (own.clone().take(LINES_MAX).collect(), own.count());
            let omitted = if split { rows.len().saturating_sub(CHARTS_MAX) } else { 0 };
            let omitted = if index + 1 == CHARTS_MAX { omitted } else { 0 };
            let only = part.or((rows.len() == 1).then(|| rows[0]));
            let rank = weight(*metric) * (0.1 + 0.9 * differences(&own)) * activity(*metric, &own);
            let data = ChartData {
                metric: *metric,
                x: if is_labelled { String::new() } else { parameter_label::label(x) },
                numeric: numeric.clone(),
                lines: own,
                all,
                only,
                omitted,
            };
            out.push(Ranked { rank, chart: data.draw() });
        }
    }
    out
}

/// The largest contrast within one row, over its points and lines.
fn differences(lines: &[&Line<'_>]) -> f64 {
    let of_row = |row: &str| {
        let own = lines.iter().filter(|line| line.row == row);
        contrast(own.flat_map(|line| line.points.iter().map(|(_, estimate)| estimate)))
    };
    lines.iter().map(|line| of_row(line.row)).fold(0.0, f64::max)
}

/// Share of the largest value of a metric below which nothing happens on a link.
const IDLE: f64 = 0.01;

/// Removes the rows of links which hardly carry packets compared with others: the table has them.
fn remove_idle_links(lines: &mut Vec<Line<'_>>, metric: Metric) {
    if matches!(metric, Metric::QueueMean | Metric::Utilisation | Metric::LinkThroughput) {
        let limit = IDLE * largest(lines.iter());
        let busy = lines.iter().filter(|line| line.largest() > limit);
        let busy: IndexSet<&str> = busy.map(|line| line.row).collect();
        lines.retain(|line| busy.contains(line.row));
    }
}

/// Whether something happens in a chart, from 0 to 1: differences between queues that are nearly
/// always empty, or between links that are nearly idle, explain nothing.
fn activity(metric: Metric, lines: &[&Line<'_>]) -> f64 {
    let busy = match metric {
        Metric::QueueMean => 1.0,
        Metric::Utilisation => 0.05,
        _ => return 1.0,
    };
    (largest(lines.iter().copied()) / busy).min(1.0)
}

fn largest<'l>(lines: impl Iterator<Item = &'l Line<'l>>) -> f64 {
    lines.map(|line| line.largest()).fold(0.0, f64::max)
}

/// The rows of an answer that make a line in the charts of every metric.
struct SweptRows<'a> {
    /// Name of the rows: a flow or the direction of a link.
    row: &'a str,
    /// Label of the answer, and values of the other keys.
    rest: Vec<String>,
    /// Value of the first key, and the row.
    points: Vec<(String, &'a Row)>,
}

/// The data of a line: an estimate for each value of the first key.
struct Line<'a> {
    row: &'a str,
    rest: &'a [String],
    points: Vec<(&'a str, Estimate)>,
}

impl<'a> Line<'a> {
    fn of(rows: &'a SweptRows<'_>, metric: Metric) -> Self {
        let estimate = |row: &Row| row.metrics.get(&metric).copied().unwrap_or_default();
        let points = rows.points.iter().map(|(x, row)| (x.as_str(), estimate(row))).collect();
        Self { row: rows.row, rest: &rows.rest, points }
    }

    fn has_nonzero_value(&self) -> bool {
        self.points.iter().any(|(_, estimate)| estimate.mean.is_some_and(|mean| mean != 0.0))
    }

    fn largest(&self) -> f64 {
        let means = self.points.iter().filter_map(|(_, estimate)| estimate.mean);
        means.fold(0.0, f64::max)
    }

    fn name(&self, with_row: bool) -> String {
        let row = with_row.then_some(self.row);
        row.into_iter().chain(self.rest.iter().map(String::as_str)).collect::<Vec<_>>().join(", ")
    }
}

/// The lines of all charts. Without a numeric axis, the first key has the values that are shown: a
/// label is that of several keys, of which one alone may have the same value at different labels.
fn swept_rows<'a>(
    answers: &[(String, &'a Answer)],
    scope: Scope,
    keys: &[String],
    is_numeric: bool,
) -> Vec<SweptRows<'a>> {
    let mut lines: Vec<SweptRows<'a>> = Vec::new();
    let mut index: BTreeMap<(&str, Vec<String>), usize> = BTreeMap::new();
    for (label, answer) in answers {
        for point in &answer.points {
            let x = match is_numeric {
                true => point.parameters.get(&keys[0]).cloned(),
                false => parameter_label::value(point, &keys[0]),
            };
            let Some(x) = x else { continue };
            let mut rest: Vec<String> = Vec::new();
            if answers.len() > 1 {
                rest.push(label.clone());
            }
            rest.extend(
                keys[1..].iter().filter_map(|key| parameter_label::label_at(point, key, keys)),
            );
            for row in rows(point, scope) {
                let line = *index.entry((&row.name, rest.clone())).or_insert_with(|| {
                    let (row, rest) = (row.name.as_str(), rest.clone());
                    lines.push(SweptRows { row, rest, points: Vec::new() });
                    lines.len() - 1
                });
                lines[line].points.push((x.clone(), row));
            }
        }
    }
    lines
}

fn rows(point: &Point, scope: Scope) -> &[Row] {
    match scope {
        Scope::Flow => &point.flows,
        Scope::Link => &point.links,
    }
}

/// The data of one chart.
struct ChartData<'a> {
    metric: Metric,
    /// Name of the first key; empty if its values have labels.
    x: String,
    numeric: Option<Axis>,
    lines: Vec<&'a Line<'a>>,
    /// Number of lines before truncation.
    all: usize,
    /// The common row of all lines, if there is one.
    only: Option<&'a str>,
    /// Number of rows without a chart of this metric.
    omitted: usize,
}

impl ChartData<'_> {
    fn draw(&self) -> NamedChart {
        let info = self.metric.info();
        let mut title = capital(info.heading);
        if let Some(row) = self.only {
            title += &format!(", {row}");
        }
        if self.all > self.lines.len() {
            title += &format!(" (first {} of {} lines)", self.lines.len(), self.all);
        }
        let points = self.lines.iter().flat_map(|line| &line.points);
        if points.clone().any(|(_, estimate)| estimate.censored) {
            title += CENSORED;
        }
        if self.omitted > 0 {
            title += &format!(" ({} more in the table)", self.omitted);
        }
        let mut y = Axis::new(info.heading, info.unit);
        if self.metric == Metric::Utilisation || self.metric == Metric::Fairness {
            y = y.including(1.0).including(0.0);
        }
        if self.has_log_axis() {
            y = y.log();
        }
        let with_row = self.only.is_none();
        let chart = match &self.numeric {
            Some(x) => self
                .lines
                .iter()
                .fold(LineChart::new(title, x.clone(), y), |chart, line| {
                    chart.with(LineSeries::new(line.name(with_row), data_points(line)))
                })
                .into(),
            None => self.bars(title, y, with_row).into(),
        };
        let name = format!("{}-{}", info.column, self.only.unwrap_or("all"));
        let section = if info.scope == Scope::Flow { "Flows" } else { "Links" };
        NamedChart { name: slug(&name), section: section.to_owned(), chart }
    }

    /// Loss ratios over a logarithmic axis get a logarithmic axis, unless a value is zero.
    fn has_log_axis(&self) -> bool {
        let loss = [Metric::RetransmissionRatio, Metric::MessageLoss, Metric::LossRatio];
        let x = self.numeric.as_ref().is_some_and(|axis| axis.scale == Scale::Log);
        let points = self.lines.iter().flat_map(|line| &line.points);
        let means: Vec<f64> = points.filter_map(|(_, estimate)| estimate.mean).collect();
        let largest = means.iter().copied().fold(0.0, f64::max);
        let smallest = means.iter().copied().fold(f64::INFINITY, f64::min);
        x && loss.contains(&self.metric) && smallest > 0.0 && largest / smallest >= 100.0
    }

    fn bars(&self, title: String, y: Axis, with_row: bool) -> BarChart {
        let values = self.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x));
        let groups: IndexSet<&str> = values.collect();
        let mut chart = BarChart::new(title, y, groups.iter().map(|group| (*group).to_owned()));
        chart.group_label.clone_from(&self.x);
        self.lines.iter().fold(chart, |chart, line| {
            let mut estimates: BTreeMap<&str, Estimate> = BTreeMap::new();
            for (x, estimate) in &line.points {
                estimates.entry(x).or_insert(*estimate);
            }
            let bar =
                |group: &str| estimates.get(group).map_or(Bar::default(), |own| (*own).into());
            let bars = groups.iter().map(|group| bar(group));
            chart.with(BarSeries::new(line.name(with_row), bars))
        })
    }
}

fn data_points(line: &Line<'_>) -> Vec<DataPoint> {
    let points = line.points.iter().filter_map(|(x, estimate)| {
        let (x, _) = quantity(x)?;
        Some(DataPoint { x, y: estimate.mean.unwrap_or(f64::NAN), ci95: estimate.ci95 })
    });
    let mut points: Vec<_> = points.collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &str, means: [f64; 2]) -> Line<'_> {
        let point = |mean| ("", Estimate { mean: Some(mean), ..Estimate::default() });
        Line { row, rest: &[], points: means.map(point).into() }
    }

    #[test]
    fn queues_of_idle_links_have_no_chart() {
        let rows = |metric| {
            let mut lines = vec![line("lan", [0.001, 0.01]), line("radio", [15.0, 80.0])];
            remove_idle_links(&mut lines, metric);
            lines.into_iter().map(|line| line.row).collect::<Vec<_>>()
        };
        assert_eq!(rows(Metric::QueueMean), ["radio"]);
        assert_eq!(rows(Metric::LinkDelayMean), ["lan", "radio"]);
    }

    #[test]
    fn differences_of_empty_queues_explain_nothing() {
        let rank = |metric, means| activity(metric, &[&line("lan", means)]);
        assert_eq!(rank(Metric::QueueMean, [0.0, 80.0]), 1.0);
        assert_eq!(rank(Metric::QueueMean, [0.1, 0.2]), 0.2);
        assert_eq!(rank(Metric::Utilisation, [0.001, 0.025]), 0.5);
        assert_eq!(rank(Metric::Goodput, [0.001, 0.01]), 1.0);
    }
}
