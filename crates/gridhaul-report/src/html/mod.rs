//! Reports: one HTML file without scripts and without anything from elsewhere.

mod page;
mod series;
mod single;
mod sweep;

use gridhaul_scenario::Answer;

use crate::chart::Chart;
use crate::text::TextTable;
pub use page::{PAGE_STYLE, table_element};

/// What a report is made of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report<'a> {
    /// Heading; empty: the title of the first answer.
    pub title: &'a str,
    /// Story of the scenario; paragraphs are separated by empty lines.
    pub description: &'a str,
    /// Answers to the same scenario, each under its label (a backend, a variant). One is the usual
    /// case; several are drawn into the same axes.
    pub answers: &'a [(String, &'a Answer)],
    /// The merged scenario.
    pub scenario_toml: &'a str,
    /// What stands before everything else.
    pub opening: Opening<'a>,
}

/// The opening of a report: what was found out, before the answers that it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Opening<'a> {
    /// The finding in some sentences; paragraphs are separated by empty lines.
    pub finding: &'a str,
    /// Its tables, under their own titles.
    pub tables: &'a [TextTable],
    /// Its charts.
    pub charts: &'a [NamedChart],
    /// Heading of the tables and charts of the answers.
    pub answers: &'a str,
}

/// What the title of a chart of censored means ends with.
const CENSORED: &str = " (censored: without unfinished transfers)";

/// A chart of a report, as it is written to a file of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedChart {
    /// File name without its ending, unique in the report: letters, digits, `-`.
    pub name: String,
    /// Heading of the part of the report that shows it.
    pub section: String,
    /// The chart.
    pub chart: Chart,
}

/// The report as one HTML file.
#[must_use]
pub fn html(report: &Report<'_>) -> String {
    page::page(report, &charts(report.answers))
}

/// The charts that a report of these answers shows, in order.
#[must_use]
pub fn charts(answers: &[(String, &Answer)]) -> Vec<NamedChart> {
    let keys = sweep::swept_keys(answers);
    let mut charts =
        if keys.is_empty() { single::charts(answers) } else { sweep::charts(answers, &keys) };
    charts.extend(series::charts(answers, &[]));
    distinct(&mut charts);
    charts
}

/// The charts of what an answer records over time. The points of its sweep go by these names, or by
/// their parameters where there is none.
#[must_use]
pub fn charts_over_time(answer: &Answer, points: &[String]) -> Vec<NamedChart> {
    let mut charts = series::charts(&[(String::new(), answer)], points);
    distinct(&mut charts);
    charts
}

/// One quantity over time (a column of a recorded series) of one flow or direction, with a line for
/// each point of the sweep; `None` where it was not recorded.
#[must_use]
pub fn chart_over_time(
    answer: &Answer,
    points: &[String],
    (title, column, of): (&str, &str, &str),
) -> Option<Chart> {
    series::chart_of(answer, points, (title, column, of))
}

/// Gives each chart a name of its own.
fn distinct(charts: &mut [NamedChart]) {
    let mut names = std::collections::BTreeSet::new();
    for chart in charts {
        let base = chart.name.clone();
        let mut number = 2;
        while !names.insert(chart.name.clone()) {
            chart.name = format!("{base}-{number}");
            number += 1;
        }
    }
}

/// A file name of letters, digits and single `-`.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars().take(80) {
        match c {
            _ if c.is_ascii_alphanumeric() => out.push(c.to_ascii_lowercase()),
            _ if !out.is_empty() && !out.ends_with('-') => out.push('-'),
            _ => {}
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "chart".to_owned() } else { out.to_owned() }
}

/// The text with a capital at its start.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
