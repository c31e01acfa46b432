//! The packets of MQTT 3.1.1 and 5.0, which have types of their own in rumqttc, behind one interface.

use bytes::{Bytes, BytesMut};
use rumqttc::mqttbytes::{self, QoS, v4};
use rumqttc::v5::mqttbytes::{self as mqttbytes_5, v5};

use crate::broker::Credentials;
use crate::settings::{QualityOfService, Version};

/// Largest packet.
pub(super) const PACKET_MAX: u32 = 1 << 20;

/// Unacknowledged packets of a broker that states no limit (MQTT 5.0, section 3.2.2.3.3).
const RECEIVE_MAXIMUM: u16 = u16::MAX;

/// Packets of a client.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outgoing<'a> {
    Connect,
    /// A subscription with this packet identifier.
    Subscribe(u16),
    /// A message, with a packet identifier that is 0 if no acknowledgement is expected.
    Publish(u16, &'a [u8]),
    /// The acknowledgement of a message with this packet identifier.
    Acknowledge(u16),
    Ping,
    Disconnect,
}

/// Packets of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Incoming {
    /// The connection is accepted, with at most this many unacknowledged messages.
    Accepted(u16),
    Subscribed,
    /// A message, with a packet identifier if an acknowledgement is expected.
    Message(Option<u16>, Bytes),
    /// The acknowledgement of a message with this packet identifier.
    Acknowledged(u16),
    Pong,
    /// The broker refuses the connection or the subscription, or ends the connection.
    Refused(String),
}

/// Fields of all packets of a client.
#[derive(Debug, Clone)]
pub(super) struct Packets {
    pub(super) version: Version,
    pub(super) qos: QualityOfService,
    /// Name of the client, which no other client of the broker has.
    pub(super) client: String,
    pub(super) topic: String,
    pub(super) keep_alive_s: u16,
    pub(super) credentials: Option<Credentials>,
}

impl Packets {
    /// Appends a packet.
    pub(super) fn write(&self, packet: Outgoing<'_>, buffer: &mut BytesMut) -> Result<(), String> {
        let written = match self.version {
            Version::V3 => self.version_3(packet).write(buffer, PACKET_MAX as usize).map_err(text),
            Version::V5 => self.version_5(packet).write(buffer, Some(PACKET_MAX)).map_err(text),
        };
        written.map(drop)
    }

    /// Takes a packet off the buffer; `None` if it is not complete.
    pub(super) fn read(&self, buffer: &mut BytesMut) -> Result<Option<Incoming>, String> {
        match self.version {
            Version::V3 => match v4::Packet::read(buffer, PACKET_MAX as usize) {
                Ok(packet) => incoming_3(packet).map(Some),
                Err(mqttbytes::Error::InsufficientBytes(_)) => Ok(None),
                Err(error) => Err(text(error)),
            },
            Version::V5 => match v5::Packet::read(buffer, Some(PACKET_MAX)) {
                Ok(packet) => incoming_5(packet).map(Some),
                Err(mqttbytes_5::Error::InsufficientBytes(_)) => Ok(None),
                Err(error) => Err(text(error)),
            },
        }
    }

    fn version_3(&self, packet: Outgoing<'_>) -> v4::Packet {
        let qos = match self.qos {
            QualityOfService::AtMostOnce => QoS::AtMostOnce,
            QualityOfService::AtLeastOnce => QoS::AtLeastOnce,
        };
        match packet {
            Outgoing::Connect => {
                let mut connect = v4::Connect::new(&self.client);
                connect.keep_alive = self.keep_alive_s;
                if let Some(it) = &self.credentials {
                    connect.set_login(&it.user, &it.password);
                }
                v4::Packet::Connect(connect)
            }
            Outgoing::Subscribe(pkid) => v4::Packet::Subscribe(v4::Subscribe {
                pkid,
                ..v4::Subscribe::new(&self.topic, qos)
            }),
            Outgoing::Publish(pkid, message) => {
                let publish = v4::Publish::new(&self.topic, qos, message);
                v4::Packet::Publish(v4::Publish { pkid, ..publish })
            }
            Outgoing::Acknowledge(pkid) => v4::Packet::PubAck(v4::PubAck::new(pkid)),
            Outgoing::Ping => v4::Packet::PingReq,
            Outgoing::Disconnect => v4::Packet::Disconnect,
        }
    }

