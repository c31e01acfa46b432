//! The outages: all links of the 5G-ready system, or the broker, are interrupted, for clients of
//! several kinds.

use std::sync::atomic::Ordering;

use anyhow::Context;
use gridhaul_scenario::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::Planned;
use super::extent::Extent;
use super::plan::{AMQP, protocol};
use super::store::Store;
use crate::measurement::{
    BrokerConnection, BrokerOutage, CrossTrafficSettings, Disturbance, EmulatedNetwork, Experiment,
    LinkOutage, Measurement, OutageExperiment, Place, Reconnect, Record, ScheduleSettings,
    SubscriberEnd,
};
use crate::run::{Observer, Recovery, Run, message, run_once};

/// Messages per second during an outage.
const RATE: f64 = 100.0;

/// Time of the messages before an outage.
const BEFORE: Duration = Duration::from_secs(3);

/// Time of the messages after the end of an outage of links: as long as the outage, and the
/// connection again.
const AFTER: f64 = 4.0;

/// Time of the messages after the end of an outage of RabbitMQ, which starts slowly.
const BROKER_START: f64 = 30.0;

/// Longest keep-alive of the clients.
const KEEP_ALIVE_LONG: Duration = Duration::from_secs(60);

/// Shortest keep-alive of the clients, which VILLASnode 0.6.2 sets.
const KEEP_ALIVE_SHORT: Duration = Duration::from_secs(1);

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

    /// Options of the command.
    const fn options(self) -> &'static str {
        match self {
            Self::Connectionless => "",
            Self::StaysLost => " --keep-alive 1s --no-reconnect",
            Self::Reconnects => " --keep-alive 1s",
            Self::Patient => " --keep-alive 60s",
        }
    }

    const fn keep_alive(self) -> Duration {
        match self {
            Self::StaysLost | Self::Reconnects => KEEP_ALIVE_SHORT,
            Self::Connectionless | Self::Patient => KEEP_ALIVE_LONG,
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

/// The measurements of all outages.
pub(super) fn planned(extent: &Extent) -> impl Iterator<Item = Planned> {
    let planned = |case| Planned { command: command(&case), measurement: measurement(&case) };
    cases(extent).into_iter().map(planned)
}

/// Interrupts the 5G-ready system for each protocol and client.
pub(super) fn outages(
    extent: &Extent,
    store: &mut Store,
    observer: &dyn Observer,
) -> anyhow::Result<Vec<OutageCell>> {
    let is_stopped = || observer.stop().load(Ordering::Relaxed);
    let mut cells = Vec::new();
    for case in cases(extent) {
        let command = command(&case);
        if let Some(known) = store.of(&command).pop() {
            cells.push(known);
            continue;
        }
        if is_stopped() {
            break;
        }
        observer.on_note(&format!("outage: {command}"));
        let cell = measured(&case, &command, observer).unwrap_or_else(|error| OutageCell {
            error: Some(message(&error)),
            ..OutageCell::new(&case, &command)
        });
        if cell.error.is_none() && !is_stopped() {
            store.push(&command, &cell)?;
        }
        cells.push(cell);
    }
    Ok(cells)
}

/// Number of messages of a case.
fn messages(case: &OutageCase) -> u64 {
    let after = match case.fault {
        Fault::Link => case.length_s + AFTER,
        Fault::Broker if case.mosquitto => AFTER,
        Fault::Broker => BROKER_START,
    };
    (RATE * (BEFORE.as_secs_f64() + case.length_s + after)).ceil() as u64
}

/// Time after which a message of a case is lost; the experiment adds twice the length of the
/// outage. Without retransmissions, a message that is late by more than the jitter of the link is
/// lost.
fn horizon(case: &OutageCase) -> Duration {
    Duration::from_secs(if case.client == Client::Connectionless { 2 } else { 10 })
}

/// The command `gridhaul measure outage` of a case, which is the key of its result in the folder.
fn command(case: &OutageCase) -> String {
    let OutageCase { protocol, fault, length_s, .. } = case;
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
         --rate {RATE} --messages {} --horizon {}s{broker}{}",
        BEFORE.as_secs_f64(),
        messages(case),
        horizon(case).as_secs_f64(),
        case.client.options()
    )
}

/// The measurement of a case.
fn measurement(case: &OutageCase) -> Measurement {
    let (start, length) = (BEFORE, Duration::from_secs_f64(case.length_s));
    let disturbance = match case.fault {
        Fault::Link => Disturbance::Links(LinkOutage { start, length }),
        Fault::Broker => Disturbance::Broker(BrokerOutage { start, length }),
    };
    let experiment = Experiment::Outage(OutageExperiment {
        disturbance,
        schedule: ScheduleSettings { rate: RATE, messages: messages(case), warm_up: None },
        cross_traffic: CrossTrafficSettings::default(),
        record: Record { floor: false, ..Record::default() },
    });
    let is_at_broker = case.fault == Fault::Link;
    let connection = BrokerConnection {
        keep_alive: case.client.keep_alive(),
        reconnect: match case.client {
            Client::StaysLost => Reconnect::Never,
            _ => Reconnect::default(),
        },
        subscriber: if is_at_broker { SubscriberEnd::To } else { SubscriberEnd::From },
        ..BrokerConnection::default()
    };
    let protocol = protocol(&case.protocol, case.mosquitto, connection);
    let mut measurement = Measurement::new(experiment, protocol);
    measurement.message.horizon = horizon(case);
    if is_at_broker {
        measurement.place = Place::Emulated(EmulatedNetwork::system("5g-ready"));
    }
    measurement
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

fn measured(
    case: &OutageCase,
    command: &str,
    observer: &dyn Observer,
) -> anyhow::Result<OutageCell> {
    let measurement = measurement(case);
    let run = run_once(&measurement, None, observer).context("measuring an outage")?;
    let length = Duration::from_secs_f64(case.length_s);
    let outage = match case.fault {
        Fault::Link => Some(LinkOutage { start: BEFORE, length }.times()),
        Fault::Broker => run.broker_outage,
    };
    let outage = outage.context("the messages ended before the broker was back")?;
    // Without a later arrival, the time without one has no end.
    let recovery = Recovery::new(&run, outage).filter(|recovery| !recovery.gap.is_open);
    let (later, later_with_arrivals) = after(&run, outage[1]);
    let counts = run.outcome.summary.counts;
    Ok(OutageCell {
        unavailable_s: Some(outage[1].since(outage[0]).as_secs_f64()),
        without_arrival_s: recovery.as_ref().map(|found| found.gap.length().as_secs_f64()),
        first_arrival_after_end_s: recovery
            .and_then(|found| found.first_after)
            .map(Duration::as_secs_f64),
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
