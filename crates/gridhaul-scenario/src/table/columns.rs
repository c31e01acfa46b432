//! The columns of each table.

use std::collections::BTreeSet;
use std::iter::repeat_n;

use indexmap::IndexSet;

use super::TableError;
use super::lines::{Group, ParameterLine, Place, RepeatedPoint, RowLine, places};
use super::metric_cursor::MetricCursor;
use crate::answer::{Answer, Column, ColumnData, Estimate, Metric, Scope};

type Answers<'a> = [(String, &'a Answer)];

/// Flows and directions of links, or those of a scope, with means.
pub(super) fn of_rows(answers: &Answers<'_>, scope: Option<Scope>, only: &[Metric]) -> Vec<Column> {
    let lines: Vec<RowLine<'_>> = places(answers)
        .flat_map(|place| place.rows(scope))
        .filter(|line| line.has_any(only))
        .collect();
    let mut cursors = vec![MetricCursor::default(); lines.len()];
    let metrics = selected(known_metrics(&lines), only);
    let mut columns = identity(&lines.iter().map(|line| line.place));
    if scope.is_none() {
        columns.push(text("kind", lines.iter().map(|line| line.kind)));
    }
    columns.push(text("name", lines.iter().map(|line| line.row.name.as_str())));
    columns.push(whole("count", lines.iter().map(|line| line.row.count)));
    for metric in metrics {
        let of_line = lines.iter().zip(&mut cursors);
        let estimates: Vec<Option<&Estimate>> =
            of_line.map(|(line, cursor)| cursor.find(&line.row.metrics, metric)).collect();
        let column = |name: String, value: fn(&Estimate) -> Option<f64>| {
            real(name, estimates.iter().map(|known| known.and_then(value)))
        };
        let name = metric.info().column;
        columns.push(column(name.to_owned(), |estimate| estimate.mean));
        columns.push(column(format!("{name}_ci95"), |estimate| estimate.ci95));
        columns.push(column(format!("{name}_n"), |estimate| Some(f64::from(estimate.n))));
    }
    columns
}

/// Swept keys and their values at each point.
pub(super) fn of_parameters(answers: &Answers<'_>) -> Vec<Column> {
    let lines: Vec<ParameterLine<'_>> = places(answers).flat_map(ParameterLine::of_point).collect();
    let lines = || lines.iter();
    let mut columns = without_keys(&lines().map(|line| line.place));
    columns.extend([
        text("key", lines().map(|line| line.key)),
        text("value", lines().map(|line| line.value)),
        text("label", lines().map(|line| line.label)),
        real("number".to_owned(), lines().map(|line| line.number())),
        text("unit", lines().map(|line| line.unit())),
        text("column", lines().map(|line| line.column())),
    ]);
    columns
}

/// Points of the sweep.
pub(super) fn of_points(answers: &Answers<'_>) -> Vec<Column> {
    let mut columns = identity(&places(answers));
    let points = || places(answers);
    columns.push(whole("deterministic", points().map(|at| u64::from(at.point.deterministic))));
    columns.push(whole("disturbed_count", points().map(|at| u64::from(at.point.disturbed))));
    columns.push(whole("replications_count", points().map(|at| u64::from(at.replications()))));
    columns
}

/// Flows and directions of links in each replication.
pub(super) fn of_replications(
    answers: &Answers<'_>,
    only: &[Metric],
) -> Result<Vec<Column>, TableError> {
    let mut points: Vec<RepeatedPoint<'_>> = Vec::new();
    for place in places(answers) {
        place.check_replications()?;
        let lines = place.rows(None).filter(|line| line.has_any(only)).collect();
        points.push(RepeatedPoint::new(lines, place.replications()));
    }
    let metrics = selected(known_metrics(points.iter().flat_map(|point| &point.lines)), only);
    let lines = || points.iter().flat_map(RepeatedPoint::lines);
    let mut columns = identity(&lines().map(|(_, line)| line.place));
    columns.extend([
        whole("replication", lines().map(|(replication, _)| u64::from(replication))),
        text("kind", lines().map(|(_, line)| line.kind)),
        text("name", lines().map(|(_, line)| line.row.name.as_str())),
        whole("count", lines().map(|(_, line)| line.row.count)),
    ]);
    columns.extend(metrics.into_iter().map(|metric| {
        let values = points.iter_mut().flat_map(|point| point.values(metric));
        real(metric.info().column.to_owned(), values)
    }));
    Ok(columns)
}

