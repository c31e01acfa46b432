//! The protocol under test and its broker, as the arguments request them.

use gridhaul_core::wire::VlanTag;
use gridhaul_measure::broker::{Broker, BrokerAddress, BrokerError, Mosquitto, Prosody, RabbitMq};
use gridhaul_measure::frame::goose::RetransmissionSchedule;
use gridhaul_measure::network::{Site, Sites};
use gridhaul_measure::protocol::{
    Amqp10, Amqp091, Direct, DirectKind, FrameIdentity, GooseControlBlock, Modbus, Mqtt, Null,
    Pattern, Protocol, QualityOfService, SampledValueStream, Udp, Version, Xmpp,
};

use crate::args::{ConnectionArgs, FrameArgs, ProtocolArgs, ProtocolName};

/// Link credit of AMQP 1.0 by default: enough for 1,000 messages/s over a round-trip time of one second.
const CREDIT: u32 = 1_000;

/// A protocol, and its broker if this program starts it.
type Started = (Box<dyn Protocol>, Option<Box<dyn Broker>>);

/// Starts the broker of the protocol, unless one is given or it has none.
///
/// # Errors
/// The broker cannot be started.
pub(super) fn start(args: &ProtocolArgs, sites: &Sites<'_>) -> anyhow::Result<Started> {
    let connection = &args.connection;
    Ok(match args.protocol {
        ProtocolName::Null => (Box::new(Null), None),
        ProtocolName::Udp => (Box::new(Udp), None),
        ProtocolName::Mqtt | ProtocolName::Mqtt5 => {
            let (address, broker) = broker(connection, &sites.to, Mosquitto::start)?;
            let version =
                if args.protocol == ProtocolName::Mqtt { Version::V3 } else { Version::V5 };
            (Box::new(mqtt(connection, address, version)), broker)
        }
        ProtocolName::Amqp091 => {
            let (broker, own) = broker(connection, &sites.to, RabbitMq::start)?;
            (Box::new(amqp_0_9_1(connection, broker)), own)
        }
        ProtocolName::Amqp10 => {
            let (broker, own) = broker(connection, &sites.to, RabbitMq::start)?;
            (Box::new(amqp_1_0(connection, broker)), own)
        }
        ProtocolName::Xmpp => {
            let (server, own) = broker(connection, &sites.to, Prosody::start)?;
            (Box::new(xmpp(connection, server)), own)
        }
        ProtocolName::ModbusTcp => {
            let protocol = Modbus {
                port: connection.port,
                nodelay: connection.client_nodelay(),
                reconnect: connection.reconnect(),
            };
            (Box::new(protocol), None)
        }
        ProtocolName::Iec104 => direct(connection, DirectKind::Iec104),
        ProtocolName::Dnp3 => direct(connection, DirectKind::Dnp3 { poll: connection.poll }),
        ProtocolName::C37118 => direct(connection, DirectKind::Synchrophasor(args.bytes)),
        ProtocolName::Zeromq => direct(connection, DirectKind::ZeroMq(Pattern::Pipeline)),
        ProtocolName::ZeromqPubSub => {
            direct(connection, DirectKind::ZeroMq(Pattern::PublishSubscribe))
        }
        ProtocolName::Nanomsg => direct(connection, DirectKind::Nanomsg),
        ProtocolName::Sv => (Box::new(sampled_values(&args.frames)), None),
        ProtocolName::Goose => (Box::new(goose(&args.frames)), None),
    })
}

/// A protocol between two ends of this program.
fn direct(args: &ConnectionArgs, kind: DirectKind) -> Started {
    let (port, nodelay) = (args.port, args.client_nodelay());
    (Box::new(Direct { kind, port, nodelay, reconnect: args.reconnect() }), None)
}

/// The broker that is given, or one that `start` starts.
fn broker<B: Broker + 'static>(
    args: &ConnectionArgs,
    site: &Site<'_>,
    start: impl FnOnce(&Site<'_>, bool) -> Result<B, BrokerError>,
) -> Result<(BrokerAddress, Option<Box<dyn Broker>>), BrokerError> {
    if let Some(address) = &args.broker {
        return Ok((address.clone(), None));
    }
    let broker = start(site, args.broker_nodelay())?;
    Ok((broker.address(), Some(Box::new(broker))))
}

