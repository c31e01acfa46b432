//! Options of protocols, brokers and connections.

use gridhaul_measure::measurement::{
    Amqp10Settings, Amqp091Settings, BrokerConnection, BrokerSource, DirectConnection,
    Dnp3Settings, DoublingIntervals, GivenBroker, GooseRetransmission, GooseSettings,
    Iec104Settings, Mqtt5Settings, MqttBrokerSource, MqttSettings, Nodelay, NullSettings,
    ProtocolUnderTest, Reconnect, SampledValuesSettings, StartedBroker, StreamSettings,
    UdpSettings, VlanTag, XmppSettings,
};

use super::ReadOptions;
use crate::args::{ConnectionArgs, FrameArgs, MqttBroker, ProtocolArgs, ProtocolName};

/// The protocol under test with its settings.
pub(super) fn protocol(
    args: &ProtocolArgs,
    busy_poll: bool,
    has_agent: bool,
    options: &ReadOptions,
) -> ProtocolUnderTest {
    let (own, frames) = (&args.connection, &args.frames);
    let direct = || direct_connection(own, options);
    let stream = || StreamSettings { connection: direct() };
    let connection = || broker_connection(args, has_agent, options);
    let broker = || broker_source(own, options);
    match args.protocol {
        ProtocolName::Null => ProtocolUnderTest::Null(NullSettings {}),
        ProtocolName::Udp => ProtocolUnderTest::Udp(UdpSettings { busy_poll }),
        ProtocolName::Mqtt => ProtocolUnderTest::Mqtt(MqttSettings {
            qos: read!(options, own.qos),
            broker: mqtt_broker(own, has_agent, options),
            connection: connection(),
        }),
        ProtocolName::Mqtt5 => ProtocolUnderTest::Mqtt5(Mqtt5Settings {
            qos: read!(options, own.qos),
            broker: broker(),
            connection: connection(),
        }),
        ProtocolName::Amqp091 => ProtocolUnderTest::Amqp091(Amqp091Settings {
            prefetch: read!(options, own.prefetch),
            persistent: read!(options, own.persistent),
            broker: broker(),
            connection: connection(),
        }),
        ProtocolName::Amqp10 => ProtocolUnderTest::Amqp10(Amqp10Settings {
            prefetch: read!(options, own.prefetch),
            unsettled: read!(options, own.unsettled),
            node: read!(options, own.node),
            broker: broker(),
            connection: connection(),
        }),
        ProtocolName::Xmpp => {
            ProtocolUnderTest::Xmpp(XmppSettings { broker: broker(), connection: connection() })
        }
        ProtocolName::ModbusTcp => ProtocolUnderTest::ModbusTcp(stream()),
        ProtocolName::Iec104 => ProtocolUnderTest::Iec104(Iec104Settings {
            k: read!(options, own.k),
            w: read!(options, own.w),
            connection: direct(),
        }),
        ProtocolName::Dnp3 => ProtocolUnderTest::Dnp3(Dnp3Settings {
            poll: read!(options, own.poll),
            connection: direct(),
        }),
        ProtocolName::C37118 => ProtocolUnderTest::C37118(stream()),
        ProtocolName::Zeromq => ProtocolUnderTest::Zeromq(stream()),
        ProtocolName::ZeromqPubSub => ProtocolUnderTest::ZeromqPubSub(stream()),
        ProtocolName::Nanomsg => ProtocolUnderTest::Nanomsg(stream()),
        ProtocolName::Sv => ProtocolUnderTest::SampledValues(SampledValuesSettings {
            data_set: read!(options, frames.data_set).into(),
            vlan: vlan(frames, options),
        }),
        ProtocolName::Goose => ProtocolUnderTest::Goose(GooseSettings {
            retransmission: retransmission(frames, options),
            vlan: vlan(frames, options),
        }),
    }
}

fn direct_connection(args: &ConnectionArgs, options: &ReadOptions) -> DirectConnection {
    let nodelay: Nodelay = read!(options, args.nodelay).into();
    DirectConnection {
        port: read!(options, args.port),
        nodelay: nodelay.at_clients(),
        reconnect: reconnect(args, options),
        queue: read!(options, args.queue),
    }
}

fn broker_connection(
    args: &ProtocolArgs,
    has_agent: bool,
    options: &ReadOptions,
) -> BrokerConnection {
    let (own, network) = (&args.connection, &args.place);
    let connection = BrokerConnection {
        nodelay: read!(options, own.nodelay).into(),
        keep_alive: read!(options, own.keep_alive),
        reconnect: reconnect(own, options),
        queue: read!(options, own.queue),
        ..BrokerConnection::default()
    };
    if has_agent {
        return connection;
    }
    BrokerConnection {
        connections: read!(options, own.connections),
        subscriber: if network.is_emulated() {
            read!(options, network.subscriber).into()
        } else {
            connection.subscriber
        },
        ..connection
    }
}

fn broker_source(args: &ConnectionArgs, options: &ReadOptions) -> BrokerSource {
    let (url, ca) = (read!(options, args.broker), read!(options, args.ca));
    let started = StartedBroker { tls: read!(options, args.tls) };
    url.map_or(BrokerSource::Started(started), |url| BrokerSource::Given(GivenBroker { url, ca }))
}

fn mqtt_broker(args: &ConnectionArgs, has_agent: bool, options: &ReadOptions) -> MqttBrokerSource {
    // An agent starts the broker of the protocol.
    let program =
        if has_agent { MqttBroker::Mosquitto } else { read!(options, args.broker_program) };
    match (broker_source(args, options), program) {
        (BrokerSource::Given(broker), _) => MqttBrokerSource::Given(broker),
        (BrokerSource::Started(broker), MqttBroker::Mosquitto) => {
            MqttBrokerSource::Mosquitto(broker)
        }
        (BrokerSource::Started(broker), MqttBroker::Rabbitmq) => MqttBrokerSource::Rabbitmq(broker),
    }
}

fn reconnect(args: &ConnectionArgs, options: &ReadOptions) -> Reconnect {
    let after = read!(options, args.reconnect_after);
    if read!(options, args.no_reconnect) { Reconnect::Never } else { Reconnect::After(after) }
}

fn vlan(args: &FrameArgs, options: &ReadOptions) -> Option<VlanTag> {
    let priority = read!(options, args.vlan_priority);
    read!(options, args.vlan).map(|id| VlanTag { id, priority })
}

fn retransmission(args: &FrameArgs, options: &ReadOptions) -> GooseRetransmission {
    let after = read!(options, args.retransmit_after);
    let every = read!(options, args.retransmit_every);
    if read!(options, args.no_retransmission) {
        GooseRetransmission::Never
    } else {
        GooseRetransmission::Doubling(DoublingIntervals { after, every })
    }
}
