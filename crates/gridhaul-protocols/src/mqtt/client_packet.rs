//! Packets of a client (section 3).

use super::fields::{write_field, write_length};
use super::{AT_LEAST_ONCE, QualityOfService, Version, packet_type};

/// Flags of CONNECT (section 3.1.2.3): a session of its own, and a user name with a password.
const CLEAN_SESSION: u8 = 0x02;
const USER_AND_PASSWORD: u8 = 0xc0;

/// A packet of a client.
///
/// Names, passwords and topics have at most 65,535 bytes (section 1.5.3); longer ones are cut, so
/// that the packet stays one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ClientPacket<'a> {
    /// CONNECT with a clean session, the first packet of a connection.
    Connect {
        /// Name of the client, which no other client of the broker has.
        client: &'a str,
        /// Time in seconds within which the client sends a packet; 0 for no limit.
        keep_alive_s: u16,
        /// User name and password; `None` for an anonymous client.
        login: Option<Login<'a>>,
    },
    /// SUBSCRIBE with one topic.
    Subscribe {
        /// Packet identifier, not 0.
        identifier: u16,
        /// Topic filter.
        topic: &'a str,
        /// Largest quality of service of the messages.
        quality: QualityOfService,
    },
    /// PUBLISH.
    Publish {
        /// Name of the topic.
        topic: &'a str,
        /// Packet identifier, not 0, of a message that is sent at least once; `None` for one that
        /// is sent at most once.
        identifier: Option<u16>,
        /// The message.
        payload: &'a [u8],
    },
    /// PUBACK: the message with this packet identifier has arrived.
    Acknowledge(u16),
    /// PINGREQ, which the broker answers.
    Ping,
    /// DISCONNECT, the last packet of a connection.
    Disconnect,
}

/// User name and password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Login<'a> {
    /// User name.
    pub user: &'a str,
    /// Password.
    pub password: &'a [u8],
}

impl ClientPacket<'_> {
    /// Appends the packet.
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) {
        let mut body = Vec::new();
        // A message may be long: it is copied once.
        let mut message: &[u8] = &[];
        let packet = match *self {
            Self::Connect { client, keep_alive_s, login } => {
                let login_flags = if login.is_some() { USER_AND_PASSWORD } else { 0 };
                write_field(&mut body, b"MQTT");
                // Protocol level (section 3.1.2.2).
                let level = match version {
                    Version::V3 => 4,
                    Version::V5 => 5,
                };
                body.extend([level, CLEAN_SESSION | login_flags]);
                body.extend(keep_alive_s.to_be_bytes());
                write_no_properties(version, &mut body);
                write_field(&mut body, client.as_bytes());
                if let Some(Login { user, password }) = login {
                    write_field(&mut body, user.as_bytes());
                    write_field(&mut body, password);
                }
                packet_type::CONNECT
            }
            Self::Subscribe { identifier, topic, quality } => {
                body.extend(identifier.to_be_bytes());
                write_no_properties(version, &mut body);
                write_field(&mut body, topic.as_bytes());
                // The other options of MQTT 5.0 (section 3.8.3.1) have their default value, 0.
                body.push(u8::from(quality == QualityOfService::AtLeastOnce));
                packet_type::SUBSCRIBE
            }
            Self::Publish { topic, identifier, payload } => {
                write_field(&mut body, topic.as_bytes());
                body.extend(identifier.map(u16::to_be_bytes).into_iter().flatten());
                write_no_properties(version, &mut body);
                message = payload;
                packet_type::PUBLISH | if identifier.is_some() { AT_LEAST_ONCE } else { 0 }
            }
            Self::Acknowledge(identifier) => {
                // Without a reason code: success (MQTT 5.0, section 3.4.2.1).
                body.extend(identifier.to_be_bytes());
                packet_type::PUBACK
            }
            Self::Ping => packet_type::PINGREQ,
            // Without a reason code: normal disconnection (MQTT 5.0, section 3.14.2.1).
            Self::Disconnect => packet_type::DISCONNECT,
        };
        out.push(packet);
        write_length(out, body.len() + message.len());
        out.append(&mut body);
        out.extend_from_slice(message);
    }
}

/// An empty list of properties: its length 0 (MQTT 5.0, section 2.2.2.1).
fn write_no_properties(version: Version, body: &mut Vec<u8>) {
    if version == Version::V5 {
        body.push(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(packet: ClientPacket<'_>, version: Version) -> Vec<u8> {
        let mut bytes = Vec::new();
        packet.encode(version, &mut bytes);
        bytes
    }

    #[test]
    fn packets_have_the_bytes_of_the_standard() {
        let login = Some(Login { user: "u", password: b"p" });
        let connect = ClientPacket::Connect { client: "g", keep_alive_s: 60, login };
        let bytes = b"\x10\x13\0\x04MQTT\x04\xc2\0\x3c\0\x01g\0\x01u\0\x01p";
        assert_eq!(encoded(connect, Version::V3), bytes);
        let bytes = b"\x10\x14\0\x04MQTT\x05\xc2\0\x3c\0\0\x01g\0\x01u\0\x01p";
        assert_eq!(encoded(connect, Version::V5), bytes);
        let payload = &[b'x'; 200];
        let publish = ClientPacket::Publish { topic: "a/b", identifier: Some(10), payload };
        let bytes = encoded(publish, Version::V3);
        assert_eq!(bytes[..10], *b"\x32\xcf\x01\0\x03a/b\0\x0a");
        assert_eq!(bytes.len(), 10 + 200);
        let publish = ClientPacket::Publish { topic: "a/b", identifier: None, payload: b"hi" };
        assert_eq!(encoded(publish, Version::V3), b"\x30\x07\0\x03a/bhi");
        assert_eq!(encoded(publish, Version::V5), b"\x30\x08\0\x03a/b\0hi");
        let quality = QualityOfService::AtLeastOnce;
        let subscribe = ClientPacket::Subscribe { identifier: 7, topic: "a/b", quality };
        assert_eq!(encoded(subscribe, Version::V3), b"\x82\x08\0\x07\0\x03a/b\x01");
        assert_eq!(encoded(subscribe, Version::V5), b"\x82\x09\0\x07\0\0\x03a/b\x01");
        for version in [Version::V3, Version::V5] {
            assert_eq!(encoded(ClientPacket::Acknowledge(258), version), [0x40, 2, 1, 2]);
            assert_eq!(encoded(ClientPacket::Ping, version), [0xc0, 0]);
            assert_eq!(encoded(ClientPacket::Disconnect, version), [0xe0, 0]);
        }
    }

    #[test]
    fn a_field_that_is_too_long_is_cut() {
        let topic = "t".repeat(70_000);
        let publish = ClientPacket::Publish { topic: &topic, identifier: None, payload: b"" };
        let bytes = encoded(publish, Version::V3);
        assert_eq!((bytes.len(), &bytes[4..6]), (1 + 3 + 2 + 65_535, &[0xff, 0xff][..]));
    }
}
