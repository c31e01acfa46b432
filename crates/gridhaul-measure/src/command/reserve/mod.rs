//! `gridhaul measure reserve`: Tables 4 and 5 and figures 6, 7, 8 and 10 of RESERVE D4.6, with its statements.

mod claims;
mod matrix;
mod outages;

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::reserve::{Tables, comparisons};
use gridhaul_report::TextTable;
use gridhaul_report::chart::{Axis, BoxPlot, Chart};
use serde_json::json;

use super::INTERRUPTED;
use super::cells::CellResult;
use super::efficiency::{payloads, table_5};
use super::page::{Section, page};
use super::place::Interrupt;
use super::report::create;
use super::run::write;
use crate::args::ReserveArgs;
use crate::terminal::{print, say, text};
use claims::{Claim, claims};
use matrix::{AMQP, Cell, Extent, PROTOCOLS, SYSTEMS, measure};
use outages::{OutageCell, outages};

/// Measures, and compares with the report.
pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    args.results.out.as_deref().map_or(Ok(()), create)?;
    let interrupt = Interrupt::new()?;
    let published = Tables::published();
    let formulas = comparisons(&published);
    let deviating = formulas.iter().filter(|it| it.rows.iter().any(|row| !row.agrees));
    let deviating: Vec<_> = deviating.map(|it| it.name.as_str()).collect();
    ensure!(deviating.is_empty(), "the formula deviates from Table 5: {}", deviating.join("; "));
    let extent = Extent::new(args.quick);
    let cells = measure(&extent, args.results.quiet, &interrupt)?;
    let outages = outages(&extent, args.results.quiet, &interrupt);
    let claims = claims(&cells, &outages);
    let tables = [
        claim_table(&claims),
        cell_table(&cells),
        outage_table(&outages),
        not_conducted(&published),
        table_5(&formulas),
        payloads(&formulas),
    ];
    let document = json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "paper": "reserve",
        "quick": args.quick,
        "complete": !interrupt.is_set(),
        "claims": claims,
        "cells": cells,
        "outages": outages,
        "table_5": formulas,
    });
    let pretty = serde_json::to_string_pretty(&document)? + "\n";
    if let Some(folder) = &args.results.out {
        write(&folder.join("reserve.json"), &pretty)?;
        let charts = figures(&cells, &extent);
        for (name, chart) in &charts {
            write(&folder.join(format!("{name}.svg")), &chart.to_svg())?;
        }
        let charts = charts.into_iter().map(|(_, chart)| chart).collect();
        let note = "Measured on emulated systems; their delays are from the report or assumed, as the files in \
                    scenarios/systems state. MQTT passes mosquitto, AMQP (0-9-1) RabbitMQ.";
        let mut sections = vec![Section::Text(note.into()), Section::Charts("Figures", charts)];
        sections.extend(tables.iter().map(Section::Table));
        let meta = "Project RESERVE, deliverable D4.6, 2018";
        let html = page("RESERVE D4.6 beside emulated systems", meta, &sections);
        write(&folder.join("report.html"), &html)?;
        if !args.results.quiet {
            say(format_args!("results in {}", folder.display()));
        }
    }
    print(&if args.results.json { pretty } else { tables.each_ref().map(text).join("\n") })?;
    Ok(if interrupt.is_set() { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

fn claim_table(claims: &[Claim]) -> TextTable {
    let rows = claims.iter().map(|claim| {
        let holds = match claim.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not decidable",
        };
        let section = if claim.section.is_empty() { "not in the report" } else { claim.section };
        let cells = [section, holds, claim.statement, claim.measured.as_str()];
        cells.map(str::to_owned).to_vec()
    });
    TextTable {
        title: "Statements of the report on the emulated systems".into(),
        headers: ["section", "result", "statement", "measured"].map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 4,
        note: None,
    }
}

fn cell_table(cells: &[Cell]) -> TextTable {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let rows = cells.iter().map(|cell| {
        let keys = [
            cell.system.to_owned(),
            format!("{}{}", cell.protocol, if cell.nodelay { "" } else { ", Nagle" }),
            cell.values.to_string(),
            cell.rate_per_s.to_string(),
        ];
        let numbers = match (&cell.result, &cell.error) {
            (Some(it), _) => {
                let mark = if it.invalid.is_empty() { "" } else { " *" };
                let times = [it.p2_s, it.p25_s, it.mean_s, it.p75_s, it.p98_s, it.max_s].map(ms);
                let counts = [format!("{}{mark}", it.messages), it.missing.to_string()];
                counts.into_iter().chain(times).collect::<Vec<_>>()
            }
            (None, error) => {
                let reason = error.clone().unwrap_or_else(|| "no message arrived".into());
                std::iter::once(reason).chain(vec![String::new(); 7]).collect()
            }
        };
        keys.into_iter().chain(numbers).collect()
    });
    let headers = [
        "system",
        "protocol",
        "values",
        "rate (1/s)",
        "messages",
        "missing",
        "p2 (ms)",
        "p25",
        "mean",
        "p75",
        "p98",
        "max",
    ];
    TextTable {
        title: "Latency in the uplink, from the send time".into(),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 4,
        note: Some(
            "* the generator was late: the load was not exactly the intended one. Each row is a command `gridhaul measure \
             latency`, which the JSON contains."
                .into(),
        ),
    }
}

fn outage_table(outages: &[OutageCell]) -> TextTable {
    let seconds = |value: Option<f64>| value.map_or_else(|| "–".into(), |it| format!("{it:.3}"));
    let rows = outages.iter().map(|it| {
        vec![
            it.protocol.to_owned(),
            format!("{}", it.length_s),
            seconds(it.without_arrival_s),
            seconds(it.first_arrival_after_end_s),
            it.lost.to_string(),
            it.refused.to_string(),
            it.reconnections.to_string(),
        ]
    });
    let headers = [
        "protocol",
        "outage (s)",
        "without an arrival (s)",
        "first arrival after the end (s)",
        "lost",
        "refused",
        "reconnections",
    ];
    TextTable {
        title: "Outage of the 5G-ready system, 100 messages/s".into(),
        headers: headers.map(String::from).to_vec(),
        rows: rows.collect(),
        key_columns: 1,
        note: outages.iter().find_map(|it| it.error.clone()),
    }
}

/// The tests without a result in the report, and the command of each.
fn not_conducted(tables: &Tables) -> TextTable {
    let command = |number: &str| match number {
        "1b" => "latency udp --system plc-broadband --cross-traffic \"2.7 Mbit/s\"",
        "2b" => "reliability udp --system plc-broadband --cross-traffic \"4 Mbit/s\"",
        "5" => "outage --length 1s, 10s, 30s",
        "6" => "corruption; reliability with `corrupt_undetected` in the scenario",
        "7" => "sync --offset --drift --step",
        _ => "",
    };
    let rows = tables.test.iter().filter_map(|test| {
        let reason = test.not_conducted.clone()?;
        Some(vec![test.number.clone(), test.name.clone(), reason, command(&test.number).into()])
    });
    TextTable {
        title: "What the report could not run, and the measurement of it".into(),
        headers: ["test", "name", "reason in the report", "gridhaul measure"]
            .map(String::from)
            .to_vec(),
        rows: rows.collect(),
        key_columns: 4,
        note: None,
    }
}

/// Figures 6, 7, 8 and 10, and the effect of Nagle's algorithm, with the names of their files.
fn figures(cells: &[Cell], extent: &Extent) -> Vec<(&'static str, Chart)> {
    let values = extent.values[0];
    let find = |system: &str, protocol: &str, rate: u32, nodelay: bool| {
        let found = cells.iter().find(|it| {
            (it.system, it.protocol, it.rate_per_s, it.values) == (system, protocol, rate, values)
                && it.nodelay == nodelay
        });
        found?.result.as_ref().map(CellResult::statistics)
    };
    let axis = || Axis::new("latency", "s").log();
    let by_protocol = |title: &str, system: &str, protocols: &[&'static str]| {
        let plot = BoxPlot::new(title, axis(), protocols.iter().copied());
        let plot = extent.rates.iter().fold(plot, |plot, &rate| {
            plot.with(
                format!("{rate} messages/s"),
                protocols.iter().map(|it| find(system, it, rate, true)),
            )
        });
        Chart::from(plot)
    };
    let by_system = |title: &str, protocol: &'static str| {
        let plot = BoxPlot::new(title, axis(), SYSTEMS);
        let plot = extent.rates.iter().fold(plot, |plot, &rate| {
            plot.with(
                format!("{rate} messages/s"),
                SYSTEMS.map(|it| find(it, protocol, rate, true)),
            )
        });
        Chart::from(plot)
    };
    let rates = extent.rates.iter().map(|rate| format!("{rate} messages/s"));
    let nagle = BoxPlot::new("MQTT on the 5G-ready system: Nagle's algorithm", axis(), rates);
    let of = |nodelay| extent.rates.iter().map(move |&rate| (rate, nodelay));
    let boxes =
        |nodelay| of(nodelay).map(|(rate, nodelay)| find("5g-ready", "mqtt", rate, nodelay));
    let nagle =
        nagle.with("off (TCP_NODELAY)", boxes(true)).with("on (default of clients)", boxes(false));
    vec![
        ("figure-6-ethernet", by_protocol("Figure 6: Ethernet", "ethernet", &PROTOCOLS)),
        (
            "figure-7-5g-ready",
            by_protocol("Figure 7: 5G-ready, uplink", "5g-ready", &["sv", "mqtt", AMQP]),
        ),
        (
            "figure-8-5g-prototype",
            by_protocol("Figure 8: 5G prototype, uplink", "5g-prototype", &["udp", "mqtt", AMQP]),
        ),
        ("figure-10-amqp", by_system("Figure 10: AMQP in the uplink of all systems", AMQP)),
        ("systems-mqtt", by_system("MQTT in the uplink of all systems", "mqtt")),
        ("nagle-mqtt", nagle.into()),
    ]
}
