//! Reports: one HTML file without scripts and without anything from elsewhere.

use gridhaul_scenario::Answer;

use crate::chart::Chart;

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
}

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
    report.title.to_owned()
}

/// The charts that a report of these answers shows, in order.
#[must_use]
pub fn charts(answers: &[(String, &Answer)]) -> Vec<NamedChart> {
    let _ = answers;
    Vec::new()
}
