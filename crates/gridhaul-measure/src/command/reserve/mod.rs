//! `gridhaul measure reserve`: the tables and figures of RESERVE D4.6 by measurement, and the
//! verdicts of its statements.

mod campaign;
mod claims;
mod extent;
mod figures;
mod outages;
mod plan;
mod store;
mod tables;
mod test_8;

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::reserve::{Comparison, Tables, comparisons};
use gridhaul_report::TextTable;
use gridhaul_report::chart::Chart;
use gridhaul_report::verdict::{comparison_table, count_sentence, count_table, summary_sentence};
use serde::Serialize;

use super::efficiency::{payloads, table_5};
use super::page::{Section, page};
use super::place::Interrupt;
use super::report::create;
use super::run::write;
use super::{CHECK, INTERRUPTED};
use crate::args::{ReserveArgs, ReservePart};
use crate::terminal::{print, say, text};
use claims::{Claim, Measurements, claims};
use extent::Extent;
use outages::OutageCell;
use plan::Cell;
use store::Store;
use test_8::Measured;

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

/// Measures, and compares with the report. The exit code is 1 if a verdict is not the recorded one,
/// or a measurement has failed.
pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let out = args.results.out.as_deref();
    out.map_or(Ok(()), create)?;
    let interrupt = Interrupt::new()?;
    let published = Tables::published();
    let formulas = comparisons(&published);
    let deviating = formulas.iter().filter(|it| it.rows.iter().any(|row| !row.agrees));
    let deviating: Vec<_> = deviating.map(|it| it.name.as_str()).collect();
    ensure!(deviating.is_empty(), "the formula deviates from Table 5: {}", deviating.join("; "));
    let extent = Extent::new(args.quick, args.repetitions.unwrap_or(extent::REPETITIONS));
    let (mut store, quiet) = (Store::open(out, args.force)?, args.results.quiet);
    if store.count() > 0 && !quiet {
        let count = store.count();
        say(format_args!(
            "continuing with the {count} measurements of an earlier command in this folder; \
             --force discards them"
        ));
    }
    let load = load();
    let has = |part| args.part.is_empty() || args.part.contains(&part);
    let series = if has(ReservePart::Efficiency) {
        test_8::measure(&published, extent.series, (&mut store, quiet), &interrupt)?
    } else {
        Vec::new()
    };
    let outages = if has(ReservePart::Outages) {
        outages::outages(&extent, (&mut store, quiet), &interrupt)?
    } else {
        Vec::new()
    };
    let cells = if has(ReservePart::Latency) {
        campaign::measure((&extent, &args.system), (&mut store, quiet), &interrupt)?
    } else {
        Vec::new()
    };
    let measurements = Measurements { cells: &cells, outages: &outages, series: &series };
    let is_whole = !args.quick && args.part.is_empty() && args.system.is_empty();
    let claims = claims(&measurements, &published, is_whole);
    let differing = claims.iter().filter(|claim| !claim.as_recorded);
    let document = Document {
        gridhaul: env!("CARGO_PKG_VERSION"),
        paper: "reserve",
        quick: args.quick,
        complete: !interrupt.is_set(),
        load: [load, self::load()],
        processors: std::thread::available_parallelism().ok().map(usize::from),
        not_as_recorded: differing.map(|claim| claim.recorded.name.as_str()).collect(),
        failures: failures((&cells, &series, &outages)),
        claims: &claims,
        cells: &cells,
        series: &series,
        outages: &outages,
        table_5: &formulas,
    };
    publish(args, &document, (&published, &extent))?;
    say(format_args!("{}", summary(&document, &extent)));
    Ok(match () {
        () if interrupt.is_set() => ExitCode::from(INTERRUPTED),
        () if !document.not_as_recorded.is_empty() => ExitCode::from(CHECK),
        () if !document.failures.is_empty() => ExitCode::from(CHECK),
        () => ExitCode::SUCCESS,
    })
}

/// Prints the tables or the document, and writes the files.
fn publish(
    args: &ReserveArgs,
    document: &Document<'_>,
    (published, extent): (&Tables, &Extent),
) -> anyhow::Result<()> {
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
    let pretty = serde_json::to_string_pretty(document)? + "\n";
    if let Some(folder) = &args.results.out {
        write(&folder.join("reserve.json"), &pretty)?;
        let charts = figures::figures((cells, series), published, extent);
        for (name, chart) in &charts {
            write(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
        }
        let charts = charts.into_iter().map(|(_, chart)| chart).collect();
        let html = report(&summary(document, extent), charts, &tables);
        write(&folder.join("report.html"), &html)?;
        if !args.results.quiet {
            say(format_args!("results in {}", folder.display()));
        }
    }
    let texts = || tables.iter().map(text).collect::<Vec<_>>().join("\n");
    print(&if args.results.json { pretty } else { texts() })
}

fn report(summary: &str, charts: Vec<Chart>, tables: &[TextTable]) -> String {
    let note = "Latencies are measured on emulated systems; their delays are from the report or \
    assumed, as the files in scenarios/systems state. MQTT and AMQP (0-9-1) pass RabbitMQ, as in \
    the report.";
    let mut sections = vec![Section::Text(format!("{summary}\n\n{note}"))];
    let (statements, others) = tables.split_at(3.min(tables.len()));
    sections.extend(statements.iter().map(Section::Table));
    sections.push(Section::Charts("Figures", charts));
    sections.extend(others.iter().map(Section::Table));
    page("RESERVE D4.6 beside measurements", "Project RESERVE, deliverable D4.6, 2018", &sections)
}

/// Measurements that failed, with their reasons: nothing is known of them.
fn failures((cells, series, outages): (&[Cell], &[Measured], &[OutageCell])) -> Vec<String> {
    let cells =
        cells.iter().filter_map(|it| Some(format!("{}: {}", it.command, it.error.as_ref()?)));
    let series = series.iter().filter(|it| !it.is_complete()).map(|it| {
        let fault =
            it.fault.as_deref().unwrap_or("not all messages arrived, or packets were not captured");
        format!("test 8, {}: {fault}", it.column)
    });
    let outages =
        outages.iter().filter_map(|it| Some(format!("{}: {}", it.command, it.error.as_ref()?)));
    cells.chain(series).chain(outages).collect()
}

/// The verdicts in a sentence, and the measurements with a late generator.
fn summary(document: &Document<'_>, extent: &Extent) -> String {
    let comparisons: Vec<_> = document.claims.iter().map(Claim::comparison).collect();
    let mut text = format!("{} {}", summary_sentence(&comparisons), count_sentence(&comparisons));
    let [late, cells] = tables::late_cells(document.cells, extent.repetitions);
    if late > 0 {
        text += &format!(
            " In {late} of {cells} measurements of the latency the machine disturbed too many repetitions: \
             run the command on an idle machine."
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
