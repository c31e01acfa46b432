//! Protocols with connections.

use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use super::{BrokerProgram, ReconnectPolicy};
use crate::iec104;
use crate::mqtt::{QualityOfService, Version};

/// MQTT with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mqtt {
    /// Version of the protocol.
    pub version: Version,
    /// Quality of service of publisher and subscription.
    pub qos: QualityOfService,
}

/// MQTT 3.1.1, at most once.
impl Default for Mqtt {
    fn default() -> Self {
        Self { version: Version::V3, qos: QualityOfService::AtMostOnce }
    }
}

/// AMQP 0-9-1 with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amqp091 {
    /// Messages that the broker sends ahead of their acknowledgements; 0 for delivery without
    /// acknowledgements.
    pub prefetch: u16,
    /// Whether the broker stores queue and messages on disk.
    pub persistent: bool,
    /// Whether each subscriber has a queue of its own at the exchange `amq.topic`, so that several
    /// receive every message; otherwise the default exchange passes messages to one queue.
    pub fan_out: bool,
    /// Whether exchange and routing key have the names of VILLASnode's documentation, as
    /// [`VILLAS_EXCHANGE`] and [`VILLAS_ROUTING_KEY`].
    #[serde(default)]
    pub villas_names: bool,
}

/// The exchange of VILLASnode's documentation, with the NUL that VILLASnode sends.
pub const VILLAS_EXCHANGE: &str = "mytestexchange\0";

/// The routing key of VILLASnode's documentation, with the NUL that VILLASnode sends.
pub const VILLAS_ROUTING_KEY: &str = "abc\0";

impl Amqp091 {
    /// Name of the exchange in tables of settings.
    #[must_use]
    pub const fn exchange(&self) -> &'static str {
        match (self.villas_names, self.fan_out) {
            (true, _) => "mytestexchange",
            (false, true) => "amq.topic",
            (false, false) => "default",
        }
    }
}

/// AMQP 1.0 with its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amqp10 {
    /// Link credit of the subscriber: messages that the broker may send before the subscriber
    /// grants more.
    pub credit: u32,
    /// Whether messages are sent settled, without an outcome from the broker; otherwise each is
    /// acknowledged.
    pub settled: bool,
    /// Address of the node at the broker; `None` for `/topic/` and the name of the clients, an
    /// address of RabbitMQ.
    pub node: Option<String>,
}

/// Credit for 1,000 messages per second over a round-trip time of one second, and settled messages.
impl Default for Amqp10 {
    fn default() -> Self {
        Self { credit: 1_000, settled: true, node: None }
    }
}

/// A protocol through a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BrokerProtocol {
    /// MQTT.
    Mqtt(Mqtt),
    /// AMQP 0-9-1.
    Amqp091(Amqp091),
    /// AMQP 1.0.
    Amqp10(Amqp10),
    /// XMPP.
    Xmpp,
}

impl BrokerProtocol {
    /// The broker that is started for the protocol.
    #[must_use]
    pub const fn program(&self) -> BrokerProgram {
        match self {
            Self::Mqtt(_) => BrokerProgram::Mosquitto,
            Self::Amqp091(_) | Self::Amqp10(_) => BrokerProgram::RabbitMq,
            Self::Xmpp => BrokerProgram::Prosody,
        }
    }

    /// Whether every subscriber receives every message. A message of XMPP has one address, and a
    /// queue passes each message to one of its consumers.
    #[must_use]
    pub const fn reaches_all_subscribers(&self) -> bool {
        match self {
            Self::Mqtt(_) | Self::Amqp10(_) => true,
            Self::Amqp091(amqp) => amqp.fan_out,
            Self::Xmpp => false,
        }
    }
}

/// Clients of a broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientSettings {
    /// The protocol.
    pub protocol: BrokerProtocol,
    /// Topic, queue, node or start of the resources, which no other client of the broker uses.
    pub name: String,
    /// Whether the clients set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Whether publisher and subscriber share one connection.
    pub one_connection: bool,
    /// Interval of keep-alive packets, heartbeats or white space, or time without a frame after
    /// which the connection is lost.
    pub keep_alive: Duration,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
}

impl ClientSettings {
    /// Two clients without Nagle's algorithm, with a keep-alive interval of one minute.
    #[must_use]
    pub fn new(protocol: BrokerProtocol, name: impl Into<String>) -> Self {
        Self {
            protocol,
            name: name.into(),
            nodelay: true,
            one_connection: false,
            keep_alive: Duration::from_secs(60),
            reconnect: ReconnectPolicy::default(),
        }
    }
}

/// Pattern of ZeroMQ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// PUSH and PULL.
    Pipeline,
    /// PUB and SUB, with a subscription of all messages.
    PublishSubscribe,
}

/// A protocol between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum DirectKind {
    /// IEC 60870-5-104: the controlled station listens at the `from` end.
    Iec104(iec104::Window),
    /// ZeroMQ: the receiver listens at the `to` end.
    ZeroMq(Pattern),
    /// Scalability Protocols of nanomsg, PUSH and PULL: the receiver listens at the `to` end.
    Nanomsg,
    /// Synchrophasors, in data frames for messages of this length: the measurement unit listens at
    /// the `from` end.
    Synchrophasor(usize),
    /// DNP3: the outstation listens at the `from` end.
    Dnp3 {
        /// Interval in which the master polls for events; `None` for unsolicited responses.
        poll: Option<Duration>,
    },
}

/// A protocol between two ends with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Direct {
    /// The protocol.
    pub kind: DirectKind,
    /// Port of the end that listens; 0 for a free one.
    pub port: u16,
    /// Whether both ends set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Behaviour of the end that connects without a connection; messages are refused.
    pub reconnect: ReconnectPolicy,
}

impl Direct {
    /// Whether the end that publishes listens.
    #[must_use]
    pub const fn publisher_listens(&self) -> bool {
        matches!(
            self.kind,
            DirectKind::Iec104(_) | DirectKind::Synchrophasor(_) | DirectKind::Dnp3 { .. }
        )
    }
}

/// Modbus/TCP with its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Modbus {
    /// Port of the server; 0 for a free one.
    pub port: u16,
    /// Whether both ends set `TCP_NODELAY`, which turns Nagle's algorithm (RFC 896) off.
    pub nodelay: bool,
    /// Behaviour without a connection.
    pub reconnect: ReconnectPolicy,
}
