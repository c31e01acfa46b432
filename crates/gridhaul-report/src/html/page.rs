//! The HTML page of a report.

use std::fmt::Write;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::units::counted;
use indexmap::IndexMap;

use super::table::{table_with_heading, table_with_note};
use super::{NamedChart, Report, description};
use crate::chart::STYLE;
use crate::deadline_checks::deadline_checks;
use crate::similar_warnings::shown_warnings;
use crate::text_table::{Detail, TextTable, tables};

/// Style sheet of all pages, in addition to that of the charts.
pub const PAGE_STYLE: &str = include_str!("page.css");

/// Maximum numbers of charts and of deadline checks that are not folded.
const CHARTS_OPEN: usize = 4;
const DEADLINE_ROWS_MAX: usize = 6;

/// Writes the page. Writing to a `String` cannot fail, so results are dropped.
pub(super) fn page(report: &Report<'_>, charts: &[NamedChart]) -> String {
    let title = match (report.title, report.answers.first()) {
        ("", Some((_, answer))) => answer.title.as_str(),
        (title, _) => title,
    };
    let mut out = String::new();
    let heading = escaped(title);
    let _ = writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"generator\" content=\"gridhaul\">\n<title>{heading}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}\n</style>\n</head>\n<body>\n<header>\n<h1>{heading}</h1>\n\
         <p class=\"meta\">{}</p>\n</header>\n<main>",
        escaped(&answer_line(report)),
    );
    let (open, folded) = split_charts(report.summary.charts, charts);
    // The charts of a summary explain its first sentence, and warnings may be long.
    let (mut paragraphs, charts_first) = (result(report), !report.summary.charts.is_empty());
    let rest =
        if charts_first { paragraphs.split_off(paragraphs.len().min(1)) } else { Vec::new() };
    section(&mut out, "class=\"result\" aria-label=\"Result\"", &paragraphs);
    if charts_first {
        chart_section(&mut out, &open);
    }
    section(&mut out, "class=\"description\" aria-label=\"Explanation\"", &rest);
    warnings(&mut out, report);
    let deadline_checks = deadline_checks(report.answers);
    if let Some(table) = deadline_checks.iter().find(|table| table.rows.len() <= DEADLINE_ROWS_MAX)
    {
        table_with_heading(&mut out, table);
    }
    if !charts_first {
        chart_section(&mut out, &open);
    }
    for table in report.summary.tables {
        table_with_heading(&mut out, table);
    }
    let description = description::rendered(report.description);
    if !description.is_empty() {
        let _ = writeln!(out, "<section class=\"description\">\n{description}</section>");
    }
    if !report.summary.answers.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(report.summary.answers));
    }
    details(
        &mut out,
        report,
        &folded,
        deadline_checks.filter(|item| item.rows.len() > DEADLINE_ROWS_MAX),
    );
    out += "</main>\n";
    footer(&mut out, report);
    out += "</body>\n</html>\n";
    out
}

/// Text for HTML, in elements and in quoted attributes. Control characters, which HTML does not
/// permit, are replaced by spaces.
#[must_use]
pub fn escaped(text: &str) -> String {
    // Most texts are numbers and names, which stay as they are.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && !b"&<>\"'".contains(&byte);
    if text.bytes().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            '\n' | '\t' => out.push(c),
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

/// The line on backends, points and runs.
fn answer_line(report: &Report<'_>) -> String {
    let answers = report.answers.iter().map(|(label, answer)| {
        let label = if label.is_empty() || *label == answer.backend {
            answer.backend.clone()
        } else {
            format!("{label} ({})", answer.backend)
        };
        let points = answer.points.len();
        let points =
            if points == 1 { String::new() } else { format!("{} of ", counted(points, "point")) };
        let equal = if is_replicated(answer) && answer.points.iter().all(|item| item.deterministic)
        {
            ", deterministic"
        } else {
            ""
        };
        format!("{label}: {points}{}{equal}", runs(answer))
    });
    let mut text = answers.collect::<Vec<_>>().join(" · ");
    let has_intervals = |answer: &Answer| {
        is_replicated(answer) && answer.points.iter().any(|point| !point.deterministic)
    };
    if report.answers.iter().any(|(_, answer)| has_intervals(answer)) {
        text += " · ± is the 95 % confidence interval of the mean";
    }
    text
}

/// The number of runs of each point, or their range.
fn runs(answer: &Answer) -> String {
    let of_points = || answer.points.iter().map(|point| answer.replications_of(point));
    match (of_points().min(), of_points().max()) {
        (Some(fewest), Some(most)) if fewest < most => format!("{fewest} to {most} runs"),
        (_, Some(most)) => counted(most, "run"),
        _ => counted(answer.replications, "run"),
    }
}

const fn is_replicated(answer: &Answer) -> bool {
    answer.replications > 1
}

/// The paragraphs of the result at the top of a report.
fn result(report: &Report<'_>) -> Vec<String> {
    let given = report.summary.finding.split("\n\n").map(str::trim).filter(|item| !item.is_empty());
    let paragraphs: Vec<String> = given.map(str::to_owned).collect();
    if paragraphs.is_empty() { crate::result::result(report.answers) } else { paragraphs }
}

fn section(out: &mut String, attributes: &str, paragraphs: &[String]) {
    if paragraphs.is_empty() {
        return;
    }
    let _ = writeln!(out, "<section {attributes}>");
    for paragraph in paragraphs {
        let _ = writeln!(out, "<p>{}</p>", with_code_spans(paragraph));
    }
    *out += "</section>\n";
}

fn chart_section(out: &mut String, charts: &[&NamedChart]) {
    *out += "<section class=\"charts\" aria-label=\"Charts\">\n";
    charts.iter().for_each(|chart| figure(out, chart));
    *out += "</section>\n";
}

/// Splits the charts into visible ones, those of the summary first, and folded ones.
fn split_charts<'a>(
    summary: &'a [NamedChart],
    charts: &'a [NamedChart],
) -> (Vec<&'a NamedChart>, Vec<&'a NamedChart>) {
    // With charts in the summary, the charts of the answers are folded.
    let open = if summary.is_empty() { CHARTS_OPEN } else { summary.len().min(CHARTS_OPEN) };
    let mut all: Vec<&NamedChart> = summary.iter().chain(charts).collect();
    let folded = all.split_off(open.min(all.len()));
    (all, folded)
}

