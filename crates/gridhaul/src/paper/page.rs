//! The report of a paper: its tables and charts on one page.

use std::fmt::Write;

use gridhaul_report::chart::{Axis, Bar, BarSeries, STYLE};
use gridhaul_report::html::{PAGE_STYLE, escaped, table_element};
use gridhaul_report::verdict::{comparison_table, count_table, summary_sentence};
use gridhaul_report::{BarChart, NamedChart, TextTable, chart_over_time, charts_over_time};
use gridhaul_scenario::answer::Estimate;

use super::check::{CheckedCell, quantity, tables};
use super::column_select::scaled;
use super::{Answers, Findings, Paper, Timeline, agreement_tables, claim_table, comparisons};

/// The report: one HTML file without scripts and external resources. It begins with the result in
/// one sentence and the table of all comparisons.
pub(crate) fn page(paper: &Paper, findings: &Findings, pictures: &[NamedChart]) -> String {
    let definition = &paper.definition;
    let title = escaped(&definition.title);
    let comparisons = comparisons(paper, findings);
    let mut body = format!(
        "<header>\n<h1>{title}</h1>\n<p class=\"meta\">{}</p>\n</header>\n<main>\n\
         <p><strong>{}</strong></p>\n",
        escaped(&definition.source),
        escaped(&summary_sentence(&comparisons)),
    );
    body += &marked(&comparison_table(&comparisons));
    with_heading(&mut body, &count_table(&comparisons));
    let skipped = findings.skipped_note();
    for paragraph in [Some(definition.note.as_str()), skipped.as_deref()].into_iter().flatten() {
        let _ = writeln!(body, "<p>{}</p>", escaped(paragraph));
    }
    if let Some(table) = &claim_table(&findings.claims) {
        with_heading(&mut body, table);
    }
    let tables = tables(paper, &findings.cells);
    for (name, heading) in &definition.table {
        let own: Vec<_> = pictures.iter().filter(|picture| picture.section == *heading).collect();
        let table = tables.iter().find(|table| table.title == *heading);
        if own.is_empty() && table.is_none() {
            continue;
        }
        let _ = writeln!(body, "<h2>{}</h2>\n<div class=\"charts\">", escaped(heading));
        for picture in own {
            let _ = writeln!(body, "<figure>{}</figure>", picture.chart.to_inline_svg());
        }
        body += "</div>\n<p></p>\n";
        if let Some(caption) = definition.caption.get(name) {
            let _ = writeln!(body, "<p>{}</p>", escaped(caption));
        }
        table.into_iter().for_each(|table| body += &marked(table));
    }
    for table in agreement_tables(paper, &findings.agreements) {
        with_heading(&mut body, &table);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n{body}\
         </main>\n<footer></footer>\n</body>\n</html>\n"
    )
}

/// The charts of all tables and figures; the section of each is its heading. Scenarios that record
/// delays are drawn over time, the others as bars.
pub(crate) fn pictures(paper: &Paper, findings: &Findings, answers: &Answers) -> Vec<NamedChart> {
    let mut pictures = Vec::new();
    for (name, heading) in &paper.definition.table {
        let cells = findings.cells.iter().filter(|cell| cell.expected.table == *name);
        let cells: Vec<_> = cells.collect();
        let mut own: Vec<NamedChart> = Vec::new();
        for experiment in &paper.definition.scenario {
            let scenario = experiment.name();
            if cells.iter().any(|cell| cell.expected.scenario == scenario)
                && let Some(answer) = answers.main(scenario)
            {
                let charts = charts_over_time(answer, &experiment.points);
                own.extend(charts.into_iter().filter(|chart| chart.name.starts_with("delays")));
            }
        }
        if own.is_empty() {
            own = bars(&cells);
        }
        for picture in &mut own {
            picture.name = format!("table-{name}-{}", picture.name).replace([' ', '.'], "-");
        }
        let figures = paper.definition.figure.iter().filter(|figure| figure.table == *name);
        own.extend(figures.map(|figure| figure.chart(&findings.curves)));
        let timelines = paper.definition.timeline.iter().filter(|timeline| timeline.table == *name);
        own.extend(timelines.filter_map(|timeline| chart_of(paper, timeline, answers)));
        for mut picture in own {
            picture.section.clone_from(heading);
            pictures.push(picture);
        }
    }
    pictures
}

/// A quantity over time, from the main answer to the scenario.
fn chart_of(paper: &Paper, timeline: &Timeline, answers: &Answers) -> Option<NamedChart> {
    let answer = answers.main(&timeline.scenario)?;
    let experiment =
        paper.definition.scenario.iter().find(|scenario| scenario.name() == timeline.scenario)?;
    let Timeline { name, title, column, of, .. } = timeline;
    let chart = chart_over_time(answer, &experiment.points, title, column, of)?;
    Some(NamedChart { name: format!("figure-{name}"), section: String::new(), chart })
}

fn with_heading(body: &mut String, table: &TextTable) {
    let _ = writeln!(body, "<h2>{}</h2>", escaped(&table.title));
    *body += &marked(table);
    for line in table.note.iter().flat_map(|note| note.lines()) {
        let _ = writeln!(body, "<p class=\"note\">{}</p>", escaped(line));
    }
}

/// An HTML table with failures in bold.
fn marked(table: &TextTable) -> String {
    table_element(table).replace(">FAIL", "><strong>FAIL</strong>")
}

/// A chart for each quantity of a table.
fn bars(cells: &[&CheckedCell]) -> Vec<NamedChart> {
    let mut quantities: Vec<&str> = Vec::new();
    for cell in cells {
        if !quantities.contains(&cell.expected.quantity.as_str()) {
            quantities.push(&cell.expected.quantity);
        }
    }
    let chart = |name: &&str| {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.expected.quantity == **name).collect();
        // The bars have base units: see `series`.
        let unit = cells.first().map_or("", |cell| match cell.expected.unit.text() {
            "kbit/s" | "Mbit/s" => "bit/s",
            "ms" => "s",
            unit => unit,
        });
        let axis = Axis::new(quantity(name), unit).including(0.0);
        let rows = cells.iter().map(|cell| cell.expected.row.clone());
        let all = [
            series("paper", &cells, |cell| Bar::from(cell.expected.paper)),
            series("ns-2", &cells, |cell| Bar {
                value: cell.expected.ns2_mean,
                ci95: cell.expected.ns2_ci95,
            }),
            series("gridhaul", &cells, |cell| Bar::from(cell.gridhaul)),
        ];
        let known =
            all.into_iter().filter(|series| series.bars.iter().any(|bar| bar.value.is_some()));
        let chart = known.fold(BarChart::new(quantity(name), axis, rows), BarChart::with);
        NamedChart { name: (*name).to_owned(), section: String::new(), chart: chart.into() }
    };
    quantities.iter().map(chart).collect()
}

fn series(name: &str, cells: &[&&CheckedCell], bar: impl Fn(&CheckedCell) -> Bar) -> BarSeries {
    let bars = cells.iter().map(|cell| {
        let Bar { value, ci95 } = bar(cell);
        let in_base = cell.expected.unit.in_base();
        Bar::from(scaled(Estimate { mean: value, ci95, ..Estimate::default() }, in_base))
    });
    BarSeries::new(name, bars)
}
