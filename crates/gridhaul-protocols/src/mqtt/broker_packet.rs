//! Packets of a broker (section 3).

use super::fields::{Fields, Malformed};
use super::refusal::{connection_refusal, disconnection, subscription_refusal};
use super::{AT_LEAST_ONCE, QUALITY_FLAGS, Version, packet_type};

/// Unacknowledged messages of a broker that states no limit (MQTT 5.0, section 3.2.2.3.3).
const RECEIVE_MAXIMUM: u16 = u16::MAX;

/// A packet of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrokerPacket {
    /// CONNACK: the connection is accepted.
    Accepted {
        /// Messages without an acknowledgement that the broker permits.
        receive_maximum: u16,
    },
    /// CONNACK: the connection is refused, for this reason.
    Refused(&'static str),
    /// SUBACK: the subscription is accepted.
    Subscribed,
    /// SUBACK: the subscription is refused, for this reason.
    SubscriptionRefused(&'static str),
    /// PUBLISH.
    Message {
        /// Packet identifier of a message that is to be acknowledged.
        identifier: Option<u16>,
        /// The message.
        payload: Vec<u8>,
    },
    /// PUBACK: the message with this packet identifier has arrived.
    Acknowledged(u16),
    /// PINGRESP.
    Pong,
    /// DISCONNECT of MQTT 5.0: the broker ends the connection, for this reason.
    Disconnected(&'static str),
}

impl BrokerPacket {
    /// Whether a broker sends packets with this type and these lengths; the rest of the packet may
    /// be missing.
    pub(super) const fn is_possible(version: Version, kind: u8, length: usize) -> bool {
        match (version, kind) {
            (_, packet_type::PINGRESP) => length == 0,
            (Version::V3, packet_type::CONNACK | packet_type::PUBACK) => length == 2,
            (Version::V5, packet_type::CONNACK | packet_type::PUBACK) => length >= 2,
            (_, packet_type::SUBACK) => length >= 3,
            (Version::V5, packet_type::DISCONNECT) => true,
            // At least the length of a topic. A subscription with at most QoS 1 receives no
            // messages with QoS 2.
            (_, kind) => {
                kind & 0xf0 == packet_type::PUBLISH
                    && kind & QUALITY_FLAGS <= AT_LEAST_ONCE
                    && length >= 2
            }
        }
    }

    /// Reads the part of a packet after its length.
    pub(super) fn decode(version: Version, kind: u8, body: &[u8]) -> Result<Self, Malformed> {
        let mut fields = Fields { rest: body };
        let is_5 = version == Version::V5;
        Ok(match kind {
            packet_type::PINGRESP => Self::Pong,
            packet_type::CONNACK => {
                let _session_present = fields.u8()?;
                let code = fields.u8()?;
                // A broker that does not know MQTT 5.0 refuses it without properties (MQTT 5.0,
                // section 3.2.2.2).
                let has_properties = is_5 && !fields.rest.is_empty();
                let stated = if has_properties { fields.properties()? } else { None };
                match code {
                    0 => Self::Accepted { receive_maximum: stated.unwrap_or(RECEIVE_MAXIMUM) },
                    code => Self::Refused(connection_refusal(code)),
                }
            }
            packet_type::SUBACK => {
                fields.identifier()?;
                if is_5 {
                    fields.properties()?;
                }
                let refusal = |code: &&u8| **code & 0x80 != 0;
                match fields.rest {
                    [] => return Err(Malformed),
                    codes => match codes.iter().find(refusal) {
                        Some(&code) => Self::SubscriptionRefused(subscription_refusal(code)),
                        None => Self::Subscribed,
                    },
                }
            }
            packet_type::PUBACK => Self::Acknowledged(fields.identifier()?),
            packet_type::DISCONNECT => Self::Disconnected(disconnection(fields.u8().unwrap_or(0))),
            _ => {
                let _topic = fields.field()?;
                let is_acknowledged = kind & QUALITY_FLAGS != 0;
                let identifier = is_acknowledged.then(|| fields.identifier()).transpose()?;
                if is_5 {
                    fields.properties()?;
                }
                Self::Message { identifier, payload: fields.rest.to_vec() }
            }
        })
    }
}
