//! Brokers and connections.

use std::path::PathBuf;

use gridhaul_protocols::settings::{BrokerProgram, BrokerSettings, ReconnectPolicy};
use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use super::SubscriberEnd;
use crate::measurement::BrokerUrl;

/// Broker of MQTT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MqttBrokerSource {
    /// mosquitto, which is started.
    Mosquitto(StartedBroker),
    /// RabbitMQ with its plugin `rabbitmq_mqtt`, which is started.
    Rabbitmq(StartedBroker),
    /// A running broker.
    Given(GivenBroker),
}

/// Broker of AMQP, or server of XMPP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum BrokerSource {
    /// The broker of the protocol, which is started: RabbitMQ, mosquitto or prosody.
    Started(StartedBroker),
    /// A running broker.
    Given(GivenBroker),
}

/// A broker that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartedBroker {
    /// Whether the connections are encrypted, with a certificate that is made for the run.
    #[serde(default)]
    pub tls: bool,
}

/// A running broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GivenBroker {
    /// Address, such as `"127.0.0.1:1883"` or `"amqp://user:password@127.0.0.1:5672"`. `mqtts://`,
    /// `amqps://` and `xmpps://` (TLS from the first byte) need `ca`.
    pub url: BrokerUrl,
    /// PEM file with the certificate of the authority that has signed that of the broker, or with
    /// that of the broker itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// Connections to a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BrokerConnection {
    /// Where `TCP_NODELAY` is set, which turns Nagle's algorithm off.
    #[serde(default)]
    pub nodelay: Nodelay,
    /// Number of connections to the broker: 2, or 1 for publisher and subscriber together.
    #[serde(default = "two")]
    pub connections: u8,
    /// End of the network at which the subscriber is.
    #[serde(default)]
    pub subscriber: SubscriberEnd,
    /// Interval of keep-alive packets (MQTT), heartbeats (AMQP 0-9-1) or white space (XMPP), or the
    /// idle timeout (AMQP 1.0), in whole seconds.
    #[serde(default = "one_minute")]
    pub keep_alive: Duration,
    /// Behaviour after a lost connection.
    #[serde(default)]
    pub reconnect: Reconnect,
    /// Whether messages without a connection are queued. Otherwise they are refused.
    #[serde(default)]
    pub queue: bool,
}

/// A connection of a protocol without a broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DirectConnection {
    /// Port of the end that listens; 0 for a free one.
    #[serde(default)]
    pub port: u16,
    /// Whether both ends set `TCP_NODELAY`, which turns Nagle's algorithm off.
    #[serde(default = "yes")]
    pub nodelay: bool,
    /// Behaviour after a lost connection.
    #[serde(default)]
    pub reconnect: Reconnect,
    /// Whether messages without a connection are queued. Otherwise they are refused.
    #[serde(default)]
    pub queue: bool,
}

/// Where `TCP_NODELAY` is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Nodelay {
    /// At clients and broker.
    #[default]
    Both,
    /// At the clients.
    Clients,
    /// At the broker.
    Broker,
    /// Nowhere.
    None,
}

/// Behaviour after a lost connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Reconnect {
    /// The client does not connect again, as clients without automatic reconnection.
    Never,
    /// The client connects again after this time.
    After(Duration),
}

impl Default for MqttBrokerSource {
    fn default() -> Self {
        Self::Mosquitto(StartedBroker::default())
    }
}

impl Default for BrokerSource {
    fn default() -> Self {
        Self::Started(StartedBroker::default())
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self::After(Duration::from_millis(100))
    }
}

impl Default for BrokerConnection {
    fn default() -> Self {
        Self {
            nodelay: Nodelay::Both,
            connections: two(),
            subscriber: SubscriberEnd::From,
            keep_alive: one_minute(),
            reconnect: Reconnect::default(),
            queue: false,
        }
    }
}

impl Default for DirectConnection {
    fn default() -> Self {
        Self { port: 0, nodelay: true, reconnect: Reconnect::default(), queue: false }
    }
}

impl Nodelay {
    /// Whether the clients turn Nagle's algorithm off.
    #[must_use]
    pub const fn at_clients(self) -> bool {
        matches!(self, Self::Both | Self::Clients)
    }

    /// Whether the broker turns Nagle's algorithm off.
    #[must_use]
    pub const fn at_broker(self) -> bool {
        matches!(self, Self::Both | Self::Broker)
    }
}

impl Reconnect {
    /// The policy of clients.
    #[must_use]
    pub const fn policy(self, queue: bool) -> ReconnectPolicy {
        let after = match self {
            Self::Never => None,
            Self::After(time) => Some(time),
        };
        ReconnectPolicy { after, queue }
    }
}

/// A broker of any protocol, as a measurement requests it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum RequestedBroker<'a> {
    /// One that is started.
    Started(BrokerProgram, BrokerSettings),
    /// A running one.
    Given(&'a GivenBroker),
}

const fn two() -> u8 {
    2
}
const fn yes() -> bool {
    true
}
const fn one_minute() -> Duration {
    Duration::from_secs(60)
}
