//! UDP datagrams (RFC 768).

use super::{Layer, WireError};

/// A UDP header, without length and checksum, which are computed on writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UdpHeader {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
}

/// A UDP datagram with verified lengths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpPacket<'a> {
    /// Header and payload.
    bytes: &'a [u8],
}

impl<'a> UdpPacket<'a> {
    /// Bytes of the header.
    pub const HEADER: usize = 8;

    /// Parses the payload of an IP packet. The checksum is not verified.
    ///
    /// # Errors
    /// A truncated datagram, or a length field below 8.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let truncated =
            |expected| WireError::Truncated { layer: Layer::Udp, expected, found: bytes.len() };
        if bytes.len() < Self::HEADER {
            return Err(truncated(Self::HEADER));
        }
        let stated = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
        if stated < Self::HEADER {
            return Err(WireError::Length { layer: Layer::Udp, stated });
        }
        let bytes = bytes.get(..stated).ok_or(truncated(stated))?;
        Ok(Self { bytes })
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> UdpHeader {
        let half = |at: usize| u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]]);
        UdpHeader { source_port: half(0), destination_port: half(2) }
    }
    /// The data.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[Self::HEADER..]
    }
    /// Header and payload.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
    /// Whether the sender has computed a checksum (RFC 768: none is sent as zero).
    pub(super) fn has_checksum(&self) -> bool {
        self.bytes[6..8] != [0, 0]
    }
}
