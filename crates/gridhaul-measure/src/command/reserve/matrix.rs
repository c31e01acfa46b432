//! The measurements: systems, protocols, rates and sizes.

use gridhaul_scenario::units::Duration;
use serde::Serialize;

use crate::command::cells::{CellResult, measure_each, parse};
use crate::command::place::Interrupt;
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
///
/// # Errors
/// A command is not valid.
pub(super) fn measure(
    extent: &Extent,
    quiet: bool,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Cell>> {
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
    let runs =
        planned.iter().map(|cell| parse(&cell.command)).collect::<anyhow::Result<Vec<_>>>()?;
    measure_each(&runs, interrupt, &mut |number, outcome| {
        let (result, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let cell = &planned[number];
        done.push(Cell { result, error, ..cell.clone() });
        if !quiet {
            say(format_args!("{} of {total}: {}", done.len(), cell.command));
        }
    });
    Ok(done)
}
