//! Table, box plots and report of a matrix.

use gridhaul_report::TextTable;
use gridhaul_report::chart::{Axis as ChartAxis, Chart};
use gridhaul_report::format::UNKNOWN;

use super::{Axis, Done, PROTOCOL};
use crate::experiment::cells::CellResult;
use crate::report::{Section, box_plot, page};

/// Headings of the numbers of a measurement.
const NUMBERS: [&str; 9] =
    ["messages", "missing", "p2 (ms)", "p25", "p50", "p75", "p98", "max", "mean"];

/// A row for each measurement.
pub(super) fn table(axes: &[Axis], done: &[Done]) -> TextTable {
    let rows = done.iter().enumerate().map(|(number, measurement)| {
        let values =
            measurement.values.iter().map(|value| value.clone().unwrap_or_else(|| UNKNOWN.into()));
        let keys = std::iter::once((number + 1).to_string()).chain(values);
        keys.chain(numbers(measurement)).collect()
    });
    let headings = axes.iter().map(|axis| axis.name.as_str());
    TextTable {
        title: "Latency from the send time".into(),
        headers: std::iter::once("no.").chain(headings).chain(NUMBERS).map(String::from).collect(),
        rows: rows.collect(),
        key_columns: 1 + axes.len(),
        note: Some(
            "* the generator was late: the load was not exactly the intended one. – before the \
             numbers: the protocol does not have \
             the option."
                .into(),
        ),
    }
}

/// The report.
pub(super) fn html(axes: &[Axis], done: &[Done], table: &TextTable) -> String {
    let commands = TextTable {
        title: "Commands".into(),
        headers: ["no.", "command", "error"].map(String::from).to_vec(),
        rows: done
            .iter()
            .enumerate()
            .map(|(number, measurement)| {
                vec![
                    (number + 1).to_string(),
                    measurement.command.clone(),
                    measurement.error.clone().unwrap_or_default(),
                ]
            })
            .collect(),
        key_columns: 3,
        note: None,
    };
    let note = "Box: quartiles and mean; whiskers: 2nd and 98th percentile; 99.9th percentile and \
        largest value above.";
    let sections = [
        Section::Text(note.into()),
        Section::Charts("Latency from the send time", charts(axes, done)),
        Section::Table(table),
        Section::Table(&commands),
    ];
    let meta = format!("gridhaul {}, measure matrix", env!("CARGO_PKG_VERSION"));
    page("Matrix of measurements", &meta, &sections)
}

fn numbers(done: &Done) -> Vec<String> {
    let Some(result) = &done.result else {
        let reason = if done.error.is_some() { "failed" } else { "no message arrived" };
        return std::iter::once(reason.into())
            .chain(vec![String::new(); NUMBERS.len() - 1])
            .collect();
    };
    let mark = if result.invalid.is_empty() { "" } else { " *" };
    let times = [
        Some(result.p2_s),
        Some(result.p25_s),
        result.p50_s,
        Some(result.p75_s),
        Some(result.p98_s),
        Some(result.max_s),
        Some(result.mean_s),
    ];
    let ms = times
        .map(|time| time.map_or_else(|| UNKNOWN.into(), |seconds| format!("{:.3}", seconds * 1e3)));
    let counts = [format!("{}{mark}", result.messages), result.missing.to_string()];
    counts.into_iter().chain(ms).collect()
}

/// A chart for each combination of all axes with several values but two. Of these two, the
/// protocols (or another axis, with one protocol) are groups, and the values of the last one boxes
/// within them.
fn charts(axes: &[Axis], done: &[Done]) -> Vec<Chart> {
    let varied: Vec<_> = (0..axes.len()).filter(|&index| axes[index].values.len() > 1).collect();
    let protocols = varied.iter().copied().find(|&index| axes[index].name == PROTOCOL);
    // With a single axis there are boxes without groups.
    let last_but_one = varied.len().checked_sub(2).or(varied.len().checked_sub(1));
    let groups = protocols.or(last_but_one.map(|index| varied[index]));
    let series = varied.iter().copied().rfind(|&index| Some(index) != groups);
    let is_outer = |index: &usize| Some(*index) != groups && Some(*index) != series;
    let outer: Vec<_> = varied.into_iter().filter(is_outer).collect();
    let name = |row: &Done, axis: Option<usize>| {
        let Some(index) = axis else { return String::new() };
        let value = row.values[index].as_deref().unwrap_or(UNKNOWN);
        format!("{} {value}", axes[index].name)
    };
    let title = |row: &Done| {
        let parts: Vec<_> = outer.iter().map(|&index| name(row, Some(index))).collect();
        if parts.is_empty() { "Latency".to_owned() } else { parts.join(", ") }
    };
    let mut charts = Vec::new();
    for heading in distinct(done.iter().map(title)) {
        let cells: Vec<_> = done.iter().filter(|row| title(row) == heading).collect();
        let group_names = distinct(cells.iter().map(|row| name(row, groups)));
        let plot = box_plot(heading, ChartAxis::new("latency", "s").log(), group_names.clone());
        let plot = distinct(cells.iter().map(|row| name(row, series))).into_iter().fold(
            plot,
            |plot, part| {
                let boxes = group_names.iter().map(|group| {
                    let is_here =
                        |row: &&&Done| name(row, groups) == *group && name(row, series) == part;
                    cells.iter().find(is_here)?.result.as_ref().map(CellResult::statistics)
                });
                plot.with(part.clone(), boxes.collect::<Vec<_>>())
            },
        );
        charts.push(plot.into());
    }
    charts
}

/// Each value once, in the order of its first occurrence.
fn distinct(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}
