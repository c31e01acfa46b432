//! Test 8: the packets and bytes of a series of messages, counted in a capture at the end of the
//! publisher and the subscriber, as the report did with tcpdump and Wireshark.

use std::sync::atomic::Ordering;

use anyhow::Context;
use gridhaul_core::wire::VlanTag;
use gridhaul_protocols::settings::{
    Amqp091, BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings, Mqtt,
};
use serde::{Deserialize, Serialize};

use super::store::Store;
use crate::broker::Broker;
use crate::experiment::reserve::paper::{
    Column, Encoding, Protocol as Name, Tables, test_messages,
};
use crate::measurement::{EmulatedNetwork, Place, SubscriberEnd};
use crate::place::Carrier;
use crate::place::LocalNetwork;
use crate::place::Sites;
use crate::protocol::{DataSet, FrameIdentity, Protocol, SampledValueStream, ThroughBroker};
use crate::run::{Observer, message};
use crate::traffic::{Phases, Selection, Series, SeriesTraffic, measure_traffic};

/// Messages per second.
const RATE: f64 = 100.0;

/// Values of a message.
const VALUES: usize = 10;

/// Seed of the values.
const SEED: u64 = 1;

/// Topic of VILLASnode's documentation.
const TOPIC: &str = "test-topic";

/// `svID` and `datSet`, 8 characters together.
const SV_ID: &str = "1234";
const DATA_SET: &str = "node";

/// The tag that the library of VILLASnode sends by default.
const TAG: VlanTag = VlanTag { id: 0, priority: 4, drop_eligible: false, service: false };

/// A series of messages, and what the capture counted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Column of Tables 4 and 5.
    pub(super) column: String,
    /// The broker; empty without one.
    pub(super) broker: String,
    /// Messages of the series.
    pub(super) messages: u64,
    pub(super) delivered: u64,
    /// Mean bytes of a message.
    pub(super) payload_bytes: f64,
    /// Bytes of the first message.
    pub(super) first_payload_bytes: u64,
    pub(super) phases: Phases,
    /// Packets that the capture has missed.
    pub(super) missed: u64,
    pub(super) fault: Option<String>,
}

impl Measured {
    /// Whether all messages arrived, and all packets were captured.
    pub(super) const fn is_complete(&self) -> bool {
        self.delivered == self.messages && self.missed == 0 && self.fault.is_none()
    }

    /// Mean of a message.
    pub(super) fn per_message(&self, count: u64) -> f64 {
        count as f64 / self.messages as f64
    }
}

/// A series and its broker.
#[derive(Debug, Clone, Copy)]
struct Planned<'a> {
    column: &'a Column,
    broker: Option<BrokerProgram>,
}

impl Planned<'_> {
    fn key(&self, messages: u64) -> String {
        format!("test 8: {}, {}, {messages} messages", self.column.name, self.broker_name())
    }

    const fn broker_name(&self) -> &'static str {
        match self.broker {
            None => "",
            Some(BrokerProgram::Mosquitto) => "mosquitto",
            Some(_) => "RabbitMQ",
        }
    }

    /// The clients of VILLASnode: one connection of MQTT with Nagle's algorithm, two of AMQP
    /// without.
    fn clients(&self) -> ClientSettings {
        match self.column.protocol {
            Name::Mqtt => ClientSettings {
                nodelay: false,
                one_connection: true,
                ..ClientSettings::new(BrokerProtocol::Mqtt(Mqtt::default()), TOPIC)
            },
            _ => {
                let amqp = Amqp091 { villas_names: true, ..Amqp091::default() };
                ClientSettings::new(BrokerProtocol::Amqp091(amqp), "villas")
            }
        }
    }

    fn measure(
        &self,
        count: u64,
        sites: &Sites<'_>,
        broker: Option<&Broker>,
        observer: &dyn Observer,
    ) -> anyhow::Result<Measured> {
        let messages = test_messages(self.column.encoding, VALUES, count, SEED);
        let (protocol, selection): (Box<dyn Protocol>, _) = match broker {
            Some(broker) => {
                let clients = self.clients();
                let broker = broker.address_for(&clients.protocol);
                let selection = Selection::Connections(broker.address);
                (Box::new(ThroughBroker { clients, broker }), selection)
            }
            None => {
                let identity = FrameIdentity { vlan: Some(TAG), application: 0x4000 };
                let (id, data_set) = (SV_ID.to_owned(), DataSet::Named(DATA_SET));
                let stream = SampledValueStream { identity, id, data_set };
                (Box::new(stream), Selection::SampledValues)
            }
        };
        let series = Series { messages: &messages, rate: RATE, selection };
        let found = measure_traffic(&series, &*protocol, sites, observer.stop())?;
        let SeriesTraffic { delivered, phases, missed, fault, .. } = found;
        let bytes: usize = messages.iter().map(Vec::len).sum();
        Ok(Measured {
            column: self.column.name.clone(),
            broker: self.broker_name().to_owned(),
            messages: count,
            delivered,
            payload_bytes: bytes as f64 / count as f64,
            first_payload_bytes: messages.first().map_or(0, Vec::len) as u64,
            phases,
            missed,
            fault,
        })
    }
}

