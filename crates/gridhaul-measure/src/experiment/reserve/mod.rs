//! The paper RESERVE D4.6: the tables and figures of RESERVE D4.6 by measurement, and the
//! verdicts of its statements.

mod campaign;
mod claims;
mod efficiency;
mod extent;
mod figures;
mod outages;
pub mod paper;
mod plan;
mod store;
mod tables;
mod test_8;

use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::ensure;
use gridhaul_report::TextTable;
use gridhaul_report::chart::Chart;
use gridhaul_report::verdict::{comparison_table, count_sentence, count_table, summary_sentence};
use serde::Serialize;

use crate::experiment::reserve::paper::{Comparison, Tables, comparisons};
use crate::measurement::Measurement;
use crate::report::{Section, page};
use crate::results_folder::write;
use crate::run::Observer;
use claims::{Claim, Measurements, claims};
use extent::Extent;
use outages::OutageCell;
use plan::Cell;
use store::Store;
use test_8::Measured;

pub use efficiency::{one_message, payloads, table_5};

/// A part of the report RESERVE D4.6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReservePart {
    /// Test 8: packets and bytes, Tables 4 and 5.
    Efficiency,
    /// Figures 6, 7, 8 and 10.
    Latency,
    /// Tests 4 and 5.
    Outages,
}

/// Extent of the measurements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReserveSettings {
    /// Whether there are fewer rates, sizes and messages.
    pub quick: bool,
    /// Whether the measurements of an earlier command in the folder are discarded.
    pub discards: bool,
    /// Parts of the report; empty: all.
    pub parts: Vec<ReservePart>,
    /// Systems of the latencies; empty: all.
    pub systems: Vec<String>,
    /// Repetitions of each measurement of the latency. Absent: the number that gives an interval.
    pub repetitions: Option<u32>,
}

/// Measurements, tables and verdicts.
#[derive(Debug)]
pub struct ReserveResult {
    /// Tables for the terminal.
    pub tables: Vec<TextTable>,
    /// The JSON document.
    pub json: String,
    /// The verdicts in a sentence.
    pub summary: String,
    /// Whether a verdict is not the recorded one, or a measurement has failed.
    pub has_deviation: bool,
}

/// Measurements and verdicts, as the file `reserve.json`.
#[derive(Debug, Serialize)]
struct Document<'a> {
    gridhaul: &'static str,
    paper: &'static str,
    quick: bool,
    complete: bool,
    /// Load average of this machine over one minute, at the start and at the end.
    load: [Option<f64>; 2],
    processors: Option<usize>,
    /// Names of the claims whose verdict is not the recorded one.
    not_as_recorded: Vec<&'a str>,
    failures: Vec<String>,
    claims: &'a [Claim],
    cells: &'a [Cell],
    series: &'a [Measured],
    outages: &'a [OutageCell],
    table_5: &'a [Comparison],
}

/// A measurement of the paper, and the command that means it.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The command, which is the key of the results in the folder.
    pub command: String,
    /// The measurement.
    pub measurement: Measurement,
}

/// All latencies and outages of the paper.
#[must_use]
pub fn planned(quick: bool) -> Vec<Planned> {
    let extent = Extent::new(quick, extent::REPETITIONS);
    let cells = plan::groups(&extent).into_iter().flat_map(|group| group.cells);
    let cells = cells.map(|Cell { command, measurement, .. }| Planned { command, measurement });
    cells.chain(outages::planned(&extent)).collect()
}

/// Measures, and compares with the report. Measurements are kept in a folder as they are made, if
/// there is one: a later call continues.
///
/// # Errors
/// The formulas deviate from Table 5, or a file cannot be read or written. Failed measurements are
/// in the result.
pub fn measure(
    settings: &ReserveSettings,
    folder: Option<&Path>,
    observer: &dyn Observer,
) -> anyhow::Result<ReserveResult> {
    let published = Tables::published();
    let formulas = comparisons(&published);
    let deviating = formulas.iter().filter(|column| column.rows.iter().any(|row| !row.agrees));
    let deviating: Vec<_> = deviating.map(|column| column.name.as_str()).collect();
    ensure!(deviating.is_empty(), "the formula deviates from Table 5: {}", deviating.join("; "));
    let repetitions = settings.repetitions.unwrap_or(extent::REPETITIONS);
    let extent = Extent::new(settings.quick, repetitions);
    let mut store = Store::open(folder, settings.discards)?;
    if store.count() > 0 {
        let count = store.count();
        observer.on_note(&format!(
            "continuing with the {count} measurements of an earlier command in this folder; \
             --force discards them"
        ));
    }
    let load = load();
    let has = |part| settings.parts.is_empty() || settings.parts.contains(&part);
    // The latencies take the most time and are last: an interruption leaves the other parts whole.
    let mut series = Vec::new();
    if has(ReservePart::Efficiency) {
        series = test_8::measure(&published, extent.series, &mut store, observer)?;
    }
    let mut outages = Vec::new();
    if has(ReservePart::Outages) {
        outages = outages::outages(&extent, &mut store, observer)?;
    }
    let mut cells = Vec::new();
    if has(ReservePart::Latency) {
        cells = campaign::measure(&extent, &settings.systems, &mut store, observer)?;
    }
    let measured = Measurements { cells: &cells, outages: &outages, series: &series };
    let is_whole = !settings.quick && settings.parts.is_empty() && settings.systems.is_empty();
    let claims = claims(&measured, &published, is_whole);
    let differing = claims.iter().filter(|claim| !claim.as_recorded);
    let document = Document {
        gridhaul: env!("CARGO_PKG_VERSION"),
        paper: "reserve",
        quick: settings.quick,
        complete: !observer.stop().load(Ordering::Relaxed),
        load: [load, self::load()],
        processors: std::thread::available_parallelism().ok().map(usize::from),
        not_as_recorded: differing.map(|claim| claim.recorded.name.as_str()).collect(),
        failures: failures(&measured),
        claims: &claims,
        cells: &cells,
        series: &series,
        outages: &outages,
        table_5: &formulas,
    };
    publish(&document, &published, &extent, folder)
}

