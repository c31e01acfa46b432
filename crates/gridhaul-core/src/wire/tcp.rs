//! TCP headers (RFC 9293), and their translation to [`Segment`].

use super::options::Area;
use super::{Layer, TcpOptions, WireError};
use crate::link::EcnCodePoint;
use crate::tcp::{ClockOption, Flags, Segment};

/// A TCP header, without data offset and checksum, which are computed on writing. The reserved bits
/// are written as zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpHeader<'a> {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions<'a>,
}

impl TcpHeader<'_> {
    /// Bytes of the header without options.
    pub const MIN_LEN: usize = 20;

    /// The header of a segment. The segment's window is written unscaled, so the caller scales it;
    /// a larger window than the field can hold becomes 65,535.
    #[must_use]
    pub fn from_segment(segment: &Segment, source_port: u16, destination_port: u16) -> Self {
        let of_clock = |clock| segment.timestamps.filter(|_| segment.clock == clock);
        let options = TcpOptions {
            sack_permitted: segment.sack_permitted,
            timestamps: of_clock(ClockOption::Timestamps),
            one_way_delay: of_clock(ClockOption::OneWayDelay),
            sack: segment.sack,
            ..TcpOptions::default()
        };
        Self {
            source_port,
            destination_port,
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window.min(u32::from(u16::MAX)) as u16,
            urgent: 0,
            options,
        }
    }

    /// Appends the header; its checksum is still zero.
    pub(super) fn write(&self, options: &Area, buffer: &mut Vec<u8>) {
        let options = options.as_slice();
        let words = (Self::MIN_LEN + options.len()) / 4;
        let mut fixed = [0; Self::MIN_LEN];
        fixed[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        fixed[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        fixed[4..8].copy_from_slice(&self.seq.to_be_bytes());
        fixed[8..12].copy_from_slice(&self.ack.to_be_bytes());
        // Data offset in 32-bit words in the upper four bits (RFC 9293, section 3.1).
        fixed[12] = (words as u8) << 4;
        fixed[13] = self.flags.bits();
        fixed[14..16].copy_from_slice(&self.window.to_be_bytes());
        fixed[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        buffer.extend_from_slice(&fixed);
        buffer.extend_from_slice(options);
    }
}

/// A TCP segment with verified header length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpPacket<'a> {
    /// At least [`TcpHeader::MIN_LEN`] bytes.
    header: &'a [u8],
    payload: &'a [u8],
}

impl<'a> TcpPacket<'a> {
    /// Parses the payload of an IP packet. Options are parsed by [`Self::header`]; the checksum is
    /// not verified.
    ///
    /// # Errors
    /// A truncated header, or a data offset below 5.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let truncated =
            |expected| WireError::Truncated { layer: Layer::Tcp, expected, found: bytes.len() };
        if bytes.len() < TcpHeader::MIN_LEN {
            return Err(truncated(TcpHeader::MIN_LEN));
        }
        // RFC 9293, section 3.1: the data offset counts 32-bit words, at least the five of the
        // fixed part.
        let stated = usize::from(bytes[12] >> 4) * 4;
        if stated < TcpHeader::MIN_LEN {
            return Err(WireError::Length { layer: Layer::Tcp, stated });
        }
        let (header, payload) = bytes.split_at_checked(stated).ok_or(truncated(stated))?;
        Ok(Self { header, payload })
    }

    /// The header with its options.
    ///
    /// # Errors
    /// [`WireError::OptionLength`].
    pub fn header(&self) -> Result<TcpHeader<'a>, WireError> {
        Ok(self.header_with(TcpOptions::parse(self.options())?))
    }
    /// The header without malformed options ([`TcpOptions::parse_well_formed`]).
    #[must_use]
    pub fn well_formed_header(&self) -> TcpHeader<'a> {
        self.header_with(TcpOptions::parse_well_formed(self.options()))
    }
    fn options(&self) -> &'a [u8] {
        &self.header[TcpHeader::MIN_LEN..]
    }
    fn header_with(&self, options: TcpOptions<'a>) -> TcpHeader<'a> {
        let half = |at: usize| u16::from_be_bytes([self.header[at], self.header[at + 1]]);
        TcpHeader {
            source_port: half(0),
            destination_port: half(2),
            seq: self.seq(),
            ack: self.word(8),
            flags: self.flags(),
            window: half(14),
            urgent: half(18),
            options,
        }
    }
    /// Sequence number.
    #[inline]
    #[must_use]
    pub fn seq(&self) -> u32 {
        self.word(4)
    }
    /// Control bits.
    #[inline]
    #[must_use]
    pub fn flags(&self) -> Flags {
        Flags::from_bits(self.header[13])
    }
    /// Length of the header including options, in bytes.
    #[inline]
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.header.len()
    }
    /// The data.
    #[inline]
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The segment, with the unscaled window field. `ip_header` is the length of the IP header in
    /// bytes. If a header has both clock options, that of TCP-MEDX is used.
    ///
    /// # Errors
    /// [`WireError::OptionLength`].
    pub fn segment(&self, ip_header: usize) -> Result<Segment, WireError> {
        Ok(self.segment_of(&self.header()?, ip_header))
    }

    /// The segment with a header that was parsed before ([`Self::header`]).
    #[must_use]
    pub fn segment_of(&self, header: &TcpHeader<'_>, ip_header: usize) -> Segment {
        let TcpHeader { seq, ack, flags, window, options, .. } = *header;
        let clock = match options.one_way_delay {
            Some(_) => ClockOption::OneWayDelay,
            None => ClockOption::Timestamps,
        };
        Segment {
            seq,
            ack,
            len: self.payload.len() as u32,
            window: u32::from(window),
            timestamps: options.one_way_delay.or(options.timestamps),
            sack: options.sack,
            sack_permitted: options.sack_permitted,
            clock,
            // In the IP header; see `IpPacket::ecn`.
            ecn: EcnCodePoint::NotEct,
            flags,
            header: (ip_header + self.header_len()).min(usize::from(u8::MAX)) as u8,
        }
    }

    #[inline]
    fn word(&self, at: usize) -> u32 {
        let header = self.header;
        u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    }
}
