//! The outages: all links of the 5G-ready system, or the broker, are interrupted, for clients of
//! several kinds.

use anyhow::Context;
use gridhaul_scenario::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::extent::Extent;
use super::plan::AMQP;
use super::store::Store;
use crate::args::OutageArgs;
use crate::command::cells::parse_outage;
use crate::command::disturbance::Disturbance;
use crate::command::outage::Recovery;
use crate::command::place::Interrupt;
use crate::command::run::{Run, execute_until};
use crate::terminal::{message, say};

/// Messages per second during an outage.
const RATE: f64 = 100.0;

/// Time of the messages before an outage.
const BEFORE: Duration = Duration::from_secs(3);

/// Time of the messages after the end of an outage of links: as long as the outage, and the
/// connection again.
const AFTER: f64 = 4.0;

/// Time of the messages after the end of an outage of RabbitMQ, which starts slowly.
const BROKER_START: f64 = 30.0;

/// Longest keep-alive of the clients, and the shortest, which VILLASnode 0.6.2 sets.
const KEEP_ALIVE: [&str; 2] = ["60s", "1s"];

/// Failing part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    /// All links lose all packets.
    Link,
    /// The broker is killed, and started again.
    Broker,
}

/// How a client deals with the loss of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Client {
    /// There is no connection.
    Connectionless,
    /// Does not connect again, and notices the loss after its keep-alive of 1 s.
    StaysLost,
    /// Connects again, with a keep-alive of 1 s.
    Reconnects,
    /// Has a keep-alive of 60 s, longer than the outage: TCP retransmits.
    Patient,
}

/// An outage and its client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OutageCase {
    pub(super) protocol: String,
    /// Whether MQTT passes mosquitto.
    pub(super) mosquitto: bool,
    pub(super) fault: Fault,
    pub(super) client: Client,
    pub(super) length_s: f64,
}

/// An outage and what the messages show of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct OutageCell {
    #[serde(flatten)]
    pub(super) case: OutageCase,
    pub(super) command: String,
    pub(super) interval_s: f64,
    /// Time until links forwarded, or the broker accepted connections, again.
    pub(super) unavailable_s: Option<f64>,
    /// Longest time without an arrival; `None` if it does not contain the outage.
    pub(super) without_arrival_s: Option<f64>,
    pub(super) first_arrival_after_end_s: Option<f64>,
    /// Intervals of the time profile after the end of the outage: those in which messages arrived,
    /// of all.
    pub(super) later_with_arrivals: usize,
    pub(super) later: usize,
    pub(super) lost: u64,
    pub(super) refused: u64,
    pub(super) reconnections: usize,
    pub(super) error: Option<String>,
}

impl Client {
    /// Words of the table.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Connectionless => "no connection",
            Self::StaysLost => "no reconnection, keep-alive 1 s",
            Self::Reconnects => "reconnects, keep-alive 1 s",
            Self::Patient => "keep-alive 60 s",
        }
    }

    fn options(self) -> String {
        let [long, short] = KEEP_ALIVE;
        match self {
            Self::Connectionless => String::new(),
            Self::StaysLost => format!(" --keep-alive {short} --no-reconnect"),
            Self::Reconnects => format!(" --keep-alive {short}"),
            Self::Patient => format!(" --keep-alive {long}"),
        }
    }
}

impl OutageCell {
    /// Whether messages that are sent after the outage arrive; `None` without such messages.
    pub(super) const fn recovers(&self) -> Option<bool> {
        if self.later == 0 { None } else { Some(self.later_with_arrivals > 0) }
    }
}

/// All outages.
fn cases(extent: &Extent) -> Vec<OutageCase> {
    let longest = extent.outages.last().copied().unwrap_or(Duration::ZERO);
    let mut cases = Vec::new();
    let mut add = |protocol: &str, fault, client, length: Duration| {
        let (protocol, length_s) = (protocol.to_owned(), length.as_secs_f64());
        cases.push(OutageCase { protocol, mosquitto: false, fault, client, length_s });
    };
    for &length in extent.outages {
        add("sv", Fault::Link, Client::Connectionless, length);
        add("mqtt", Fault::Link, Client::Patient, length);
    }
    add("udp", Fault::Link, Client::Connectionless, longest);
    add("mqtt", Fault::Link, Client::StaysLost, longest);
    if extent.has_all_outages() {
        add(AMQP, Fault::Link, Client::Patient, longest);
        add(AMQP, Fault::Link, Client::StaysLost, longest);
        for protocol in ["mqtt", AMQP] {
            add(protocol, Fault::Link, Client::Reconnects, longest);
            add(protocol, Fault::Broker, Client::StaysLost, longest);
            add(protocol, Fault::Broker, Client::Reconnects, longest);
        }
    }
    for client in [Client::StaysLost, Client::Reconnects] {
        let (fault, length_s) = (Fault::Broker, longest.as_secs_f64());
        let protocol = "mqtt".to_owned();
        cases.push(OutageCase { protocol, mosquitto: true, fault, client, length_s });
    }
    if !extent.has_all_outages() {
        // RabbitMQ starts slowly.
        cases.iter_mut().for_each(|case| case.mosquitto |= case.protocol == "mqtt");
    }
    cases
}

