//! The measurements: systems, protocols, rates and sizes.

use anyhow::bail;
use clap::Parser;
use gridhaul_measure::broker::{BrokerAddress, BrokerProgram, BrokerSettings, BrokerUrl};
use gridhaul_measure::method::findings;
use gridhaul_measure::network::Sites;
use gridhaul_report::chart::BoxStatistics;
use gridhaul_scenario::units::Duration;
use serde::Serialize;

use crate::args::{Cli, Command, RunArgs};
use crate::command::charts::statistics;
use crate::command::place::{Interrupt, Place};
use crate::command::protocols::start;
use crate::command::run::{Run, at_sites, carrier, execute_until};
use crate::terminal::say;

/// The test systems of the report, which the presets stand for.
pub(super) const SYSTEMS: [&str; 3] = ["ethernet", "5g-prototype", "5g-ready"];

/// The protocols of the figures.
pub(super) const PROTOCOLS: [&str; 4] = ["udp", "sv", "mqtt", AMQP];

/// The version of AMQP in VILLASnode, by which the report measured.
pub(super) const AMQP: &str = "amqp-0-9-1";

/// A measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cell {
    pub(super) system: &'static str,
    pub(super) protocol: &'static str,
    pub(super) rate_per_s: u32,
    pub(super) values: u32,
    /// Whether Nagle's algorithm is off at clients and broker.
    pub(super) nodelay: bool,
    /// The command of this measurement alone.
    pub(super) command: String,
    /// `None` if no message arrived.
    pub(super) result: Option<CellResult>,
    /// Why the measurement failed.
    pub(super) error: Option<String>,
}

/// Numbers of a measurement; latencies are from the send time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct CellResult {
    pub(super) messages: u64,
    pub(super) missing: u64,
    pub(super) mean_s: f64,
    pub(super) p2_s: f64,
    pub(super) p25_s: f64,
    pub(super) p75_s: f64,
    pub(super) p98_s: f64,
    pub(super) p999_s: Option<f64>,
    pub(super) max_s: f64,
    /// Whether lateness of the generator could explain a part of the result.
    pub(super) invalid: Vec<String>,
}

/// How much is measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Protocols of each system. The reduced form has those of the figures of the report.
    protocols: [&'static [&'static str]; 3],
    pub(super) rates: &'static [u32],
    pub(super) values: &'static [u32],
    /// Messages after the warm-up: at least this many, and those of this time in seconds.
    least: u32,
    time: u32,
    /// Length of the outages, and the protocols that are interrupted.
    pub(super) outage: Duration,
    pub(super) outage_protocols: &'static [&'static str],
}

impl Extent {
    /// The matrix of the report, or its reduced form.
    pub(super) const fn new(quick: bool) -> Self {
        if quick {
            let outage = Duration::from_secs(1);
            let protocols: [&[&str]; 3] =
                [&["udp", "mqtt"], &["udp", "mqtt"], &["sv", "mqtt", AMQP]];
            let (rates, values) = (&[100, 1_000], &[10]);
            // RabbitMQ starts slowly.
            let outage_protocols = &["udp", "sv", "mqtt"];
            return Self {
                protocols,
                rates,
                values,
                least: 100,
                time: 1,
                outage,
                outage_protocols,
            };
        }
        let (rates, values) = (&[10, 100, 1_000], &[10, 100]);
        let outage = Duration::from_secs(10);
        Self {
            protocols: [&PROTOCOLS; 3],
            rates,
            values,
            least: 200,
            time: 6,
            outage,
            outage_protocols: &PROTOCOLS,
        }
    }

    const fn messages(&self, rate: u32) -> u32 {
        if rate * self.time > self.least { rate * self.time } else { self.least }
    }

    /// A cell without its result.
    fn cell(
        &self,
        (system, protocol): (&'static str, &'static str),
        (values, rate): (u32, u32),
        nodelay: bool,
    ) -> Cell {
        let (messages, bytes) = (self.messages(rate), bytes(protocol, values));
        let mut command = format!(
            "gridhaul measure latency {protocol} --system {system} --subscriber to --rate {rate} --messages {messages} --bytes {bytes}"
        );
        if !nodelay {
            command += " --nodelay none";
        }
        Cell {
            system,
            protocol,
            rate_per_s: rate,
            values,
            nodelay,
            command,
            result: None,
            error: None,
        }
    }
}

impl CellResult {
    /// The numbers of the box.
    pub(super) const fn statistics(&self) -> BoxStatistics {
        BoxStatistics {
            whiskers: [self.p2_s, self.p98_s],
            quartiles: [self.p25_s, self.p75_s],
            mean: self.mean_s,
            tail: self.p999_s,
            max: self.max_s,
        }
    }
}

