//! The protocol that a measurement selects, and its broker.

use std::fs;

use anyhow::Context;
use gridhaul_protocols::mqtt::{QualityOfService, Version};
use gridhaul_protocols::settings::{
    Amqp10, Amqp091, BrokerAddress, BrokerProtocol, ClientSettings, Direct, DirectKind,
    FrameContent, FrameStream, Modbus, Mqtt, Pattern,
};
use gridhaul_scenario::units::Duration;

use super::{Null, Protocol, ThroughBroker, Udp, frame_stream};
use crate::broker::Broker;
use crate::measurement::{
    BrokerConnection, DirectConnection, GivenBroker, Measurement, ProtocolUnderTest,
    RequestedBroker,
};
use crate::place::Sites;
use crate::settings::Settings;

/// Link credit of AMQP 1.0 by default: enough for 1,000 messages/s over a round-trip time of one
/// second.
const CREDIT: u32 = 1_000;

/// A protocol, before a broker is known.
#[derive(Debug)]
pub(crate) enum Selection {
    Null,
    Frames(FrameStream),
    Udp,
    Modbus(Modbus),
    Direct(Direct),
    Broker(ClientSettings),
}

/// A protocol that can connect, and its broker.
#[derive(Debug)]
pub(crate) struct Started<'b> {
    pub(crate) protocol: Box<dyn Protocol>,
    pub(crate) broker: BrokerInUse<'b>,
}

/// The broker of a run.
#[derive(Debug)]
pub(crate) enum BrokerInUse<'b> {
    /// The protocol has none.
    None,
    /// A running broker of the user.
    Given(BrokerAddress),
    /// A broker of this run.
    Own(Box<Broker>, BrokerAddress),
    /// A broker that several runs share; `nodelay` is in their results, if it is known.
    Shared { broker: &'b Broker, address: BrokerAddress, nodelay: Option<bool> },
}

impl Selection {
    /// The protocol of a measurement.
    pub(crate) fn new(measurement: &Measurement) -> Self {
        let kind = |kind: DirectKind, connection: &DirectConnection| {
            Self::Direct(direct(kind, connection))
        };
        let broker = |protocol, connection| Self::Broker(clients(protocol, connection));
        match &measurement.protocol {
            ProtocolUnderTest::Null(_) => Self::Null,
            ProtocolUnderTest::Udp(_) => Self::Udp,
            protocol @ (ProtocolUnderTest::SampledValues(_) | ProtocolUnderTest::Goose(_)) => {
                Self::Frames(frames(protocol))
            }
            ProtocolUnderTest::Mqtt(mqtt_options) => {
                broker(mqtt(Version::V3, mqtt_options.qos), &mqtt_options.connection)
            }
            ProtocolUnderTest::Mqtt5(mqtt_options) => {
                broker(mqtt(Version::V5, mqtt_options.qos), &mqtt_options.connection)
            }
            ProtocolUnderTest::Amqp091(amqp) => {
                let (prefetch, persistent) = (amqp.prefetch, amqp.persistent);
                let protocol = Amqp091 { prefetch, persistent, ..Amqp091::default() };
                broker(BrokerProtocol::Amqp091(protocol), &amqp.connection)
            }
            ProtocolUnderTest::Amqp10(amqp) => {
                let credit = u32::from(amqp.prefetch);
                let protocol = Amqp10 {
                    credit: if credit == 0 { CREDIT } else { credit },
                    settled: !amqp.unsettled,
                    node: amqp.node.clone(),
                };
                broker(BrokerProtocol::Amqp10(protocol), &amqp.connection)
            }
            ProtocolUnderTest::Xmpp(xmpp) => broker(BrokerProtocol::Xmpp, &xmpp.connection),
            ProtocolUnderTest::ModbusTcp(stream) => Self::Modbus(Modbus {
                port: stream.connection.port,
                nodelay: stream.connection.nodelay,
                reconnect: stream.connection.reconnect.policy(stream.connection.queue),
            }),
            ProtocolUnderTest::Iec104(settings) => {
                kind(DirectKind::Iec104(settings.window()), &settings.connection)
            }
            ProtocolUnderTest::Dnp3(settings) => {
                kind(DirectKind::Dnp3 { poll: settings.poll }, &settings.connection)
            }
            ProtocolUnderTest::C37118(stream) => {
                kind(DirectKind::Synchrophasor(measurement.message.bytes), &stream.connection)
            }
            ProtocolUnderTest::Zeromq(stream) => {
                kind(DirectKind::ZeroMq(Pattern::Pipeline), &stream.connection)
            }
            ProtocolUnderTest::ZeromqPubSub(stream) => {
                kind(DirectKind::ZeroMq(Pattern::PublishSubscribe), &stream.connection)
            }
            ProtocolUnderTest::Nanomsg(stream) => kind(DirectKind::Nanomsg, &stream.connection),
        }
    }
}