/// Interrupts the 5G-ready system for each protocol and client.
pub(super) fn outages(
    extent: &Extent,
    (store, quiet): (&mut Store, bool),
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<OutageCell>> {
    let mut cells = Vec::new();
    for case in cases(extent) {
        let command = command(&case);
        if let Some(known) = store.of(&command).pop() {
            cells.push(known);
            continue;
        }
        if interrupt.is_set() {
            break;
        }
        if !quiet {
            say(format_args!("outage: {command}"));
        }
        let cell = measured(&case, &command, interrupt).unwrap_or_else(|error| OutageCell {
            error: Some(message(&error)),
            ..OutageCell::new(&case, &command)
        });
        if cell.error.is_none() && !interrupt.is_set() {
            store.push(&command, &cell)?;
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// The command `gridhaul measure outage` of a case.
fn command(case: &OutageCase) -> String {
    let OutageCase { protocol, fault, length_s, .. } = case;
    let after = match fault {
        Fault::Link => length_s + AFTER,
        Fault::Broker if case.mosquitto => AFTER,
        Fault::Broker => BROKER_START,
    };
    let messages = (RATE * (BEFORE.as_secs_f64() + length_s + after)).ceil();
    // Without retransmissions, a message that is late by more than the jitter of the link is lost.
    // The command adds twice the length of the outage.
    let horizon = if case.client == Client::Connectionless { "2s" } else { "10s" };
    let (part, place) = match fault {
        Fault::Link => ("links", " --system 5g-ready --subscriber to"),
        Fault::Broker => ("broker", ""),
    };
    let broker = match (protocol.as_str(), case.mosquitto) {
        ("mqtt", false) => " --broker-program rabbitmq",
        _ => "",
    };
    format!(
        "gridhaul measure outage {protocol} --of {part} --length {length_s}s --start {}s{place} \
         --rate {RATE} --messages {messages} --horizon {horizon}{broker}{}",
        BEFORE.as_secs_f64(),
        case.client.options()
    )
}

impl OutageCell {
    fn new(case: &OutageCase, command: &str) -> Self {
        Self {
            case: case.clone(),
            command: command.to_owned(),
            interval_s: 1.0 / RATE,
            unavailable_s: None,
            without_arrival_s: None,
            first_arrival_after_end_s: None,
            later_with_arrivals: 0,
            later: 0,
            lost: 0,
            refused: 0,
            reconnections: 0,
            error: None,
        }
    }
}

fn measured(case: &OutageCase, command: &str, interrupt: &Interrupt) -> anyhow::Result<OutageCell> {
    let args = parse_outage(command)?;
    let OutageArgs { start, length, .. } = args;
    let disturbance = Disturbance { part: args.part(), start, length };
    let mut args = args.run;
    // As the command does.
    args.common.horizon += length * 2;
    let run = execute_until(&args, interrupt, Some(&disturbance)).context("measuring an outage")?;
    let outage = match case.fault {
        Fault::Link => Some([start, start + length].map(|at| Instant::ZERO + at)),
        Fault::Broker => run.broker_outage,
    };
    let outage = outage.context("the messages ended before the broker was back")?;
    let recovery = Recovery::new(&run, outage);
    let (later, later_with_arrivals) = after(&run, outage[1]);
    let counts = run.outcome.summary.counts;
    Ok(OutageCell {
        unavailable_s: Some(outage[1].since(outage[0]).as_secs_f64()),
        without_arrival_s: recovery.as_ref().map(|it| it.gap.as_secs_f64()),
        first_arrival_after_end_s: recovery.map(|it| it.first_after.as_secs_f64()),
        later_with_arrivals,
        later,
        lost: counts.lost,
        refused: counts.refused,
        reconnections: run.outcome.reconnections.len(),
        ..OutageCell::new(case, command)
    })
}

/// Intervals of the time profile that begin later than a second after the end of the outage, and
/// those of them with arrivals.
fn after(run: &Run, end: Instant) -> (usize, usize) {
    let end = end + Duration::from_secs(1);
    let start = run.outcome.start;
    let points = run.profile.points();
    let later = points.filter(|point| start + point.at.since(Instant::ZERO) > end);
    let arrivals: Vec<_> = later.map(|point| point.mean.is_some()).collect();
    (arrivals.len(), arrivals.iter().filter(|has_arrived| **has_arrived).count())
}