/// The folded sections: other charts, all metrics, the scenario.
fn details(
    out: &mut String,
    report: &Report<'_>,
    charts: &[&NamedChart],
    deadline_checks: Option<TextTable>,
) {
    let mut sections: Vec<&str> = Vec::new();
    for chart in charts {
        if !sections.contains(&chart.section.as_str()) {
            sections.push(&chart.section);
        }
    }
    sections.sort_unstable();
    if let Some(table) = deadline_checks {
        fold(out, &table.title, |out| table_with_note(out, &table));
    }
    for section in sections {
        let own: Vec<_> = charts.iter().filter(|chart| chart.section == section).collect();
        let count =
            format!("{} more {}", own.len(), if own.len() == 1 { "chart" } else { "charts" });
        fold(out, &format!("{section}: {count}"), |out| {
            *out += "<div class=\"charts\">\n";
            own.iter().for_each(|chart| figure(out, chart));
            *out += "</div>\n";
        });
    }
    for table in tables(report.answers, Detail::Full) {
        fold(out, &format!("{} in numbers", table.title), |out| table_with_note(out, &table));
    }
    if !report.scenario_toml.trim().is_empty() {
        let toml = escaped(report.scenario_toml.trim_end());
        fold(out, "Scenario", |out| {
            let _ = writeln!(out, "<pre><code>{toml}</code></pre>");
        });
    }
}

/// A folded section of the page, which is expanded in print.
fn fold(out: &mut String, summary: &str, content: impl FnOnce(&mut String)) {
    let _ = writeln!(out, "<details>\n<summary>{}</summary>", escaped(summary));
    content(out);
    *out += "</details>\n";
}

fn warnings(out: &mut String, report: &Report<'_>) {
    // Several backends give the same warning about a scenario.
    let mut items: IndexMap<&Warning, Vec<&str>> = IndexMap::new();
    for (label, answer) in report.answers {
        for warning in &answer.warnings {
            items.entry(warning).or_default().push(label);
        }
    }
    let hashes = report.answers.iter().map(|(_, answer)| &answer.scenario_sha256);
    let differ = hashes.collect::<std::collections::BTreeSet<_>>().len() > 1;
    if items.is_empty() && !differ {
        return;
    }
    *out += "<aside class=\"warnings\" aria-label=\"Warnings\">\n<h2>Warnings</h2>\n<ul>\n";
    if differ {
        *out += "<li>The answers are for different scenarios: their hashes at the end of the \
            page differ.</li>\n";
    }
    for shown in shown_warnings(items.keys().copied()) {
        let warning = shown.warning;
        let is_of_one = report.answers.len() == 1;
        let label = escaped(&items[warning].join(", "));
        let answer_label = if is_of_one { String::new() } else { format!("{label}, ") };
        let about = escaped(&warning.about);
        let message = with_code_spans(&format!("{}{}", warning.message, shown.remark()));
        let _ = writeln!(out, "<li>{answer_label}<code>{about}</code>: {message}</li>");
    }
    *out += "</ul>\n</aside>\n";
}

/// Converts text between backticks to code elements.
fn with_code_spans(text: &str) -> String {
    let parts: Vec<_> = text.split('`').map(escaped).collect();
    if parts.len() % 2 == 0 {
        // An odd number of backticks is kept as text.
        return parts.join("`");
    }
    let spans = parts.iter().enumerate().map(|(at, part)| match at % 2 {
        0 => part.to_string(),
        _ => format!("<code>{part}</code>"),
    });
    spans.collect()
}

fn figure(out: &mut String, chart: &NamedChart) {
    let svg = chart.chart.to_inline_svg();
    let _ = writeln!(out, "<figure id=\"{}\">\n{svg}\n</figure>", chart.name);
}

fn footer(out: &mut String, report: &Report<'_>) {
    *out += "<footer>\n<table>\n";
    for (label, answer) in report.answers {
        let label = if label.is_empty() { &answer.backend } else { label };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>gridhaul {}, backend {}, seed {}, scenario SHA-256 \
             <code>{}</code></td></tr>",
            escaped(label),
            escaped(&answer.gridhaul),
            escaped(&answer.backend),
            answer.seed,
            escaped(&answer.scenario_sha256),
        );
    }
    *out += "</table>\n</footer>\n";
}

#[cfg(test)]
mod tests {
    use super::with_code_spans;

    #[test]
    fn backticks_in_pairs_become_code() {
        assert_eq!(with_code_spans("use `tc <sim>`."), "use <code>tc &lt;sim&gt;</code>.");
        assert_eq!(with_code_spans("no code"), "no code");
        assert_eq!(with_code_spans("one ` alone"), "one ` alone");
    }
}
