//! Reports: one HTML file without scripts and without anything from elsewhere.

mod delay_distribution;
mod description;
mod page;
mod single_point;
mod sweep;
mod table;
mod time_series;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric};

use crate::chart::Chart;
use crate::text_table::TextTable;
pub use page::PAGE_STYLE;
pub(crate) use sweep::swept_keys;
pub use table::table_element;

/// What a report is made of.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report<'a> {
    /// Heading; empty: the title of the first answer.
    pub title: &'a str,
    /// Description of the scenario, as Markdown.
    pub description: &'a str,
    /// Answers to the same scenario, each under its label (a backend, a variant). One is the usual
    /// case; several are drawn into the same axes.
    pub answers: &'a [(String, &'a Answer)],
    /// The merged scenario.
    pub scenario_toml: &'a str,
    /// What stands before everything else.
    pub summary: Summary<'a>,
}

/// The summary of a report: what was found out, before the answers that it rests on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary<'a> {
    /// The result in some sentences, in the place of those that are made from the answers; paragraphs
    /// are separated by empty lines.
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

/// The charts that a report of these answers shows, the one that answers most first.
#[must_use]
pub fn charts(answers: &[(String, &Answer)]) -> Vec<NamedChart> {
    let keys = sweep::swept_keys(answers);
    let mut ranked =
        if keys.is_empty() { single_point::charts(answers) } else { sweep::charts(answers, &keys) };
    ranked.extend(delay_distribution::charts(answers, &keys));
    ranked.extend(
        time_series::charts(answers, &[])
            .into_iter()
            .map(|chart| Ranked { rank: time_series::rank(&chart), chart }),
    );
    // Equal ranks stay in the order in which they were made.
    ranked.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    let mut charts: Vec<NamedChart> = ranked.into_iter().map(|ranked| ranked.chart).collect();
    distinct(&mut charts);
    charts
}

/// A chart and how much of the question it answers: the weight of what it shows, from 0 to 1, times
/// how much that differs between the points, flows or answers, from 0 to 1.
struct Ranked {
    rank: f64,
    chart: NamedChart,
}

/// The axis of a swept key whose values are numbers.
pub(crate) fn numeric_axis(answer: &Answer, key: &str) -> Option<crate::chart::Axis> {
    sweep::axis(&answer.points.iter().collect::<Vec<_>>(), key)
}

/// How much values differ, from 0 to 1: their range beyond the confidence intervals, relative to the
/// largest.
fn contrast<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    let known = estimates.filter(|it| it.mean.is_some_and(f64::is_finite));
    let mut low: Option<&Estimate> = None;
    let mut high: Option<&Estimate> = None;
    for estimate in known {
        if low.is_none_or(|it| estimate.mean < it.mean) {
            low = Some(estimate);
        }
        if high.is_none_or(|it| estimate.mean > it.mean) {
            high = Some(estimate);
        }
    }
    let (Some(low), Some(high)) = (low, high) else { return 0.0 };
    let (least, most) = (low.mean.unwrap_or(0.0), high.mean.unwrap_or(0.0));
    let half = low.ci95.unwrap_or(0.0).hypot(high.ci95.unwrap_or(0.0));
    let size = least.abs().max(most.abs());
    if size > 0.0 && most - least > half { ((most - least - half) / size).min(1.0) } else { 0.0 }
}

/// How much a metric tells a reader, from 0 to 1.
const fn weight(metric: Metric) -> f64 {
    match metric {
        Metric::CompletionTime | Metric::DeadlineMet => 1.0,
        Metric::Goodput => 0.95,
        Metric::DelayP98 | Metric::MessageLoss => 0.9,
        Metric::RttMean | Metric::DelayMean => 0.7,
        Metric::RetransmissionRatio | Metric::QueueMean | Metric::Fairness => 0.5,
        Metric::Timeouts | Metric::Utilisation | Metric::LossRatio => 0.4,
        _ => 0.3,
    }
}

/// The charts of what an answer records over time. The points of its sweep go by these names, or by
/// their parameters where there is none.
#[must_use]
pub fn charts_over_time(answer: &Answer, points: &[String]) -> Vec<NamedChart> {
    let mut charts = time_series::charts(&[(String::new(), answer)], points);
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
    time_series::chart_of(answer, points, (title, column, of))
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
