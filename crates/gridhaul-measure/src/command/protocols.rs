//! The protocol under test and its broker, as the arguments request them.

use gridhaul_measure::broker::Broker;
use gridhaul_measure::network::Sites;
use gridhaul_measure::protocol::{
    Amqp10, Amqp091, BrokerProtocol, ClientSettings, Direct, DirectKind, Modbus, Mqtt, Null,
    Pattern, Protocol, ThroughBroker, Udp,
};
use gridhaul_protocols::mqtt::{QualityOfService, Version};

use gridhaul_measure::settings::{FrameContent, FrameStream, Retransmission, Vlan};

use crate::args::{ConnectionArgs, FrameArgs, ProtocolArgs, ProtocolName};

/// Link credit of AMQP 1.0 by default: enough for 1,000 messages/s over a round-trip time of one second.
const CREDIT: u32 = 1_000;

/// A protocol, and its broker if this program starts it.
pub(super) type Started = (Box<dyn Protocol>, Option<Broker>);

/// A protocol as the arguments select it, before a broker is known.
#[derive(Debug)]
pub(super) enum Selection {
    Null,
    Frames(FrameStream),
    Udp,
    Modbus(Modbus),
    Direct(Direct),
    Broker(ClientSettings),
}

impl Selection {
    /// The protocol of these arguments.
    pub(super) fn new(args: &ProtocolArgs) -> Self {
        let connection = &args.connection;
        let direct = |kind| Self::Direct(direct(connection, kind));
        let broker = |protocol| Self::Broker(clients(connection, protocol));
        match args.protocol {
            ProtocolName::Null => Self::Null,
            ProtocolName::Sv => Self::Frames(sampled_values(&args.frames)),
            ProtocolName::Goose => Self::Frames(goose(&args.frames)),
            ProtocolName::Udp => Self::Udp,
            ProtocolName::Mqtt => broker(mqtt(connection, Version::V3)),
            ProtocolName::Mqtt5 => broker(mqtt(connection, Version::V5)),
            ProtocolName::Amqp091 => broker(BrokerProtocol::Amqp091(Amqp091 {
                prefetch: connection.prefetch,
                persistent: connection.persistent,
                ..Amqp091::default()
            })),
            ProtocolName::Amqp10 => broker(amqp_1_0(connection)),
            ProtocolName::Xmpp => broker(BrokerProtocol::Xmpp),
            ProtocolName::ModbusTcp => Self::Modbus(Modbus {
                port: connection.port,
                nodelay: connection.client_nodelay(),
                reconnect: connection.reconnect(),
            }),
            ProtocolName::Iec104 => direct(DirectKind::Iec104(connection.iec_104_window())),
            ProtocolName::Dnp3 => direct(DirectKind::Dnp3 { poll: connection.poll }),
            ProtocolName::C37118 => direct(DirectKind::Synchrophasor(args.bytes)),
            ProtocolName::Zeromq => direct(DirectKind::ZeroMq(Pattern::Pipeline)),
            ProtocolName::ZeromqPubSub => direct(DirectKind::ZeroMq(Pattern::PublishSubscribe)),
            ProtocolName::Nanomsg => direct(DirectKind::Nanomsg),
        }
    }
}

/// Starts the broker of the protocol, unless one is given or it has none.
///
/// # Errors
/// The broker cannot be started, or the certificates of its authorities cannot be read.
pub(super) fn start(args: &ProtocolArgs, sites: &Sites<'_>) -> anyhow::Result<Started> {
    Ok(match Selection::new(args) {
        Selection::Null => (Box::new(Null), None),
        Selection::Frames(stream) => (stream.protocol(), None),
        Selection::Udp => (Box::new(Udp), None),
        Selection::Modbus(modbus) => (Box::new(modbus), None),
        Selection::Direct(direct) => (Box::new(direct), None),
        Selection::Broker(clients) => {
            let (broker, own) = match args.connection.given_broker()? {
                Some(broker) => (broker, None),
                None => {
                    let settings = args.connection.broker_settings();
                    let program = args.connection.program(&clients.protocol);
                    let own = program.start(&sites.to, settings)?;
                    (own.address_for(&clients.protocol), Some(own))
                }
            };
            (Box::new(ThroughBroker { clients, broker }), own)
        }
    })
}

fn direct(args: &ConnectionArgs, kind: DirectKind) -> Direct {
    let (port, nodelay) = (args.port, args.client_nodelay());
    Direct { kind, port, nodelay, reconnect: args.reconnect() }
}

fn clients(args: &ConnectionArgs, protocol: BrokerProtocol) -> ClientSettings {
    ClientSettings {
        protocol,
        name: name(),
        nodelay: args.client_nodelay(),
        one_connection: args.connections == 1,
        keep_alive: args.keep_alive,
        reconnect: args.reconnect(),
    }
}

fn mqtt(args: &ConnectionArgs, version: Version) -> BrokerProtocol {
    let qos = match args.qos {
        0 => QualityOfService::AtMostOnce,
        _ => QualityOfService::AtLeastOnce,
    };
    BrokerProtocol::Mqtt(Mqtt { version, qos })
}

fn amqp_1_0(args: &ConnectionArgs) -> BrokerProtocol {
    let credit = u32::from(args.prefetch);
    BrokerProtocol::Amqp10(Amqp10 {
        credit: if credit == 0 { CREDIT } else { credit },
        settled: !args.unsettled,
        node: args.node.clone(),
    })
}

/// Sampled Values as the arguments request them.
pub(super) fn sampled_values(args: &FrameArgs) -> FrameStream {
    let light_edition = args.data_set.light_edition();
    FrameStream { vlan: vlan(args), content: FrameContent::SampledValues { light_edition } }
}

fn goose(args: &FrameArgs) -> FrameStream {
    let (shortest, longest) = (args.retransmit_after, args.retransmit_every);
    let retransmission = (!args.no_retransmission).then_some(Retransmission { shortest, longest });
    FrameStream { vlan: vlan(args), content: FrameContent::Goose { retransmission } }
}

fn vlan(args: &FrameArgs) -> Option<Vlan> {
    args.vlan.map(|id| Vlan { id, priority: args.vlan_priority })
}

/// A name for topics and queues that no other run uses.
pub(super) fn name() -> String {
    format!("gridhaul-{}", std::process::id())
}

/// Every setting that influences the result, those of the broker and of the kernel included.
///
/// # Errors
/// The namespace of a node cannot be entered.
pub(super) fn settings(
    args: &ProtocolArgs,
    protocol: &dyn Protocol,
    broker: Option<&Broker>,
    sites: &Sites<'_>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut settings = protocol.settings();
    // Nagle's algorithm is a setting of every protocol over TCP, and of no other.
    if settings.iter().any(|(key, _)| *key == "nodelay") {
        settings.extend(sites.tcp_settings()?);
    }
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
    settings.extend(broker.and_then(Broker::nice).map(|nice| ("broker_nice", nice.to_string())));
    settings.extend(args.pin.map(|number| ("generator_processor", number.to_string())));
    Ok(settings.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
