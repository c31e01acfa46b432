//! The columns of each table.

use std::collections::BTreeSet;

use indexmap::IndexSet;

use super::TableError;
use super::lines::{ParameterLine, Place, RowLine, places};
use crate::answer::{Answer, Column, ColumnData, Estimate, MemberRows, Metric, Scope};

type Answers<'a> = [(String, &'a Answer)];

/// Flows and directions of links, or those of a scope, with means.
pub(super) fn of_rows(answers: &Answers<'_>, scope: Option<Scope>, only: &[Metric]) -> Vec<Column> {
    let lines: Vec<RowLine<'_>> = places(answers)
        .flat_map(|place| place.rows(scope))
        .filter(|line| line.has_any(only))
        .collect();
    let metrics = selected(lines.iter().flat_map(|line| line.row.metrics.keys()), only);
    let mut columns = identity(&lines.iter().map(|line| line.place));
    if scope.is_none() {
        columns.push(text("kind", lines.iter().map(|line| line.kind)));
    }
    columns.push(text("name", lines.iter().map(|line| line.row.name.as_str())));
    columns.push(whole("count", lines.iter().map(|line| line.row.count)));
    for metric in metrics {
        let estimates = lines.iter().map(|line| line.row.metrics.get(&metric));
        let column = |name: String, value: fn(&Estimate) -> Option<f64>| {
            real(name, estimates.clone().map(|known| known.and_then(value)))
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
    let mut lines: Vec<(u32, RowLine<'_>)> = Vec::new();
    for place in places(answers) {
        place.check_replications()?;
        for replication in 0..place.replications() {
            let rows = place.rows(None).filter(|line| line.has_any(only));
            lines.extend(rows.map(|line| (replication, line)));
        }
    }
    let metrics = selected(lines.iter().flat_map(|(_, line)| line.row.metrics.keys()), only);
    let mut columns = identity(&lines.iter().map(|(_, line)| line.place));
    columns.extend([
        whole("replication", lines.iter().map(|(replication, _)| u64::from(*replication))),
        text("kind", lines.iter().map(|(_, line)| line.kind)),
        text("name", lines.iter().map(|(_, line)| line.row.name.as_str())),
        whole("count", lines.iter().map(|(_, line)| line.row.count)),
    ]);
    columns.extend(metrics.into_iter().map(|metric| {
        let values = lines.iter().map(|(replication, line)| line.value(metric, *replication));
        real(metric.info().column.to_owned(), values)
    }));
    Ok(columns)
}

/// Members of flows in each replication.
pub(super) fn of_members(answers: &Answers<'_>, only: &[Metric]) -> Vec<Column> {
    let rows: Vec<(Place<'_>, &MemberRows)> = places(answers)
        .flat_map(|place| place.point.members.iter().map(move |rows| (place, rows)))
        .collect();
    let count = |rows: &MemberRows| rows.metrics.values().map(Vec::len).max().unwrap_or(0);
    let lines: Vec<(Place<'_>, &MemberRows, usize)> = rows
        .iter()
        .flat_map(|&(place, rows)| (0..count(rows)).map(move |member| (place, rows, member)))
        .collect();
    let metrics = selected(rows.iter().flat_map(|(_, rows)| rows.metrics.keys()), only);
    let mut columns = identity(&lines.iter().map(|(place, ..)| *place));
    columns.extend([
        whole("replication", lines.iter().map(|(_, rows, _)| u64::from(rows.replication))),
        text("name", lines.iter().map(|(_, rows, _)| rows.flow.as_str())),
        whole("member", lines.iter().map(|(_, _, member)| *member as u64)),
    ]);
    columns.extend(metrics.into_iter().map(|metric| {
        let value = |(_, rows, member): &(_, &MemberRows, usize)| {
            *rows.metrics.get(&metric)?.get(*member)?
        };
        real(metric.info().column.to_owned(), lines.iter().map(value))
    }));
    columns
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
    let rows = values.map(|value| words.insert_full(value).0 as u32).collect();
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