impl Started<'static> {
    /// Starts the broker of the protocol, unless one is given or it has none.
    ///
    /// # Errors
    /// The broker cannot be started, or the certificates of its authorities cannot be read.
    pub(crate) fn start(measurement: &Measurement, sites: &Sites<'_>) -> anyhow::Result<Self> {
        let alone = |protocol| Started { protocol, broker: BrokerInUse::None };
        Ok(match Selection::new(measurement) {
            Selection::Null => alone(Box::new(Null)),
            Selection::Frames(stream) => alone(frame_stream::protocol(&stream)),
            Selection::Udp => alone(Box::new(Udp)),
            Selection::Modbus(modbus) => alone(Box::new(modbus)),
            Selection::Direct(direct) => alone(Box::new(direct)),
            Selection::Broker(clients) => {
                let broker = match measurement.protocol.requested_broker() {
                    Some(RequestedBroker::Given(broker)) => {
                        BrokerInUse::Given(given_address(broker)?)
                    }
                    Some(RequestedBroker::Started(program, settings)) => {
                        let broker = Broker::start(program, &sites.to, settings)?;
                        let address = broker.address_for(&clients.protocol);
                        BrokerInUse::Own(Box::new(broker), address)
                    }
                    None => BrokerInUse::None,
                };
                Started::through(clients, broker)?
            }
        })
    }
}

impl<'b> Started<'b> {
    /// A protocol with a broker that several runs share, or without one.
    ///
    /// # Errors
    /// As [`Started::start`].
    pub(crate) fn at_broker(
        measurement: &Measurement,
        sites: &Sites<'_>,
        broker: &'b Broker,
        nodelay: Option<bool>,
    ) -> anyhow::Result<Self> {
        match Selection::new(measurement) {
            Selection::Broker(clients) => {
                let address = broker.address_for(&clients.protocol);
                // Shared brokers are started without encryption.
                let address = BrokerAddress { tls: None, ..address };
                Self::through(clients, BrokerInUse::Shared { broker, address, nodelay })
            }
            _ => Started::start(measurement, sites),
        }
    }

    fn through(clients: ClientSettings, broker: BrokerInUse<'b>) -> anyhow::Result<Self> {
        let address = broker.address().context("the protocol has no broker")?.clone();
        let protocol = Box::new(ThroughBroker { clients, broker: address });
        Ok(Self { protocol, broker })
    }
}