/// The tables and the document, whose files are written.
fn publish(
    document: &Document<'_>,
    published: &Tables,
    extent: &Extent,
    folder: Option<&Path>,
) -> anyhow::Result<ReserveResult> {
    let Document { claims, cells, series, outages, table_5: formulas, .. } = document;
    let comparisons: Vec<_> = claims.iter().map(Claim::comparison).collect();
    let mut tables = vec![
        comparison_table(&comparisons),
        count_table(&comparisons),
        tables::test_table(published, claims),
        tables::table_4(published, series),
        tables::measured_table_5(published, series),
        table_5(formulas),
        payloads(formulas),
    ];
    if !outages.is_empty() {
        tables.push(tables::outage_table(outages));
    }
    if !cells.is_empty() {
        tables.push(tables::cell_table(cells));
    }
    let json = serde_json::to_string_pretty(document)? + "\n";
    let summary = summary(document, extent);
    if let Some(folder) = folder {
        write(&folder.join("reserve.json"), &json)?;
        let charts = figures::figures(cells, series, published, extent);
        for (name, chart) in &charts {
            write(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
        }
        let charts = charts.into_iter().map(|(_, chart)| chart).collect();
        write(&folder.join("report.html"), &report(&summary, charts, &tables))?;
    }
    let has_deviation = !document.not_as_recorded.is_empty() || !document.failures.is_empty();
    Ok(ReserveResult { tables, json, summary, has_deviation })
}

fn report(summary: &str, charts: Vec<Chart>, tables: &[TextTable]) -> String {
    let note = "Latencies are measured on emulated systems; their delays are from the report or \
    assumed, as the files in scenarios/systems state. MQTT and AMQP (0-9-1) pass RabbitMQ, as in \
    the report.";
    let mut sections = vec![Section::Text(format!("{summary}\n\n{note}"))];
    // Readers look for the verdicts, their counts and the tests first; figures follow, then
    // numbers.
    let (statements, others) = tables.split_at(3.min(tables.len()));
    sections.extend(statements.iter().map(Section::Table));
    sections.push(Section::Charts("Figures", charts));
    sections.extend(others.iter().map(Section::Table));
    page(
        "RESERVE D4.6 compared with measurements",
        "Project RESERVE, deliverable D4.6, 2018",
        &sections,
    )
}

/// Measurements that failed, with their reasons: nothing is known of them.
fn failures(measured: &Measurements<'_>) -> Vec<String> {
    let &Measurements { cells, outages, series } = measured;
    let cells =
        cells.iter().filter_map(|cell| Some(format!("{}: {}", cell.command, cell.error.as_ref()?)));
    let series = series.iter().filter(|measured| !measured.is_complete()).map(|measured| {
        let fault = measured
            .fault
            .as_deref()
            .unwrap_or("not all messages arrived, or packets were not captured");
        format!("test 8, {}: {fault}", measured.column)
    });
    let outages = outages
        .iter()
        .filter_map(|outage| Some(format!("{}: {}", outage.command, outage.error.as_ref()?)));
    cells.chain(series).chain(outages).collect()
}

/// The verdicts in a sentence, and the measurements with a late generator.
fn summary(document: &Document<'_>, extent: &Extent) -> String {
    let comparisons: Vec<_> = document.claims.iter().map(Claim::comparison).collect();
    let mut text = format!("{} {}", summary_sentence(&comparisons), count_sentence(&comparisons));
    let [late, cells] = tables::late_cells(document.cells, extent.repetitions);
    if late > 0 {
        text += &format!(
            " In {late} of {cells} measurements of the latency the machine disturbed too many \
             repetitions: run the command on an idle machine."
        );
    }
    if !document.failures.is_empty() {
        text += &format!(" Failed measurements: {}.", document.failures.join("; "));
    }
    text
}

/// Load average over one minute (proc_loadavg(5)).
fn load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