fn mqtt(args: &ConnectionArgs, broker: BrokerAddress, version: Version) -> Mqtt {
    Mqtt {
        version,
        broker,
        nodelay: args.client_nodelay(),
        qos: match args.qos {
            0 => QualityOfService::AtMostOnce,
            _ => QualityOfService::AtLeastOnce,
        },
        one_connection: args.connections == 1,
        keep_alive: args.keep_alive,
        reconnect: args.reconnect(),
        topic: name(),
    }
}

fn amqp_0_9_1(args: &ConnectionArgs, broker: BrokerAddress) -> Amqp091 {
    Amqp091 {
        broker,
        nodelay: args.client_nodelay(),
        prefetch: args.prefetch,
        persistent: args.persistent,
        one_connection: args.connections == 1,
        heartbeat: args.keep_alive,
        reconnect: args.reconnect(),
        queue: name(),
    }
}

fn amqp_1_0(args: &ConnectionArgs, broker: BrokerAddress) -> Amqp10 {
    let credit = u32::from(args.prefetch);
    Amqp10 {
        broker,
        nodelay: args.client_nodelay(),
        credit: if credit == 0 { CREDIT } else { credit },
        settled: !args.unsettled,
        one_connection: args.connections == 1,
        idle_timeout: args.keep_alive,
        reconnect: args.reconnect(),
        // A node of the exchange amq.topic, with a queue of the receiver's own that ends with it.
        node: args.node.clone().unwrap_or_else(|| format!("/topic/{}", name())),
    }
}

fn xmpp(args: &ConnectionArgs, broker: BrokerAddress) -> Xmpp {
    Xmpp {
        broker,
        nodelay: args.client_nodelay(),
        one_connection: args.connections == 1,
        keep_alive: args.keep_alive,
        reconnect: args.reconnect(),
        resource: name(),
    }
}

/// Sampled Values with the identity that the arguments request.
pub(super) fn sampled_values(args: &FrameArgs) -> SampledValueStream {
    SampledValueStream { identity: identity(args, 0x4000), id: "gridhaul".into() }
}

fn goose(args: &FrameArgs) -> GooseControlBlock {
    let retransmission = RetransmissionSchedule {
        shortest: args.retransmit_after,
        factor: 2.0,
        longest: args.retransmit_every,
    };
    GooseControlBlock {
        identity: identity(args, 0x1000),
        reference: "gridhaul/LLN0$GO$gcb".into(),
        retransmission: (!args.no_retransmission).then_some(retransmission),
    }
}

/// VLAN and APPID of the frames; the APPID is in the range of the protocol (IEC 61850-8-1 and 9-2, annex C).
fn identity(args: &FrameArgs, application: u16) -> FrameIdentity {
    let tag = |id| VlanTag { id, priority: args.vlan_priority, ..VlanTag::default() };
    FrameIdentity { vlan: args.vlan.map(tag), application }
}

/// A name for topics and queues that no other run uses.
pub(super) fn name() -> String {
    format!("gridhaul-{}", std::process::id())
}

/// Every setting that influences the result, those of the broker included.
pub(super) fn settings(
    args: &ProtocolArgs,
    protocol: &dyn Protocol,
    broker: Option<&dyn Broker>,
) -> Vec<(String, String)> {
    let mut settings = protocol.settings();
    let has_broker = broker.is_some() || args.connection.broker.is_some();
    if has_broker && settings.iter().any(|(key, _)| *key == "broker") {
        settings.extend([
            ("broker_program", broker.map_or("given", Broker::name).to_owned()),
            // The setting of a broker that another program has started is unknown.
            (
                "broker_nodelay",
                broker.map_or("unknown".into(), |_| args.connection.broker_nodelay().to_string()),
            ),
        ]);
    }
    settings.extend(args.pin.map(|number| ("generator_processor", number.to_string())));
    settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
