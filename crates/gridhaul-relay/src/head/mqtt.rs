//! Packets of MQTT 3.1.1 that a publisher sends and receives (OASIS standard, sections 2 and 3). Numbers are in network byte
//! order.

use thiserror::Error;

/// Types of packets with their flags (sections 2.2.1 and 2.2.2).
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH_QOS_1: u8 = 0x32;
const PUBACK: u8 = 0x40;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const DISCONNECT: u8 = 0xe0;

/// Reasons of a broker that refuses a connection (section 3.2.2.3).
const REFUSALS: [&str; 5] = [
    "it does not support MQTT 3.1.1",
    "it does not accept the name of the client",
    "it is not available",
    "user name or password are wrong",
    "the client is not authorised",
];

/// First packet of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Connect<'a> {
    /// Name of the client.
    pub client: &'a str,
    /// Time in seconds within which the client sends a packet.
    pub keep_alive: u16,
    /// User name and password.
    pub user: Option<(&'a str, &'a [u8])>,
}

impl Connect<'_> {
    /// Appends the packet.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        const CLEAN_SESSION: u8 = 0x02;
        const USER_AND_PASSWORD: u8 = 0xc0;
        let flags = CLEAN_SESSION | if self.user.is_some() { USER_AND_PASSWORD } else { 0 };
        let mut body = Vec::new();
        put_field(&mut body, b"MQTT");
        // Protocol level 4 is version 3.1.1.
        body.extend_from_slice(&[4, flags]);
        body.extend_from_slice(&self.keep_alive.to_be_bytes());
        put_field(&mut body, self.client.as_bytes());
        if let Some((name, password)) = self.user {
            put_field(&mut body, name.as_bytes());
            put_field(&mut body, password);
        }
        put_header(bytes, CONNECT, body.len());
        bytes.append(&mut body);
    }
}

/// Appends a message with QoS 1. The topic has at most 65,535 bytes.
pub fn write_publish(bytes: &mut Vec<u8>, topic: &str, packet: u16, payload: &[u8]) {
    put_header(bytes, PUBLISH_QOS_1, 2 + topic.len() + 2 + payload.len());
    put_field(bytes, topic.as_bytes());
    bytes.extend_from_slice(&packet.to_be_bytes());
    bytes.extend_from_slice(payload);
}

/// Appends a question that the broker answers with [`Answer::Pong`].
pub fn write_ping(bytes: &mut Vec<u8>) {
    put_header(bytes, PINGREQ, 0);
}

/// Appends the last packet of a connection.
pub fn write_disconnect(bytes: &mut Vec<u8>) {
    put_header(bytes, DISCONNECT, 0);
}

/// A packet of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The connection is accepted.
    Connected,
    /// The message with this packet identifier is acknowledged.
    Acknowledged(u16),
    /// Answer to a ping.
    Pong,
}

/// A broker that cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BrokerError {
    /// The broker refuses the connection.
    #[error("the broker refuses the connection: {0}")]
    Refused(&'static str),
    /// A packet that a publisher does not get.
    #[error("unexpected bytes 0x{0:02x} 0x{1:02x} instead of a packet of MQTT 3.1.1")]
    Unexpected(u8, u8),
}

/// Packets of the broker from the bytes of a connection. None of them is longer than four bytes.
#[derive(Debug, Default)]
pub struct AnswerReader {
    bytes: Vec<u8>,
}

impl AnswerReader {
    /// Bytes have arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next packet; `None` if it is incomplete.
    ///
    /// # Errors
    /// The connection cannot be used.
    pub fn next_answer(&mut self) -> Result<Option<Answer>, BrokerError> {
        let [kind, length, rest @ ..] = &*self.bytes else { return Ok(None) };
        let (answer, size) = match (*kind, *length, rest) {
            (PINGRESP, 0, _) => (Answer::Pong, 2),
            (CONNACK | PUBACK, 2, [] | [_]) => return Ok(None),
            (CONNACK, 2, [_, 0, ..]) => (Answer::Connected, 4),
            (CONNACK, 2, [_, code, ..]) => {
                let reason = REFUSALS.get(usize::from(*code) - 1);
                return Err(BrokerError::Refused(reason.unwrap_or(&"the reason is unknown")));
            }
            (PUBACK, 2, [high, low, ..]) => {
                (Answer::Acknowledged(u16::from_be_bytes([*high, *low])), 4)
            }
            _ => return Err(BrokerError::Unexpected(*kind, *length)),
        };
        self.bytes.drain(..size);
        Ok(Some(answer))
    }
}

/// A field with its length of 16 bits.
fn put_field(bytes: &mut Vec<u8>, field: &[u8]) {
    bytes.extend_from_slice(&(field.len() as u16).to_be_bytes());
    bytes.extend_from_slice(field);
}

/// Type of a packet and its remaining length, with 7 bits per byte, least significant first (section 2.2.3).
fn put_header(bytes: &mut Vec<u8>, kind: u8, length: usize) {
    bytes.push(kind);
    crate::protocol::put_varint(bytes, length as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(bytes: &[u8], piece: usize) -> Result<Vec<Answer>, BrokerError> {
        let (mut reader, mut found) = (AnswerReader::default(), Vec::new());
        for bytes in bytes.chunks(piece) {
            reader.push(bytes);
            while let Some(answer) = reader.next_answer()? {
                found.push(answer);
            }
        }
        Ok(found)
    }

    #[test]
    fn packets_have_the_bytes_of_the_standard() {
        let mut bytes = Vec::new();
        Connect { client: "g", keep_alive: 60, user: Some(("u", b"p")) }.write(&mut bytes);
        assert_eq!(bytes, b"\x10\x13\0\x04MQTT\x04\xc2\0\x3c\0\x01g\0\x01u\0\x01p");
        bytes.clear();
        write_publish(&mut bytes, "a/b", 10, &[b'x'; 200]);
        assert_eq!(bytes[..10], *b"\x32\xcf\x01\0\x03a/b\0\x0a");
        assert_eq!(bytes.len(), 10 + 200);
        bytes.clear();
        write_ping(&mut bytes);
        write_disconnect(&mut bytes);
        assert_eq!(bytes, [0xc0, 0, 0xe0, 0]);
    }

    #[test]
    fn answers_arrive_in_pieces() {
        let bytes = b"\x20\x02\0\0\x40\x02\x01\x02\xd0\0";
        let expected = vec![Answer::Connected, Answer::Acknowledged(258), Answer::Pong];
        for piece in 1..=bytes.len() {
            assert_eq!(answers(bytes, piece), Ok(expected.clone()), "{piece}");
        }
    }

    #[test]
    fn refusals_and_other_packets_end_the_connection() {
        assert_eq!(answers(b"\x20\x02\0\x05", 4), Err(BrokerError::Refused(REFUSALS[4])));
        let unknown = BrokerError::Refused("the reason is unknown");
        assert_eq!(answers(b"\x20\x02\0\xff", 4), Err(unknown));
        for bytes in [&b"\x30\x03"[..], b"\x40\x03\0\0", b"HTTP", b"\xd0\x01"] {
            let found = answers(bytes, 1);
            assert!(matches!(found, Err(BrokerError::Unexpected(..))), "{found:?}");
        }
    }
}
