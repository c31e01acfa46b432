//! The page around charts and tables.

use std::fmt::Write;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::Warning;

use super::{NamedChart, Report};
use crate::chart::STYLE;
use crate::text::{Detail, TextTable, tables};
use crate::verdicts::verdicts;

/// Style of all pages, beside that of the charts.
pub const PAGE_STYLE: &str = include_str!("page.css");

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
        escaped(&asked(report)),
    );
    opening(&mut out, report);
    warnings(&mut out, report);
    if let Some(table) = verdicts(report.answers) {
        table_html(&mut out, &table);
    }
    let paragraphs = report.description.split("\n\n").map(str::trim);
    for paragraph in paragraphs.filter(|paragraph| !paragraph.is_empty()) {
        let _ = writeln!(out, "<p>{}</p>", escaped(paragraph));
    }
    figures(&mut out, charts);
    for table in tables(report.answers, Detail::Full) {
        table_html(&mut out, &table);
    }
    if !report.scenario_toml.trim().is_empty() {
        let _ = writeln!(
            out,
            "<details open>\n<summary>Scenario</summary>\n<pre><code>{}</code></pre>\n</details>",
            escaped(report.scenario_toml.trim_end()),
        );
    }
    out += "</main>\n";
    footer(&mut out, report);
    out += "</body>\n</html>\n";
    out
}

/// Text for HTML, in elements and in quoted attributes.
fn escaped(text: &str) -> String {
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

/// One line on who answered and from how many runs.
fn asked(report: &Report<'_>) -> String {
    let answers = report.answers.iter().map(|(label, answer)| {
        let label = if label.is_empty() || *label == answer.backend {
            answer.backend.clone()
        } else {
            format!("{label} ({})", answer.backend)
        };
        let plural = |count: usize, word: &str| {
            format!("{count} {word}{}", if count == 1 { "" } else { "s" })
        };
        let points = answer.points.len();
        let points =
            if points == 1 { String::new() } else { format!("{} of ", plural(points, "point")) };
        let equal = if is_replicated(answer) && answer.points.iter().all(|it| it.deterministic) {
            ", deterministic"
        } else {
            ""
        };
        format!("{label}: {points}{}{equal}", plural(answer.repeats as usize, "run"))
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

const fn is_replicated(answer: &Answer) -> bool {
    answer.repeats > 1
}

fn opening(out: &mut String, report: &Report<'_>) {
    let opening = report.opening;
    for paragraph in opening.finding.split("\n\n").map(str::trim).filter(|text| !text.is_empty()) {
        let _ = writeln!(out, "<p><strong>{}</strong></p>", escaped(paragraph));
    }
    figures(out, opening.charts);
    for table in opening.tables {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
        *out += &table_element(table);
        if let Some(note) = &table.note {
            let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
        }
    }
    if !opening.answers.is_empty() {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(opening.answers));
    }
}

fn warnings(out: &mut String, report: &Report<'_>) {
    let mut items: Vec<(&str, &Warning)> = Vec::new();
    for (label, answer) in report.answers {
        items.extend(answer.warnings.iter().map(|warning| (label.as_str(), warning)));
    }
    let hashes = report.answers.iter().map(|(_, answer)| &answer.scenario_sha256);
    let differ = hashes.collect::<std::collections::BTreeSet<_>>().len() > 1;
    if items.is_empty() && !differ {
        return;
    }
    *out += "<aside class=\"warnings\" aria-label=\"Warnings\">\n<h2>Before you trust these numbers</h2>\n<ul>\n";
    if differ {
        *out += "<li>The answers are to different scenarios: their hashes, below, differ.</li>\n";
    }
    for (label, warning) in items {
        let who =
            if report.answers.len() > 1 { format!("{}, ", escaped(label)) } else { String::new() };
        let (about, message) = (escaped(&warning.about), escaped(&warning.message));
        let _ = writeln!(out, "<li>{who}<code>{about}</code>: {message}</li>");
    }
    *out += "</ul>\n</aside>\n";
}

fn figures(out: &mut String, charts: &[NamedChart]) {
    let mut section = "";
    for chart in charts {
        if chart.section != section {
            if !section.is_empty() {
                *out += "</div>\n";
            }
            section = &chart.section;
            let _ = writeln!(out, "<h2>{}</h2>\n<div class=\"charts\">", escaped(section));
        }
        let _ = writeln!(
            out,
            "<figure id=\"{}\">\n{}\n</figure>",
            chart.name,
            chart.chart.to_inline_svg()
        );
    }
    if !section.is_empty() {
        *out += "</div>\n";
    }
}

fn table_html(out: &mut String, table: &TextTable) {
    let _ = writeln!(out, "<h2>{} in numbers</h2>", escaped(&table.title));
    *out += &table_element(table);
    if let Some(note) = &table.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
}

/// A table as an element of a page, without heading and note.
#[must_use]
pub fn table_element(table: &TextTable) -> String {
    let title = escaped(&table.title);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title} in numbers\">\n<table>\n<thead><tr>",
    );
    for (column, header) in table.headers.iter().enumerate() {
        let class = if column < table.key_columns { "" } else { " class=\"n\"" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", escaped(header));
    }
    out += "</tr></thead>\n<tbody>\n";
    for row in &table.rows {
        out += "<tr>";
        for (column, cell) in row.iter().enumerate() {
            let cell = escaped(cell);
            let _ = if column < table.key_columns {
                write!(out, "<th scope=\"row\">{cell}</th>")
            } else {
                write!(out, "<td class=\"n\">{cell}</td>")
            };
        }
        out += "</tr>\n";
    }
    out += "</tbody>\n</table>\n</div>\n";
    out
}

fn footer(out: &mut String, report: &Report<'_>) {
    *out += "<footer>\n<table>\n";
    for (label, answer) in report.answers {
        let label = if label.is_empty() { &answer.backend } else { label };
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td>gridhaul {}, backend {}, seed {}, scenario SHA-256 <code>{}</code></td></tr>",
            escaped(label),
            escaped(&answer.gridhaul),
            escaped(&answer.backend),
            answer.seed,
            escaped(&answer.scenario_sha256),
        );
    }
    *out += "</table>\n</footer>\n";
}
