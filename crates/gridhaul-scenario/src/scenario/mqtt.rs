//! MQTT: publications of a client, and their subscription at the broker.

use serde::{Deserialize, Serialize};

use super::{Flow, Load, Scenario};
use crate::units::{Bytes, Duration};

/// Publications of an MQTT client (OASIS MQTT 3.1.1 and 5.0). The `from` end is the client, and the
/// `to` end the broker. On each connection, the client waits for the broker's CONNACK before it
/// publishes. Subscribers are flows of their own with load `mqtt_subscription`; the row of this
/// flow has the delays to the broker.
///
/// Quality of service: with 0, a message is written once, and lost if its connection ends before it
/// arrives. With 1, the client transmits a message again on the next connection until PUBACK
/// arrives; the broker accepts and forwards every copy. With 2, PUBREC, PUBREL and PUBCOMP let the
/// broker accept a message once. Both sides keep the session when a connection ends (clean session
/// 0), and messages wait while there is no connection. Nothing is transmitted again on the same
/// connection (MQTT 5.0, section 4.4).
///
/// Sizes: CONNECT has 14 B and the client identifier; PUBLISH a fixed header of 2 B to 5 B, 2 B and
/// the topic name, with QoS 1 and 2 a packet identifier of 2 B, and the message. CONNACK, PUBACK,
/// PUBREC, PUBREL and PUBCOMP have 4 B, PINGREQ and PINGRESP 2 B. With 5.0, CONNECT, CONNACK,
/// PUBLISH, SUBSCRIBE and SUBACK have 1 B more, the length of their properties, and CONNECT 5 B for
/// the session expiry interval, without which the session would not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Mqtt {
    /// Size of a message, without headers.
    pub size: Bytes,
    /// Time between two messages of a client.
    pub every: Duration,
    /// Whether all members of a group send at the same times, and open their connections together.
    /// Otherwise each has its own random phase.
    #[serde(default)]
    pub synchronised: bool,
    /// Quality of service: 0, 1 or 2.
    #[serde(default)]
    pub qos: u8,
    /// Version of the protocol.
    #[serde(default)]
    pub version: MqttVersion,
    /// Length of the topic name.
    #[serde(default = "default_topic")]
    pub topic: Bytes,
    /// Length of the client identifier.
    #[serde(default = "default_client_id")]
    pub client_id: Bytes,
    /// Messages with QoS 1 or 2 that may be unacknowledged at the same time; further ones wait at
    /// the sender. The same number applies to the broker and its subscribers.
    #[serde(default = "default_in_flight")]
    pub in_flight: u32,
    /// Time without a packet of either side after which a client sends PINGREQ, in whole seconds.
    /// If no PINGRESP or CONNACK arrives within the same time, the client aborts the connection
    /// (RST) and connects again after a pause (`reconnect`). `"0 s"`: never; only TCP ends
    /// connections.
    #[serde(default = "default_keep_alive")]
    pub keep_alive: Duration,
}

/// A subscription: the `from` end is the subscriber, which opens the connection. The `to` end is
/// the broker, which forwards the messages that the flow `publications` has delivered to it. A
/// message has the smaller quality of service of the two flows (MQTT 3.1.1, section 3.8.4). The
/// version, topic, client identifier, window and keep alive of `publications` apply here as well.
///
/// The row of this flow has the results from end to end: the delay from the publication to the
/// arrival at the subscriber, messages lost on both connections, and duplicates, of which those of
/// the first connection are forwarded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MqttSubscription {
    /// Name of the flow with load `mqtt` whose messages are forwarded. It ends at the same node.
    pub publications: String,
    /// Largest quality of service of the forwarded messages: 0, 1 or 2.
    #[serde(default = "default_largest_qos")]
    pub qos: u8,
}

/// A version of MQTT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub enum MqttVersion {
    /// OASIS MQTT 3.1.1.
    #[default]
    #[serde(rename = "3.1.1")]
    V3_1_1,
    /// OASIS MQTT 5.0.
    #[serde(rename = "5.0")]
    V5,
}

impl Mqtt {
    /// Size of a PINGREQ, PINGRESP or DISCONNECT packet (sections 3.12 to 3.14).
    pub const EMPTY_PACKET: u64 = 2;

    /// Size of a packet with a packet identifier only: PUBACK, PUBREC, PUBREL or PUBCOMP (sections
    /// 3.4 to 3.7; MQTT 5.0 omits the reason code of success, section 3.4.2.1).
    pub const RESPONSE: u64 = 4;

    /// Size of a PUBLISH packet (section 3.3).
    #[must_use]
    pub fn publish(&self, qos: u8) -> u64 {
        let identifier = if qos > 0 { 2 } else { 0 };
        packet(2 + self.topic.get() + identifier + self.properties() + self.size.get())
    }

    /// Sizes of the packets that open a connection, of which the client sends the first: CONNECT
    /// and CONNACK (sections 3.1 and 3.2).
    #[must_use]
    pub fn opening(&self) -> Vec<u64> {
        // Name and level of the protocol, flags, keep alive. Session expiry interval: MQTT 5.0,
        // section 3.1.2.11.2.
        let session = if self.version == MqttVersion::V5 { 5 } else { 0 };
        let connect = 2 + 4 + 1 + 1 + 2 + self.properties() + session + 2 + self.client_id.get();
        vec![packet(connect), packet(2 + self.properties())]
    }

    /// Sizes of SUBSCRIBE with one topic filter, and of SUBACK (sections 3.8 and 3.9).
    #[must_use]
    pub fn subscription(&self) -> Vec<u64> {
        let subscribe = 2 + self.properties() + 2 + self.topic.get() + 1;
        vec![packet(subscribe), packet(2 + self.properties() + 1)]
    }

    /// An empty list of properties: its length (MQTT 5.0, section 2.2.2.1).
    fn properties(&self) -> u64 {
        u64::from(self.version == MqttVersion::V5)
    }
}

/// Size of a packet with the fixed header: a type, and the remaining length in up to four bytes of
/// 7 bits (section 2.2.3).
const fn packet(remaining: u64) -> u64 {
    let length = match remaining {
        0..128 => 1,
        128..16_384 => 2,
        16_384..2_097_152 => 3,
        _ => 4,
    };
    1 + length + remaining
}

impl Scenario {
    /// The flow whose messages this flow forwards to a subscriber, and the parameters of its
    /// publications.
    #[must_use]
    pub fn publications_of(&self, flow: &Flow) -> Option<(usize, Mqtt)> {
        let Load::MqttSubscription(keys) = &flow.load else { return None };
        let (row, _, publisher) = self.flow.get_full(&keys.publications)?;
        match &publisher.load {
            Load::Mqtt(mqtt) => Some((row, *mqtt)),
            _ => None,
        }
    }
}

fn default_topic() -> Bytes {
    Bytes::new(24)
}
fn default_client_id() -> Bytes {
    Bytes::new(12)
}
const fn default_in_flight() -> u32 {
    20
}
const fn default_keep_alive() -> Duration {
    Duration::from_secs(60)
}
const fn default_largest_qos() -> u8 {
    2
}