/// Members of flows in each replication.
pub(super) fn of_members(answers: &Answers<'_>, only: &[Metric]) -> Vec<Column> {
    let groups: Vec<Group<'_>> = places(answers).flat_map(Group::of_point).collect();
    let metrics = selected(groups.iter().flat_map(|group| group.rows.metrics.keys()), only);
    let groups = || groups.iter();
    let mut columns = identity(&groups().flat_map(|group| repeat_n(group.place, group.members)));
    columns.extend([
        whole("replication", groups().flat_map(Group::replications)),
        text("name", groups().flat_map(|group| repeat_n(group.rows.flow.as_str(), group.members))),
        whole("member", groups().flat_map(|group| 0..group.members as u64)),
    ]);
    columns.extend(metrics.into_iter().map(|metric| {
        real(metric.info().column.to_owned(), groups().flat_map(|group| group.values(metric)))
    }));
    columns
}

/// The metrics of some lines.
fn known_metrics<'a>(
    lines: impl IntoIterator<Item = &'a RowLine<'a>>,
) -> impl Iterator<Item = &'a Metric> {
    lines.into_iter().flat_map(|line| line.row.metrics.keys())
}

/// The selected metrics, or all that are known, in the order of the columns.
fn selected<'a>(known: impl Iterator<Item = &'a Metric>, only: &[Metric]) -> Vec<Metric> {
    if !only.is_empty() {
        return only.to_vec();
    }
    let known: BTreeSet<Metric> = known.copied().collect();
    known.into_iter().collect()
}

/// The columns with which every table begins, and those of the swept keys.
fn identity<'a>(lines: &(impl Iterator<Item = Place<'a>> + Clone)) -> Vec<Column> {
    // Lines of a point follow each other: its keys are compared once.
    let mut parameters: IndexSet<&str> = IndexSet::new();
    let mut numbers: IndexSet<&str> = IndexSet::new();
    let mut last: Option<*const _> = None;
    for place in lines.clone() {
        let point = std::ptr::from_ref(place.point);
        if last.replace(point) != Some(point) {
            parameters.extend(place.point.parameters.keys().map(String::as_str));
            numbers.extend(place.point.numbers.keys().map(String::as_str));
        }
    }
    let mut columns = without_keys(lines);
    columns.extend(parameters.into_iter().map(|key| {
        let values = lines.clone().map(|place| place.point.parameters.get(key));
        text(key, values.map(|value| value.map_or("", String::as_str)))
    }));
    columns.extend(numbers.into_iter().map(|name| {
        let values = lines.clone().map(|place| place.point.numbers.get(name).copied());
        real(name.to_owned(), values)
    }));
    columns
}

/// The columns with which every table begins.
fn without_keys<'a>(lines: &(impl Iterator<Item = Place<'a>> + Clone)) -> Vec<Column> {
    vec![
        text("answer", lines.clone().map(|place| place.label)),
        text("backend", lines.clone().map(|place| place.answer.backend.as_str())),
        whole("point", lines.clone().map(|place| place.number as u64)),
    ]
}

fn text<'a>(name: &str, values: impl Iterator<Item = &'a str>) -> Column {
    let mut words: IndexSet<&str> = IndexSet::new();
    // The rows of a point follow each other, and have the same text in memory: a word is looked up
    // for the first of them.
    let mut last: Option<(&str, u32)> = None;
    let rows = values.map(|value| match last {
        Some((text, row)) if std::ptr::eq(text, value) => row,
        _ => last.insert((value, words.insert_full(value).0 as u32)).1,
    });
    let rows = rows.collect();
    let words = words.into_iter().map(str::to_owned).collect();
    Column { name: name.to_owned(), data: ColumnData::Text { words, rows } }
}

fn whole(name: &str, values: impl Iterator<Item = u64>) -> Column {
    Column { name: name.to_owned(), data: ColumnData::Whole(values.collect()) }
}

fn real(name: String, values: impl Iterator<Item = Option<f64>>) -> Column {
    let values = values.map(|value| value.unwrap_or(f64::NAN)).collect();
    Column { name, data: ColumnData::Real(values) }
}
