//! The report of a paper: its tables and bar charts on one page.

use std::fmt::Write;

use gridhaul_report::chart::{Axis, Bar, BarSeries, STYLE};
use gridhaul_report::{BarChart, TextTable};

use super::Paper;
use super::expected::scaled;
use super::judge::{Judged, tables};

/// One HTML file without scripts and without anything from elsewhere.
pub(crate) fn page(paper: &Paper, judged: &[Judged]) -> String {
    let about = &paper.about;
    let ok = judged.iter().filter(|cell| cell.ok).count();
    let title = escape(&about.title);
    let mut body = format!(
        "<h1>{title}</h1>\n<p>{}</p>\n<p>{}</p>\n<p><strong>{ok} of {} figures within their \
         tolerance.</strong></p>\n",
        escape(&about.source),
        escape(&about.note),
        judged.len(),
    );
    for table in tables(paper, judged) {
        let _ = writeln!(body, "<h2>{}</h2>", escape(&table.title));
        for chart in charts(paper, &table.title, judged) {
            let _ = writeln!(body, "<figure>{}</figure>", chart.to_inline_svg());
        }
        body.push_str(&html_table(&table));
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
}

const PAGE_STYLE: &str = "\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
figure { margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.85rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.7rem 0.2rem 0; text-align: right; border-bottom: 1px solid #8884; }
th.key, td.key { text-align: left; }
td.fail { font-weight: bold; }
";

/// A chart for each quantity of a table.
fn charts(paper: &Paper, heading: &str, judged: &[Judged]) -> Vec<BarChart> {
    let table = paper.about.table.iter().find(|(_, title)| *title == heading);
    let name = table.map_or("", |(name, _)| name);
    let mut quantities: Vec<&str> = Vec::new();
    let cells = || judged.iter().filter(move |cell| cell.expected.table == name);
    for cell in cells() {
        if !quantities.contains(&cell.expected.quantity.as_str()) {
            quantities.push(&cell.expected.quantity);
        }
    }
    let chart = |quantity: &&str| {
        let cells: Vec<_> = cells().filter(|cell| cell.expected.quantity == **quantity).collect();
        let quantity = quantity.replace('_', " ");
        let unit = cells.first().map_or("", |cell| match cell.expected.unit.text() {
            "kbit/s" | "Mbit/s" => "bit/s",
            "ms" => "s",
            unit => unit,
        });
        let axis = Axis::new(quantity.clone(), unit).including(0.0);
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
        known.fold(BarChart::new(quantity, axis, rows), BarChart::with)
    };
    quantities.iter().map(chart).collect()
}

fn series(name: &str, cells: &[&Judged], bar: impl Fn(&Judged) -> Bar) -> BarSeries {
    let bars = cells.iter().map(|cell| {
        let Bar { value, ci95 } = bar(cell);
        let in_base = cell.expected.unit.in_base();
        let estimate = gridhaul_scenario::answer::Estimate { mean: value, ci95, n: 0 };
        Bar::from(scaled(estimate, in_base))
    });
    BarSeries::new(name, bars)
}

fn html_table(table: &TextTable) -> String {
    let mut html = String::from("<table>\n<thead>");
    html.push_str(&html_row("th", table, &table.headers));
    html.push_str("</thead>\n<tbody>\n");
    for row in &table.rows {
        html.push_str(&html_row("td", table, row));
    }
    html.push_str("</tbody>\n</table>\n");
    html
}

fn html_row(tag: &str, table: &TextTable, cells: &[String]) -> String {
    let mut html = String::from("<tr>");
    for (index, cell) in cells.iter().enumerate() {
        let class = match cell.as_str() {
            _ if index < table.key_columns => " class=\"key\"",
            "FAIL" => " class=\"fail\"",
            _ => "",
        };
        let _ = write!(html, "<{tag}{class}>{}</{tag}>", escape(cell));
    }
    html.push_str("</tr>\n");
    html
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