    fn version_5(&self, packet: Outgoing<'_>) -> v5::Packet {
        let qos = match self.qos {
            QualityOfService::AtMostOnce => mqttbytes_5::QoS::AtMostOnce,
            QualityOfService::AtLeastOnce => mqttbytes_5::QoS::AtLeastOnce,
        };
        match packet {
            Outgoing::Connect => {
                let connect = v5::Connect {
                    keep_alive: self.keep_alive_s,
                    client_id: self.client.clone(),
                    clean_start: true,
                    properties: None,
                };
                let login = self.credentials.as_ref();
                let login = login.map(|it| v5::Login::new(&it.user, &it.password));
                v5::Packet::Connect(connect, None, login)
            }
            Outgoing::Subscribe(pkid) => {
                let filter = v5::Filter::new(&self.topic, qos);
                let subscribe = v5::Subscribe::new(filter, None);
                v5::Packet::Subscribe(v5::Subscribe { pkid, ..subscribe })
            }
            Outgoing::Publish(pkid, message) => {
                let message = Bytes::copy_from_slice(message);
                let publish = v5::Publish::new(&self.topic, qos, message, None);
                v5::Packet::Publish(v5::Publish { pkid, ..publish })
            }
            Outgoing::Acknowledge(pkid) => v5::Packet::PubAck(v5::PubAck::new(pkid, None)),
            Outgoing::Ping => v5::Packet::PingReq(v5::PingReq),
            Outgoing::Disconnect => {
                let reason = v5::DisconnectReasonCode::NormalDisconnection;
                v5::Packet::Disconnect(v5::Disconnect::new(reason))
            }
        }
    }
}

fn incoming_3(packet: v4::Packet) -> Result<Incoming, String> {
    Ok(match packet {
        v4::Packet::ConnAck(it) if it.code == v4::ConnectReturnCode::Success => {
            Incoming::Accepted(RECEIVE_MAXIMUM)
        }
        v4::Packet::ConnAck(it) => Incoming::Refused(format!("connection: {:?}", it.code)),
        v4::Packet::SubAck(it) => {
            let refused = it.return_codes.contains(&v4::SubscribeReasonCode::Failure);
            if refused { Incoming::Refused("subscription".into()) } else { Incoming::Subscribed }
        }
        v4::Packet::Publish(it) => {
            Incoming::Message((it.qos != QoS::AtMostOnce).then_some(it.pkid), it.payload)
        }
        v4::Packet::PubAck(it) => Incoming::Acknowledged(it.pkid),
        v4::Packet::PingResp => Incoming::Pong,
        other => return Err(format!("a packet that a broker does not send: {other:?}")),
    })
}

fn incoming_5(packet: v5::Packet) -> Result<Incoming, String> {
    Ok(match packet {
        v5::Packet::ConnAck(it) if it.code == v5::ConnectReturnCode::Success => {
            let maximum = it.properties.and_then(|it| it.receive_max);
            Incoming::Accepted(maximum.unwrap_or(RECEIVE_MAXIMUM))
        }
        v5::Packet::ConnAck(it) => Incoming::Refused(format!("connection: {:?}", it.code)),
        v5::Packet::SubAck(it) => {
            let is_refused = |code: &&_| !matches!(code, v5::SubscribeReasonCode::Success(_));
            match it.return_codes.iter().find(is_refused) {
                Some(code) => Incoming::Refused(format!("subscription: {code:?}")),
                None => Incoming::Subscribed,
            }
        }
        v5::Packet::Publish(it) => {
            let pkid = (it.qos != mqttbytes_5::QoS::AtMostOnce).then_some(it.pkid);
            Incoming::Message(pkid, it.payload)
        }
        v5::Packet::PubAck(it) => Incoming::Acknowledged(it.pkid),
        v5::Packet::PingResp(_) => Incoming::Pong,
        v5::Packet::Disconnect(it) => {
            Incoming::Refused(format!("connection: {:?}", it.reason_code))
        }
        other => return Err(format!("a packet that a broker does not send: {other:?}")),
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