impl BrokerInUse<'_> {
    /// Address for the clients; `None` without a broker.
    pub(crate) const fn address(&self) -> Option<&BrokerAddress> {
        match self {
            Self::None => None,
            Self::Given(address) | Self::Own(_, address) | Self::Shared { address, .. } => {
                Some(address)
            }
        }
    }

    /// The broker of this run, which the run may end and start again.
    pub(crate) const fn own(&mut self) -> Option<&mut Box<Broker>> {
        match self {
            Self::Own(broker, _) => Some(broker),
            Self::None | Self::Given(_) | Self::Shared { .. } => None,
        }
    }

    /// Program, and whether its sockets set `TCP_NODELAY`. The setting of a broker that another
    /// program has started is unknown.
    fn settings(&self, requested_nodelay: bool) -> Option<[(&'static str, String); 2]> {
        let (program, nodelay) = match self {
            Self::None => return None,
            Self::Given(_) => ("given", None),
            Self::Own(broker, _) => (broker.name(), Some(requested_nodelay)),
            Self::Shared { broker, nodelay, .. } => (broker.name(), *nodelay),
        };
        let nodelay = nodelay.map_or_else(|| "unknown".into(), |nodelay| nodelay.to_string());
        Some([("broker_program", program.to_owned()), ("broker_nodelay", nodelay)])
    }
}

/// Every setting that influences the result, those of the broker and of the kernel included.
///
/// # Errors
/// The namespace of a node cannot be entered.
pub(crate) fn settings(
    measurement: &Measurement,
    started: &Started<'_>,
    sites: &Sites<'_>,
) -> anyhow::Result<Settings> {
    let mut settings = started.protocol.settings();
    if measurement.protocol.is_stream() {
        settings.extend(sites.tcp_settings()?);
    }
    let connection = measurement.protocol.broker_connection();
    let nodelay = connection.is_some_and(|connection| connection.nodelay.at_broker());
    settings.extend(started.broker.settings(nodelay).into_iter().flatten());
    if let BrokerInUse::Own(broker, _) = &started.broker {
        settings.extend(broker.nice().map(|nice| ("broker_nice", nice.to_string())));
    }
    let processor = measurement.generator.processor;
    settings.extend(processor.map(|number| ("generator_processor", number.to_string())));
    Ok(settings)
}

/// The address of a running broker.
///
/// # Errors
/// The file with the certificate cannot be read.
pub(crate) fn given_address(broker: &GivenBroker) -> anyhow::Result<BrokerAddress> {
    let Some(file) = &broker.ca else { return Ok(broker.url.address("")) };
    let authorities = fs::read_to_string(file)
        .with_context(|| format!("--ca: cannot read {}", file.display()))?;
    Ok(broker.url.address(&authorities))
}

/// A name for topics and queues that no other run uses.
pub(crate) fn client_name() -> String {
    format!("gridhaul-{}", std::process::id())
}

/// The frames of Sampled Values or GOOSE; those of Sampled Values for another protocol.
pub(crate) fn frames(protocol: &ProtocolUnderTest) -> FrameStream {
    let content = match protocol {
        ProtocolUnderTest::Goose(goose) => {
            FrameContent::Goose { retransmission: goose.retransmission.intervals() }
        }
        ProtocolUnderTest::SampledValues(samples) => {
            FrameContent::SampledValues { light_edition: samples.data_set.light_edition() }
        }
        _ => FrameContent::SampledValues { light_edition: None },
    };
    FrameStream { vlan: protocol.vlan().map(Into::into), content }
}

fn direct(kind: DirectKind, connection: &DirectConnection) -> Direct {
    let &DirectConnection { port, nodelay, reconnect, queue } = connection;
    Direct { kind, port, nodelay, reconnect: reconnect.policy(queue) }
}

fn clients(protocol: BrokerProtocol, connection: &BrokerConnection) -> ClientSettings {
    let keep_alive: Duration = connection.keep_alive;
    ClientSettings {
        protocol,
        name: client_name(),
        nodelay: connection.nodelay.at_clients(),
        one_connection: connection.connections == 1,
        keep_alive,
        reconnect: connection.reconnect.policy(connection.queue),
    }
}

const fn mqtt(version: Version, qos: u8) -> BrokerProtocol {
    let qos = match qos {
        0 => QualityOfService::AtMostOnce,
        _ => QualityOfService::AtLeastOnce,
    };
    BrokerProtocol::Mqtt(Mqtt { version, qos })
}
