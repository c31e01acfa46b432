//! Charts of a sweep: metrics against a swept key.

use std::collections::BTreeMap;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric, Point, Row, Scope};

use super::{CENSORED, NamedChart, Ranked, capital, contrast, slug, weight};
use crate::chart::{Axis, Bar, BarChart, BarSeries, DataPoint, LineChart, LineSeries, Scale};
use crate::parameter_label;
use crate::quantity::quantity;
use crate::text_table::HEADLINE;

/// How many lines a chart can tell apart, and how many charts a metric gets.
const LINES_MAX: usize = 8;
const CHARTS_MAX: usize = 6;

/// From so many numbers on, a key is an axis.
const NUMBERS_MIN: usize = 3;

/// The keys that were swept, without those that only follow another one. The first one is the axis of
/// the charts: the first of numbers, since a curve says more than bars, else the first of all.
pub(crate) fn swept_keys(answers: &[(String, &Answer)]) -> Vec<String> {
    let points: Vec<&Point> = answers.iter().flat_map(|(_, answer)| &answer.points).collect();
    let mut keys: Vec<&String> = Vec::new();
    for key in points.iter().flat_map(|point| point.parameters.keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.retain(|key| values(&points, key).len() > 1);
    let mut leaders: Vec<&String> = Vec::new();
    for key in keys {
        // Keys of one entry vary together; a number is the better axis.
        match leaders.iter().position(|leader| together(&points, leader, key)) {
            Some(place)
                if axis(&points, leaders[place]).is_none() && axis(&points, key).is_some() =>
            {
                leaders[place] = key;
            }
            Some(_) => {}
            None => leaders.push(key),
        }
    }
    if let Some(number) = leaders.iter().position(|key| axis(&points, key).is_some()) {
        leaders[..=number].rotate_right(1);
    }
    leaders.into_iter().cloned().collect()
}

/// Charts of all headline metrics against the first key.
pub(super) fn charts(answers: &[(String, &Answer)], keys: &[String]) -> Vec<Ranked> {
    let points: Vec<&Point> = answers.iter().flat_map(|(_, answer)| &answer.points).collect();
    let Some(x) = keys.first() else { return Vec::new() };
    let numeric = axis(&points, x);
    let labels = labels(&points, x);
    let shown = |metric: &&Metric| HEADLINE.contains(metric) || **metric == Metric::DeadlineMet;
    let metrics = Metric::ALL.iter().filter(shown);
    let mut out = Vec::new();
    for metric in metrics {
        let lines = lines(answers, *metric, keys);
        if !lines.iter().any(Line::says) {
            continue;
        }
        // Too many lines: a chart for each row that has something to say.
        let split = lines.len() > LINES_MAX;
        let mut rows: Vec<&str> = Vec::new();
        for line in lines.iter().filter(|line| !split || line.says()) {
            if !rows.contains(&line.row.as_str()) {
                rows.push(&line.row);
            }
        }
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
            let rank = weight(*metric) * (0.1 + 0.9 * differences(&own));
            let picture = Picture {
                metric: *metric,
                x,
                labels: &labels,
                numeric: numeric.clone(),
                lines: own,
                all,
                only,
                omitted,
            };
            out.push(Ranked { rank, chart: picture.draw() });
        }
    }
    out
}

/// What the values of a key are called.
fn labels(points: &[&Point], key: &str) -> BTreeMap<String, String> {
    let named = points.iter().filter_map(|point| {
        Some((point.parameters.get(key)?.clone(), parameter_label::value(point, key)?))
    });
    named.collect()
}

/// How much the values of one row differ, over the points and the lines of that row.
fn differences(lines: &[&Line]) -> f64 {
    let of_row = |row: &str| {
        let own = lines.iter().filter(|line| line.row == row);
        contrast(own.flat_map(|line| line.points.iter().map(|(_, estimate)| estimate)))
    };
    lines.iter().map(|line| of_row(&line.row)).fold(0.0, f64::max)
}

/// A line before it is drawn: for each value of the first key, an estimate.
struct Line {
    /// Row of the answer: a flow or the direction of a link.
    row: String,
    /// Label of the answer and values of the other keys.
    rest: Vec<String>,
    points: Vec<(String, Estimate)>,
}

impl Line {
    fn says(&self) -> bool {
        self.points.iter().any(|(_, estimate)| estimate.mean.is_some_and(|mean| mean != 0.0))
    }

