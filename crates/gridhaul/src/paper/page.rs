//! The report of a paper: its tables and charts on one page.

use std::collections::BTreeMap;
use std::fmt::Write;

use gridhaul_report::chart::{Axis, Bar, BarSeries, STYLE};
use gridhaul_report::html::{PAGE_STYLE, table_element};
use gridhaul_report::{BarChart, NamedChart, charts_over_time};
use gridhaul_scenario::answer::{Answer, Estimate};

use super::Paper;
use super::expected::scaled;
use super::judge::{Judged, quantity, tables};

/// One HTML file without scripts and without anything from elsewhere.
pub(crate) fn page(paper: &Paper, judged: &[Judged], pictures: &[NamedChart]) -> String {
    let about = &paper.about;
    let ok = judged.iter().filter(|cell| cell.ok).count();
    let title = escape(&about.title);
    let mut body = format!(
        "<header>\n<h1>{title}</h1>\n<p class=\"meta\">{}</p>\n</header>\n<main>\n<p>{}</p>\n\
         <p><strong>{ok} of {} figures within their tolerance.</strong></p>\n",
        escape(&about.source),
        escape(&about.note),
        judged.len(),
    );
    for table in tables(paper, judged) {
        let _ = writeln!(body, "<h2>{}</h2>\n<div class=\"charts\">", escape(&table.title));
        for picture in pictures.iter().filter(|picture| picture.section == table.title) {
            let _ = writeln!(body, "<figure>{}</figure>", picture.chart.to_inline_svg());
        }
        let failed = ("<td class=\"n\">FAIL<", "<td class=\"n\"><strong>FAIL</strong><");
        body += "</div>\n<p></p>\n";
        body += &table_element(&table).replace(failed.0, failed.1);
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n{body}\
         </main>\n<footer></footer>\n</body>\n</html>\n"
    )
}

/// The charts of all tables; the section of each is the heading of its table. Scenarios that record
/// delays are drawn over time, the others as bars.
pub(crate) fn pictures(
    paper: &Paper,
    judged: &[Judged],
    answers: &BTreeMap<String, Answer>,
) -> Vec<NamedChart> {
    let mut pictures = Vec::new();
    for (name, heading) in &paper.about.table {
        let cells: Vec<_> = judged.iter().filter(|cell| cell.expected.table == *name).collect();
        let mut own: Vec<NamedChart> = Vec::new();
        for experiment in &paper.about.scenario {
            let scenario = experiment.file.trim_end_matches(".toml");
            if cells.iter().any(|cell| cell.expected.scenario == scenario)
                && let Some(answer) = answers.get(scenario)
            {
                let charts = charts_over_time(answer, &experiment.points);
                own.extend(charts.into_iter().filter(|chart| chart.name.starts_with("delays")));
            }
        }
        if own.is_empty() {
            own = bars(&cells);
        }
        for mut picture in own {
            picture.name = format!("table-{name}-{}", picture.name).replace([' ', '.'], "-");
            picture.section.clone_from(heading);
            pictures.push(picture);
        }
    }
    pictures
}

/// A chart for each quantity of a table.
fn bars(cells: &[&Judged]) -> Vec<NamedChart> {
    let mut quantities: Vec<&str> = Vec::new();
    for cell in cells {
        if !quantities.contains(&cell.expected.quantity.as_str()) {
            quantities.push(&cell.expected.quantity);
        }
    }
    let chart = |name: &&str| {
        let cells: Vec<_> = cells.iter().filter(|cell| cell.expected.quantity == **name).collect();
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

fn series(name: &str, cells: &[&&Judged], bar: impl Fn(&Judged) -> Bar) -> BarSeries {
    let bars = cells.iter().map(|cell| {
        let Bar { value, ci95 } = bar(cell);
        let in_base = cell.expected.unit.in_base();
        Bar::from(scaled(Estimate { mean: value, ci95, n: 0 }, in_base))
    });
    BarSeries::new(name, bars)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
