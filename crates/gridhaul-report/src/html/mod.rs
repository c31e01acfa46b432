//! HTML reports: a single file without scripts or external resources.

mod delay_distribution;
mod description;
mod page;
mod recorded_lines;
mod single_point;
mod sweep;
mod table;
mod thinned_points;
mod time_series;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{Estimate, Metric};

use crate::chart::Chart;
use crate::swept_keys::swept_keys;
use crate::text_table::TextTable;
pub use page::{PAGE_STYLE, escaped};
pub use table::table_element;

/// The content of a report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Report<'a> {
    /// Heading; if empty, the title of the first answer.
    pub title: &'a str,
    /// Description of the scenario, as Markdown.
    pub description: &'a str,
    /// Answers to the same scenario, each with its label (a backend, a scenario variant). Several
    /// answers share the axes of charts.
    pub answers: &'a [(String, &'a Answer)],
    /// The merged scenario.
    pub scenario_toml: &'a str,
    /// Result, tables and charts at the top of the report.
    pub summary: Summary<'a>,
}

/// The summary of a report, placed before the answers on which it is based.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Summary<'a> {
    /// The result as text, instead of the sentences generated from the answers; paragraphs are
    /// separated by empty lines.
    pub finding: &'a str,
    /// Tables of the summary, with their titles.
    pub tables: &'a [TextTable],
    /// Charts of the summary.
    pub charts: &'a [NamedChart],
    /// Heading of the tables and charts of the answers.
    pub answers: &'a str,
}

/// Suffix of the title of a chart with censored means.
const CENSORED: &str = " (censored: without unfinished transfers)";

/// A chart of a report, which can also be written to a separate file.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedChart {
    /// File name without extension, unique in the report: letters, digits, `-`.
    pub name: String,
    /// Heading of the section of the report that contains the chart.
    pub section: String,
    /// The chart.
    pub chart: Chart,
}

/// The report as one HTML file.
#[must_use]
pub fn html(report: &Report<'_>) -> String {
    page::page(report, &charts(report.answers))
}

/// The charts of a report of these answers, the most relevant first.
#[must_use]
pub fn charts(answers: &[(String, &Answer)]) -> Vec<NamedChart> {
    let keys = swept_keys(answers);
    let mut ranked =
        if keys.is_empty() { single_point::charts(answers) } else { sweep::charts(answers, &keys) };
    ranked.extend(delay_distribution::charts(answers, &keys));
    ranked.extend(
        time_series::charts(answers, &[])
            .into_iter()
            .map(|chart| Ranked { rank: time_series::rank(&chart), chart }),
    );
    // Charts of equal rank keep their order (stable sort).
    ranked.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    let mut charts: Vec<NamedChart> = ranked.into_iter().map(|ranked| ranked.chart).collect();
    make_names_unique(&mut charts);
    charts
}

/// A chart and its relevance: the weight of its metric, from 0 to 1, times the contrast between
/// points, flows or answers, from 0 to 1.
struct Ranked {
    rank: f64,
    chart: NamedChart,
}

/// The contrast of values, from 0 to 1: their range beyond the confidence intervals, relative to
/// the largest value.
fn contrast<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> f64 {
    let known = estimates.filter(|extreme| extreme.mean.is_some_and(f64::is_finite));
    let mut low: Option<&Estimate> = None;
    let mut high: Option<&Estimate> = None;
    for estimate in known {
        if low.is_none_or(|extreme| estimate.mean < extreme.mean) {
            low = Some(estimate);
        }
        if high.is_none_or(|extreme| estimate.mean > extreme.mean) {
            high = Some(estimate);
        }
    }
    let (Some(low), Some(high)) = (low, high) else { return 0.0 };
    let (minimum, maximum) = (low.mean.unwrap_or(0.0), high.mean.unwrap_or(0.0));
    let half = low.ci95.unwrap_or(0.0).hypot(high.ci95.unwrap_or(0.0));
    let size = minimum.abs().max(maximum.abs());
    if size > 0.0 && maximum - minimum > half {
        ((maximum - minimum - half) / size).min(1.0)
    } else {
        0.0
    }
}

/// The importance of a metric to a reader, from 0 to 1.
const fn weight(metric: Metric) -> f64 {
    match metric {
        // The distribution over members is recorded by request.
        Metric::CompletionTime | Metric::DeadlineMet | Metric::MemberDeliveredMin => 1.0,
        Metric::Goodput => 0.95,
        Metric::DelayP98 | Metric::MessageLoss => 0.9,
        Metric::RttMean | Metric::DelayMean => 0.7,
        Metric::RetransmissionRatio | Metric::QueueMean | Metric::Fairness => 0.5,
        Metric::Timeouts | Metric::Utilisation | Metric::LossRatio => 0.4,
        _ => 0.3,
    }
}

/// The charts of the recorded time series of an answer. `points` are the names of the points of its
/// sweep; points without a name are labelled with their parameters.
#[must_use]
pub fn charts_over_time(answer: &Answer, points: &[String]) -> Vec<NamedChart> {
    let mut charts = time_series::charts(&[(String::new(), answer)], points);
    make_names_unique(&mut charts);
    charts
}

/// One quantity over time (a column of a recorded series) of one flow or direction, with a line for
/// each point of the sweep; `None` if it was not recorded.
#[must_use]
pub fn chart_over_time(
    answer: &Answer,
    points: &[String],
    title: &str,
    column: &str,
    of: &str,
) -> Option<Chart> {
    time_series::chart_of(answer, points, title, column, of)
}

/// Makes the names of charts unique.
fn make_names_unique(charts: &mut [NamedChart]) {
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

/// Capitalises the first letter.
fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