    fn name(&self, with_row: bool) -> String {
        let row = with_row.then_some(&self.row);
        row.into_iter().chain(&self.rest).map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

fn lines(answers: &[(String, &Answer)], metric: Metric, keys: &[String]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut index: BTreeMap<(String, Vec<String>), usize> = BTreeMap::new();
    for (label, answer) in answers {
        for point in &answer.points {
            let Some(x) = point.parameters.get(&keys[0]) else { continue };
            let mut rest: Vec<String> = Vec::new();
            if answers.len() > 1 {
                rest.push(label.clone());
            }
            rest.extend(
                keys[1..].iter().filter_map(|key| parameter_label::label_at(point, key, keys)),
            );
            for row in rows(point, metric) {
                let place = *index.entry((row.name.clone(), rest.clone())).or_insert_with(|| {
                    lines.push(Line {
                        row: row.name.clone(),
                        rest: rest.clone(),
                        points: Vec::new(),
                    });
                    lines.len() - 1
                });
                let estimate = row.metrics.get(&metric).copied().unwrap_or_default();
                lines[place].points.push((x.clone(), estimate));
            }
        }
    }
    lines
}

fn rows(point: &Point, metric: Metric) -> &[Row] {
    match metric.info().scope {
        Scope::Flow => &point.flows,
        Scope::Link => &point.links,
    }
}

/// One chart before it is drawn.
struct Picture<'a> {
    metric: Metric,
    x: &'a str,
    /// Names of the values of `x`.
    labels: &'a BTreeMap<String, String>,
    numeric: Option<Axis>,
    lines: Vec<&'a Line>,
    /// Lines that there would be.
    all: usize,
    /// The one row that all lines are of.
    only: Option<&'a str>,
    /// Rows that get no chart of this metric any more.
    omitted: usize,
}

impl Picture<'_> {
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
            title += &format!(" ({} more are in the table only)", self.omitted);
        }
        let mut y = Axis::new(info.heading, info.unit);
        if self.metric == Metric::Utilisation || self.metric == Metric::Fairness {
            y = y.including(1.0).including(0.0);
        }
        if self.in_decades() {
            y = y.log();
        }
        let with_row = self.only.is_none();
        let chart = match &self.numeric {
            Some(x) => self
                .lines
                .iter()
                .fold(LineChart::new(title, x.clone(), y), |chart, line| {
                    chart.with(LineSeries::new(line.name(with_row), places(line)))
                })
                .into(),
            None => self.bars(title, y, with_row).into(),
        };
        let name = format!("{}-{}", info.column, self.only.unwrap_or("all"));
        let section = if info.scope == Scope::Flow { "Flows" } else { "Links" };
        NamedChart { name: slug(&name), section: section.to_owned(), chart }
    }

    /// Losses against a logarithmic axis are read on a logarithmic axis, unless one is zero.
    fn in_decades(&self) -> bool {
        let loss = [Metric::RetransmissionRatio, Metric::MessageLoss, Metric::LossRatio];
        let x = self.numeric.as_ref().is_some_and(|axis| axis.scale == Scale::Log);
        let points = self.lines.iter().flat_map(|line| &line.points);
        let means: Vec<f64> = points.filter_map(|(_, estimate)| estimate.mean).collect();
        let largest = means.iter().copied().fold(0.0, f64::max);
        let smallest = means.iter().copied().fold(f64::INFINITY, f64::min);
        x && loss.contains(&self.metric) && smallest > 0.0 && largest / smallest >= 100.0
    }

    fn bars(&self, title: String, y: Axis, with_row: bool) -> BarChart {
        let mut groups: Vec<&String> = Vec::new();
        for (x, _) in self.lines.iter().flat_map(|line| &line.points) {
            if !groups.contains(&x) {
                groups.push(x);
            }
        }
        let shown = |group: &&String| self.labels.get(*group).unwrap_or(group).clone();
        let mut chart = BarChart::new(title, y, groups.iter().map(shown));
        chart.group_label = parameter_label::label(self.x);
        self.lines.iter().fold(chart, |chart, line| {
            let bar = |group: &&String| line.points.iter().find(|(x, _)| x == *group);
            let bars =
                groups.iter().map(|group| bar(group).map_or(Bar::default(), |(_, e)| (*e).into()));
            chart.with(BarSeries::new(line.name(with_row), bars))
        })
    }
}

fn places(line: &Line) -> Vec<DataPoint> {
    let places = line.points.iter().filter_map(|(x, estimate)| {
        let (x, _) = quantity(x)?;
        Some(DataPoint { x, y: estimate.mean.unwrap_or(f64::NAN), ci95: estimate.ci95 })
    });
    let mut places: Vec<_> = places.collect();
    places.sort_by(|a, b| a.x.total_cmp(&b.x));
    places
}

/// Distinct values of a key, in their order.
fn values<'a>(points: &[&'a Point], key: &str) -> Vec<&'a str> {
    let mut out: Vec<&str> = Vec::new();
    for value in points.iter().filter_map(|point| point.parameters.get(key)) {
        if !out.contains(&value.as_str()) {
            out.push(value);
        }
    }
    out
}

/// Whether each value of one key has its own value of the other, and the other way round.
fn together(points: &[&Point], one: &str, other: &str) -> bool {
    let pair = |point: &&Point| {
        Some((point.parameters.get(one)?.clone(), point.parameters.get(other)?.clone()))
    };
    let pairs: std::collections::BTreeSet<_> = points.iter().filter_map(pair).collect();
    let count = values(points, one).len();
    pairs.len() == count && values(points, other).len() == count
}

/// The axis of a key whose values are all numbers of one kind.
pub(super) fn axis(points: &[&Point], key: &str) -> Option<Axis> {
    let quantities: Option<Vec<_>> = values(points, key).into_iter().map(quantity).collect();
    let quantities = quantities?;
    let unit = quantities.first()?.1;
    if quantities.iter().any(|(_, other)| *other != unit) {
        return None;
    }
    let mut numbers: Vec<f64> = quantities.iter().map(|(number, _)| *number).collect();
    numbers.sort_by(f64::total_cmp);
    // A line between two values would say what nobody asked.
    if numbers.len() < NUMBERS_MIN {
        return None;
    }
    let axis = Axis::new(parameter_label::label(key), unit);
    if spread(&numbers) {
        return Some(axis.log());
    }
    // Zero beside values that belong on a logarithmic axis: no axis of numbers shows both well.
    if numbers[0] == 0.0 && spread(&numbers[1..]) { None } else { Some(axis) }
}

/// Whether sorted numbers span two decades and are spread over them about evenly.
fn spread(numbers: &[f64]) -> bool {
    let (Some(first), Some(last)) = (numbers.first(), numbers.last()) else { return false };
    if *first <= 0.0 || last / first < 99.9 || numbers.len() < 3 {
        return false;
    }
    let steps: Vec<_> = numbers.windows(2).map(|pair| (pair[1] / pair[0]).log10()).collect();
    let largest = steps.iter().copied().fold(0.0, f64::max);
    largest <= 0.6 * (last / first).log10()
}