/// Bytes of a message. Sampled Values carry 32-bit floats, the others the Protobuf message of VILLASnode (Table 5 and
/// `measurement` of the encodings: 131 B with 10 and 1,121 B with 100 values).
fn bytes(protocol: &str, values: u32) -> u32 {
    match (protocol, values) {
        ("sv", values) => 4 * values,
        (_, 10) => 131,
        (_, values) => 21 + 11 * values,
    }
}

/// Measures all cells, and those with Nagle's algorithm.
pub(super) fn measure(extent: &Extent, quiet: bool, interrupt: &Interrupt) -> Vec<Cell> {
    let mut planned = Vec::new();
    for (system, protocols) in SYSTEMS.into_iter().zip(extent.protocols) {
        for &protocol in protocols {
            for &values in extent.values {
                for &rate in extent.rates {
                    planned.push(extent.cell((system, protocol), (values, rate), true));
                }
            }
        }
    }
    // The confound: MQTT with the default of most clients, on the system with the longest delay.
    planned.extend(
        extent.rates.iter().map(|&rate| extent.cell(("5g-ready", "mqtt"), (10, rate), false)),
    );
    let total = planned.len();
    let mut done = Vec::new();
    // RabbitMQ starts slowly: cells of a system share one.
    let shares =
        |a: &Cell, b: &Cell| (a.system, a.protocol) == (b.system, b.protocol) && a.protocol == AMQP;
    for cells in planned.chunk_by(shares) {
        let mut finish = |cell: &Cell, result: anyhow::Result<Option<CellResult>>| {
            let (result, error) = match result {
                Ok(result) => (result, None),
                Err(error) => (None, Some(format!("{error:#}"))),
            };
            done.push(Cell { result, error, ..cell.clone() });
            if !quiet {
                say(format_args!("{} of {total}: {}", done.len(), cell.command));
            }
        };
        match cells {
            _ if interrupt.is_set() => break,
            [cell] if cell.protocol != AMQP => finish(cell, run(&cell.command, interrupt)),
            cells => share_broker(cells, interrupt, &mut finish),
        }
    }
    done
}

/// Measures cells with the same network and one broker.
fn share_broker(
    cells: &[Cell],
    interrupt: &Interrupt,
    finish: &mut dyn FnMut(&Cell, anyhow::Result<Option<CellResult>>),
) {
    let mut measured = 0;
    let mut measure = || -> anyhow::Result<()> {
        let first = parse(&cells[0].command)?;
        let place = Place::new(&first.common.place)?;
        let prepare = |sites: &Sites<'_>| {
            Ok(BrokerProgram::RabbitMq.start(&sites.to, BrokerSettings::default())?)
        };
        place.enter(carrier(first.common.protocol), prepare, |sites, broker| {
            for cell in cells.iter().take_while(|_| !interrupt.is_set()) {
                let mut args = parse(&cell.command)?;
                let BrokerAddress { address, credentials, .. } = broker.address();
                args.common.connection.broker = Some(BrokerUrl::plain(address, credentials));
                let run = start(&args.common, sites).and_then(|started| {
                    at_sites(&args, (sites, started), place.name.clone(), (None, interrupt.flag()))
                });
                finish(cell, run.map(|(run, _)| result(&run)));
                measured += 1;
            }
            Ok(())
        })
    };
    if let Err(error) = measure() {
        let reason = format!("{error:#}");
        cells[measured..]
            .iter()
            .for_each(|cell| finish(cell, Err(anyhow::anyhow!(reason.clone()))));
    }
}

/// The arguments of a command `gridhaul measure latency`.
pub(super) fn parse(command: &str) -> anyhow::Result<RunArgs> {
    let words = command.strip_prefix("gridhaul ").unwrap_or(command).split(' ');
    match Cli::try_parse_from(words.chain(["--no-floor", "--quiet"]))?.command {
        Command::Latency(args) => Ok(args.run),
        other => bail!("expected a command `latency`, found {other:?}"),
    }
}

/// Runs the command of a cell in this process.
fn run(command: &str, interrupt: &Interrupt) -> anyhow::Result<Option<CellResult>> {
    Ok(result(&execute_until(&parse(command)?, interrupt, None)?))
}

fn result(run: &Run) -> Option<CellResult> {
    let summary = &run.outcome.summary;
    statistics(&summary.from_send).map(|it| CellResult {
        messages: summary.counts.messages,
        missing: summary.missing(),
        mean_s: it.mean,
        p2_s: it.whiskers[0],
        p25_s: it.quartiles[0],
        p75_s: it.quartiles[1],
        p98_s: it.whiskers[1],
        p999_s: it.tail,
        max_s: it.max,
        invalid: findings(summary).iter().map(ToString::to_string).collect(),
    })
}
