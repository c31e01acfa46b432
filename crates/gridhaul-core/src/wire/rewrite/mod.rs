//! In-place changes of a packet, with incremental checksum updates (RFC 1624).

mod congestion_mark;
mod mss_clamp;

use super::options::{NO_OPERATION, OPTIONS_MAX, RawOptions};
use super::{IpPacket, TCP, TcpHeader, Transport, UDP, UdpPacket, WireError, checksum};

pub use congestion_mark::mark_congestion;
pub use mss_clamp::clamp_mss;

/// A TCP segment or UDP datagram whose fields are changed in place, as by a proxy or an address
/// translator. The checksum is updated with each change: a correct one stays correct, a wrong one
/// stays wrong.
#[derive(Debug)]
pub struct PacketRewriter<'a> {
    /// Transport header and payload.
    bytes: &'a mut [u8],
    protocol: u8,
    /// Bytes of the transport header.
    header_len: usize,
}

impl<'a> PacketRewriter<'a> {
    /// Parses a packet that is to be changed.
    ///
    /// # Errors
    /// Those of [`IpPacket::parse`] and [`IpPacket::transport`], and [`WireError::Protocol`] for a
    /// packet that is neither TCP nor UDP.
    pub fn parse(packet: &'a mut [u8]) -> Result<Self, WireError> {
        let ip = IpPacket::parse(packet)?;
        let (header_len, payload) = match ip.transport()? {
            Transport::Tcp(segment) => (segment.header_len(), segment.payload().len()),
            Transport::Udp(datagram) => (UdpPacket::HEADER, datagram.payload().len()),
            Transport::Other(protocol) => return Err(WireError::Protocol(protocol)),
        };
        let (start, protocol) = (ip.header_len(), ip.protocol());
        Ok(Self { bytes: &mut packet[start..start + header_len + payload], protocol, header_len })
    }

    /// The data.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.header_len..]
    }
    /// Sets the port of the sender.
    pub fn set_source_port(&mut self, port: u16) {
        self.replace(0, &port.to_be_bytes());
    }
    /// Sets the port of the receiver.
    pub fn set_destination_port(&mut self, port: u16) {
        self.replace(2, &port.to_be_bytes());
    }
    /// Replaces bytes of the payload.
    ///
    /// # Panics
    /// If the bytes reach beyond the payload.
    pub fn set_payload(&mut self, at: usize, bytes: &[u8]) {
        self.replace(self.header_len + at, bytes);
    }

    /// Sets the sequence number.
    ///
    /// # Errors
    /// [`WireError::Protocol`] for a datagram.
    pub fn set_seq(&mut self, seq: u32) -> Result<(), WireError> {
        self.replace_tcp(4, &seq.to_be_bytes())
    }
    /// Sets the acknowledgement number.
    ///
    /// # Errors
    /// [`WireError::Protocol`] for a datagram.
    pub fn set_ack(&mut self, ack: u32) -> Result<(), WireError> {
        self.replace_tcp(8, &ack.to_be_bytes())
    }
    /// Sets the window field.
    ///
    /// # Errors
    /// [`WireError::Protocol`] for a datagram.
    pub fn set_window(&mut self, window: u16) -> Result<(), WireError> {
        self.replace_tcp(14, &window.to_be_bytes())
    }

    /// Sets the value of an option without changing its length: the bytes after kind and length.
    ///
    /// # Errors
    /// [`WireError::OptionMissing`], [`WireError::OptionLength`], or [`WireError::Protocol`] for a
    /// datagram.
    pub fn set_option(&mut self, kind: u8, value: &[u8]) -> Result<(), WireError> {
        let (at, length) = self.find_option(kind)?;
        if length != value.len() + 2 {
            return Err(WireError::OptionLength { kind, length: length as u8 });
        }
        self.replace(at + 2, value);
        Ok(())
    }
    /// Replaces an option by padding (kind 1), so that the header keeps its length.
    ///
    /// # Errors
    /// [`WireError::OptionMissing`], [`WireError::OptionLength`], or [`WireError::Protocol`] for a
    /// datagram.
    pub fn remove_option(&mut self, kind: u8) -> Result<(), WireError> {
        let (at, length) = self.find_option(kind)?;
        self.replace(at, &[NO_OPERATION; OPTIONS_MAX][..length]);
        Ok(())
    }

    /// Position of an option in the transport header, and its length.
    fn find_option(&self, kind: u8) -> Result<(usize, usize), WireError> {
        self.require_tcp()?;
        let area = &self.bytes[TcpHeader::MIN_LEN..self.header_len];
        let mut options = RawOptions(area);
        while let Some((found, option)) = options.next().transpose()? {
            if found == kind {
                let end = self.header_len - options.0.len();
                return Ok((end - option.len(), option.len()));
            }
        }
        Err(WireError::OptionMissing(kind))
    }

    fn replace_tcp(&mut self, at: usize, new: &[u8]) -> Result<(), WireError> {
        self.require_tcp()?;
        self.replace(at, new);
        Ok(())
    }

    fn require_tcp(&self) -> Result<(), WireError> {
        if self.protocol == TCP { Ok(()) } else { Err(WireError::Protocol(self.protocol)) }
    }

    /// Replaces bytes of header or payload, at a position from the start of the header, and updates
    /// the checksum.
    fn replace(&mut self, at: usize, new: &[u8]) {
        let checksum_at = if self.protocol == UDP { 6 } else { 16 };
        let stored = self.word(checksum_at);
        let mut sum = stored;
        // The checksum covers words at even positions.
        let (first, end) = (at & !1, at + new.len());
        for word in (first..end).step_by(2) {
            let before = self.word(word);
            let (from, to) = (word.max(at), (word + 2).min(end));
            self.bytes[from..to].copy_from_slice(&new[from - at..to - at]);
            sum = checksum::adjusted(sum, before, self.word(word));
        }
        let sum = match (self.protocol, stored, sum) {
            // A UDP checksum of zero means that there is none (RFC 768).
            (UDP, 0, _) => 0,
            (UDP, _, 0) => 0xffff,
            (_, _, sum) => sum,
        };
        self.bytes[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// A 16-bit word; the last byte of an odd length is padded with zero.
    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes.get(at + 1).copied().unwrap_or(0)])
    }
}

#[cfg(test)]
mod tests;
