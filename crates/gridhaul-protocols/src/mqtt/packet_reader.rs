//! Packets of a broker from the bytes of a connection.

use thiserror::Error;

use super::fields::{Malformed, read_length};
use super::{BrokerPacket, Version};

/// Bytes that are not a packet of a broker. No later packet can be found: the connection cannot be
/// used any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PacketError {
    /// A broker sends no packet that begins so.
    #[error("unexpected bytes 0x{first:02x} 0x{second:02x} instead of a packet of MQTT {version}")]
    Unexpected {
        /// First byte: type and flags.
        first: u8,
        /// Second byte: the length, or its first part.
        second: u8,
        /// Version of the connection.
        version: Version,
    },
    /// A packet is longer than the limit.
    #[error("a packet of {length} B after its length; at most {maximum} B")]
    TooLong {
        /// Bytes after the length.
        length: usize,
        /// Limit.
        maximum: usize,
    },
    /// The contents of a packet are not those of its type.
    #[error("a malformed packet of type 0x{0:02x}")]
    Malformed(u8),
}

/// Reads the packets of a broker. Memory is limited by the longest packet and the longest piece.
#[derive(Debug)]
pub struct PacketReader {
    version: Version,
    maximum: usize,
    bytes: Vec<u8>,
}

impl PacketReader {
    /// Longest packet that a client receives which only publishes, in bytes after the length:
    /// CONNACK and PUBACK of MQTT 3.1.1.
    pub const PUBLISHER_MAX: usize = 2;

    /// A reader of a new connection, for packets of at most `maximum` bytes after their length.
    #[must_use]
    pub const fn new(version: Version, maximum: usize) -> Self {
        Self { version, maximum, bytes: Vec::new() }
    }

    /// Handles bytes of the broker.
    pub fn handle_input(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next packet; `None` if it is incomplete. To be called after each input until it returns
    /// `None`.
    ///
    /// # Errors
    /// The bytes are not a packet of a broker.
    pub fn poll_packet(&mut self) -> Result<Option<BrokerPacket>, PacketError> {
        let [first, ref after_type @ ..] = *self.bytes else { return Ok(None) };
        let Some(&second) = after_type.first() else { return Ok(None) };
        let unexpected = PacketError::Unexpected { first, second, version: self.version };
        let Some((length, rest)) = read_length(after_type).map_err(|Malformed| unexpected)? else {
            return Ok(None);
        };
        if !BrokerPacket::is_possible(self.version, first, length) {
            return Err(unexpected);
        }
        if length > self.maximum {
            return Err(PacketError::TooLong { length, maximum: self.maximum });
        }
        let Some(body) = rest.get(..length) else { return Ok(None) };
        let packet = BrokerPacket::decode(self.version, first, body)
            .map_err(|Malformed| PacketError::Malformed(first))?;
        let read = self.bytes.len() - rest.len() + length;
        self.bytes.drain(..read);
        Ok(Some(packet))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets(
        version: Version,
        bytes: &[u8],
        piece: usize,
    ) -> Result<Vec<BrokerPacket>, PacketError> {
        let mut reader = PacketReader::new(version, 100);
        let mut found = Vec::new();
        for bytes in bytes.chunks(piece) {
            reader.handle_input(bytes);
            while let Some(packet) = reader.poll_packet()? {
                found.push(packet);
            }
        }
        Ok(found)
    }

    #[test]
    fn packets_arrive_in_pieces() {
        let accepted = |receive_maximum| BrokerPacket::Accepted { receive_maximum };
        let message = |identifier| BrokerPacket::Message { identifier, payload: b"hi".to_vec() };
        let end = [BrokerPacket::Acknowledged(258), BrokerPacket::Pong];
        let bytes = b"\x20\x02\0\0\x90\x03\0\x01\x01\x30\x05\0\x01thi\
            \x32\x07\0\x01t\0\x07hi\x40\x02\x01\x02\xd0\0";
        let begin = [accepted(65_535), BrokerPacket::Subscribed, message(None), message(Some(7))];
        let expected = [&begin[..], &end].concat();
        for piece in 1..=bytes.len() {
            assert_eq!(packets(Version::V3, bytes, piece), Ok(expected.clone()), "{piece}");
        }
        let bytes = b"\x20\x06\0\0\x03\x21\0\x05\x90\x04\0\x01\0\x01\x30\x06\0\x01t\0hi\
            \x32\x08\0\x01t\0\x07\0hi\x40\x02\x01\x02\xd0\0";
        let begin = [accepted(5), BrokerPacket::Subscribed, message(None), message(Some(7))];
        let expected = [&begin[..], &end].concat();
        for piece in 1..=bytes.len() {
            assert_eq!(packets(Version::V5, bytes, piece), Ok(expected.clone()), "{piece}");
        }
    }

    #[test]
    fn refusals_have_a_reason() {
        let not_authorised = BrokerPacket::Refused("the client is not authorised");
        let unknown = BrokerPacket::Refused("the reason is unknown");
        for (version, bytes, expected) in [
            (Version::V3, &b"\x20\x02\0\x05"[..], &not_authorised),
            (Version::V3, b"\x20\x02\0\xff", &unknown),
            (Version::V5, b"\x20\x03\0\x87\0", &not_authorised),
            // A broker of MQTT 3.1.1.
            (
                Version::V5,
                b"\x20\x02\0\x01",
                &BrokerPacket::Refused("it does not support MQTT 3.1.1"),
            ),
            (
                Version::V3,
                b"\x90\x03\0\x01\x80",
                &BrokerPacket::SubscriptionRefused("the reason is unknown"),
            ),
            (
                Version::V5,
                b"\x90\x04\0\x01\0\x97",
                &BrokerPacket::SubscriptionRefused("a quota is exceeded"),
            ),
            (Version::V5, b"\xe0\x01\x8b", &BrokerPacket::Disconnected("it shuts down")),
            (Version::V5, b"\xe0\0", &BrokerPacket::Disconnected("normal disconnection")),
        ] {
            assert_eq!(packets(version, bytes, 9), Ok(vec![expected.clone()]), "{bytes:02x?}");
        }
    }

    #[test]
    fn other_packets_are_errors_as_soon_as_their_header_has_arrived() {
        for bytes in [&b"\x40\x03"[..], b"HTTP", b"\xd0\x01", b"\x36\x09", b"\xe0\0", b"\x10\x7f"] {
            let error = packets(Version::V3, bytes, 1).unwrap_err();
            assert!(matches!(error, PacketError::Unexpected { .. }), "{error}");
        }
        let error = packets(Version::V3, b"HTTP", 4).unwrap_err().to_string();
        assert_eq!(error, "unexpected bytes 0x48 0x54 instead of a packet of MQTT 3.1.1");
        let error = packets(Version::V3, b"\x30\x65", 2);
        assert_eq!(error, Err(PacketError::TooLong { length: 101, maximum: 100 }));
        for bytes in [&b"\x30\x02\0\x01"[..], b"\x32\x04\0\0\0\0", b"\x40\x02\0\0"] {
            assert_eq!(packets(Version::V3, bytes, 9), Err(PacketError::Malformed(bytes[0])));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_packets_or_an_error(bytes: Vec<u8>, is_5: bool, piece in 1_usize..9) {
            let version = if is_5 { Version::V5 } else { Version::V3 };
            let whole = packets(version, &bytes, bytes.len().max(1));
            prop_assert_eq!(packets(version, &bytes, piece), whole);
        }
    }
}