/// Sends the series of all columns through the report's broker, and those of MQTT through mosquitto
/// as well.
pub(super) fn measure(
    tables: &Tables,
    count: u64,
    store: &mut Store,
    observer: &dyn Observer,
) -> anyhow::Result<Vec<Measured>> {
    let column = |broker: Option<BrokerProgram>| move |column| Planned { column, broker };
    let with_broker = || tables.column.iter().filter(|column| column.encoding != Encoding::Float);
    let mqtt = with_broker().filter(|column| column.protocol == Name::Mqtt);
    let frames = tables.column.iter().filter(|column| column.encoding == Encoding::Float);
    let groups = [
        with_broker().map(column(Some(BrokerProgram::RabbitMq))).collect::<Vec<_>>(),
        frames.map(column(None)).collect(),
        mqtt.map(column(Some(BrokerProgram::Mosquitto))).collect(),
    ];
    let mut measured = Vec::new();
    for group in groups {
        let known = |planned: &Planned<'_>| store.of::<Measured>(&planned.key(count)).pop();
        let (done, left): (Vec<_>, Vec<_>) = group
            .into_iter()
            .map(|planned| (planned, known(&planned)))
            .partition(|entry| entry.1.is_some());
        measured.extend(done.into_iter().filter_map(|(_, known)| known));
        let left: Vec<_> = left.into_iter().map(|(planned, _)| planned).collect();
        if observer.stop().load(Ordering::Relaxed) || left.is_empty() {
            continue;
        }
        let mut keep = |planned: &Planned<'_>, found: Measured| {
            if found.is_complete() {
                store.push(&planned.key(count), &found)?;
            }
            measured.push(found);
            anyhow::Ok(())
        };
        if let Err(error) = at_network(&left, count, observer, &mut keep) {
            observer.on_failure(&format!("test 8: {}", message(&error)));
        }
    }
    let place = |measured: &Measured| {
        let column = tables.column.iter().position(|column| column.name == measured.column);
        (measured.broker == "mosquitto", column)
    };
    measured.sort_by_key(place);
    Ok(measured)
}

fn at_network(
    group: &[Planned<'_>],
    count: u64,
    observer: &dyn Observer,
    keep: &mut dyn FnMut(&Planned<'_>, Measured) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(first) = group.first() else { return Ok(()) };
    // The report captured on its Ethernet system (section 3.2), at the computer of publisher and
    // subscriber.
    let place = Place::Emulated(EmulatedNetwork::system("ethernet"));
    let network = LocalNetwork::new(&place, SubscriberEnd::From)?;
    let prepare = |sites: &Sites<'_>| -> anyhow::Result<Option<Broker>> {
        let start =
            |program: BrokerProgram| Broker::start(program, &sites.to, BrokerSettings::default());
        Ok(first.broker.map(start).transpose()?)
    };
    let carrier = if first.broker.is_none() { Carrier::Frames } else { Carrier::Packets };
    network.enter(carrier, prepare, |sites, broker| {
        for planned in group {
            if observer.stop().load(Ordering::Relaxed) {
                break;
            }
            let seconds = count as f64 / RATE;
            observer.on_note(&format!("{}, {seconds:.0} s", planned.key(count)));
            let found = planned.measure(count, sites, broker.as_ref(), observer);
            keep(planned, found.with_context(|| planned.key(count))?)?;
        }
        Ok(())
    })
}
