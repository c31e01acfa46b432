//! Settings of each protocol.

use gridhaul_protocols::iec104;
use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use super::{
    BrokerConnection, BrokerSource, DataSetName, DirectConnection, GooseRetransmission,
    MqttBrokerSource, VlanTag,
};

/// The null protocol, which has no settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NullSettings {}

/// UDP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UdpSettings {
    /// Whether the receiver polls its socket instead of sleeping, so that it takes a whole
    /// processor and need not be woken up.
    #[serde(default)]
    pub busy_poll: bool,
}

/// MQTT 3.1.1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MqttSettings {
    /// Quality of service: 0 (at most once) or 1 (at least once).
    #[serde(default)]
    pub qos: u8,
    /// Broker.
    #[serde(default)]
    pub broker: MqttBrokerSource,
    /// Connections to the broker.
    #[serde(default)]
    pub connection: BrokerConnection,
}

/// MQTT 5.0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mqtt5Settings {
    /// Quality of service: 0 (at most once) or 1 (at least once).
    #[serde(default)]
    pub qos: u8,
    /// Broker.
    #[serde(default)]
    pub broker: BrokerSource,
    /// Connections to the broker.
    #[serde(default)]
    pub connection: BrokerConnection,
}

/// AMQP 0-9-1.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Amqp091Settings {
    /// Messages that the broker sends ahead of their acknowledgements; 0 for delivery without
    /// acknowledgements.
    #[serde(default)]
    pub prefetch: u16,
    /// Whether the broker stores queue and messages on its disk.
    #[serde(default)]
    pub persistent: bool,
    /// Broker.
    #[serde(default)]
    pub broker: BrokerSource,
    /// Connections to the broker.
    #[serde(default)]
    pub connection: BrokerConnection,
}

/// AMQP 1.0.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Amqp10Settings {
    /// Messages that the broker sends ahead of link credit; 0 for 1,000.
    #[serde(default)]
    pub prefetch: u16,
    /// Whether each message waits for an outcome at the broker. Otherwise messages are sent
    /// settled.
    #[serde(default)]
    pub unsettled: bool,
    /// Address of the node at the broker. Absent: an address of RabbitMQ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Broker.
    #[serde(default)]
    pub broker: BrokerSource,
    /// Connections to the broker.
    #[serde(default)]
    pub connection: BrokerConnection,
}

/// XMPP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct XmppSettings {
    /// Server.
    #[serde(default)]
    pub broker: BrokerSource,
    /// Connections to the server.
    #[serde(default)]
    pub connection: BrokerConnection,
}

/// A protocol over TCP without settings of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StreamSettings {
    /// Connection.
    #[serde(default)]
    pub connection: DirectConnection,
}

/// IEC 60870-5-104.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Iec104Settings {
    /// Largest number of frames without an acknowledgement, after which the controlled station
    /// waits.
    #[serde(default = "standard_k")]
    pub k: u16,
    /// Number of received frames after which the controlling station acknowledges, at most `k`.
    #[serde(default = "standard_w")]
    pub w: u16,
    /// Connection.
    #[serde(default)]
    pub connection: DirectConnection,
}

impl Default for Iec104Settings {
    fn default() -> Self {
        Self { k: standard_k(), w: standard_w(), connection: DirectConnection::default() }
    }
}

impl Iec104Settings {
    /// Limits of frames without an acknowledgement.
    #[must_use]
    pub const fn window(&self) -> iec104::Window {
        iec104::Window { k: self.k, w: self.w }
    }
}

/// DNP3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Dnp3Settings {
    /// Interval in which the master polls for events, at least 20 ms. Absent: events are reported
    /// unsolicited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub poll: Option<Duration>,
    /// Connection.
    #[serde(default)]
    pub connection: DirectConnection,
}

/// Sampled Values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SampledValuesSettings {
    /// Data set.
    #[serde(default)]
    pub data_set: DataSetName,
    /// VLAN tag of the frames. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTag>,
}

/// GOOSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct GooseSettings {
    /// Retransmissions of an event.
    #[serde(default)]
    pub retransmission: GooseRetransmission,
    /// VLAN tag of the frames. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vlan: Option<VlanTag>,
}

const fn standard_k() -> u16 {
    iec104::Window::STANDARD.k
}
const fn standard_w() -> u16 {
    iec104::Window::STANDARD.w
}
