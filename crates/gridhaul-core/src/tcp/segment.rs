//! A parsed TCP segment, and sequence numbers on the wire.

use gridhaul_scenario::units::Instant;

use crate::link::EcnCodePoint;

/// Control bits of a segment (RFC 9293, 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push: the receiver delivers the data to the application at once.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement number is valid.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer is valid.
    pub const URG: Self = Self(0x20);
    /// ECN echo (RFC 3168, section 6.1).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168, section 6.1).
    pub const CWR: Self = Self(0x80);
    /// No flag.
    pub const NONE: Self = Self(0);

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// The union of both sets.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// The flags of `self` that are not set in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// The flags of a TCP header's octet 13.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }
    /// The bits as encoded in the header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// Up to four selectively acknowledged ranges (RFC 2018), as 32-bit sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &Self) -> bool {
        // Ranges from `count` on are remains of an earlier option: `clear` does not overwrite them.
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl SackBlocks {
    /// Removes all ranges.
    #[inline]
    pub(crate) const fn clear(&mut self) {
        self.count = 0;
    }

    /// Maximum number of blocks in an option: three with a timestamps option, four without (RFC
    /// 2018, section 3).
    pub const MAX: usize = 4;

    /// Adds a range, from its first byte to the byte after its last.
    ///
    /// # Panics
    /// When the option already has four ranges.
    pub fn push(&mut self, left: u32, right: u32) {
        self.blocks[usize::from(self.count)] = (left, right);
        self.count += 1;
    }
    /// The ranges, most recent first.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }
    /// Whether there are no ranges.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// Meaning of the two numbers of [`Segment::timestamps`]. Both options take 12 bytes of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClockOption {
    /// RFC 7323, section 3: kind 8, the sender's timestamp in milliseconds and the timestamp that
    /// it echoes.
    #[default]
    Timestamps,
    /// The option of paper `medx`: the send time of the segment, and the one-way delay of the
    /// newest data segment received ([`OneWayDelay`]), both in microseconds.
    OneWayDelay,
}

/// The option of TCP-MEDX (paper `medx`, section 2: "the propagation delay is attached to the
/// corresponding acknowledgement"). The paper gives no layout; gridhaul defines an experimental
/// option (RFC 6994, section 3; its identifier is not registered):
///
/// ```text
///   0                   1                   2                   3
///   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///  +---------------+---------------+-------------------------------+
///  |  kind = 253   |  length = 12  |    identifier = 0x4d58 "MX"   |
///  +---------------+---------------+-------------------------------+
///  |        when this segment was sent: microseconds mod 2^32      |
///  +---------------------------------------------------------------+
///  |   delay of the newest segment with data: signed microseconds  |
///  +---------------------------------------------------------------+
/// ```
///
/// **Clocks.** A delay is the receiver's time minus the sender's, so it includes the offset between
/// their clocks. Criterion II compares delays with each other, and the offset cancels. Criterion I
/// is a ratio, and the offset does not cancel: if the receiver's clock is ahead, queueing delays
/// are small compared with the offset. Both endpoints must therefore count from one epoch (PTP or
/// GPS; a simulation has one clock). A negative delay proves that they do not: the sender discards
/// it and bases no decision on it.
///
/// **Round trips.** The receiver acknowledges a data segment at once. The timestamp of the
/// acknowledgement minus the reported delay is therefore the sender's own send time, whatever the
/// clock offset. With it the sender measures the round trip of retransmitted segments, as it does
/// with RFC 7323.
#[derive(Debug, Clone, Copy)]
pub struct OneWayDelay;

impl OneWayDelay {
    /// Kind of the option: an experiment (RFC 4727, section 7.3).
    pub const KIND: u8 = 253;
    /// Length of the option in bytes.
    pub const LEN: u8 = 12;
    /// Identifier of the experiment: "MX".
    pub const IDENTIFIER: u16 = 0x4d58;
    /// Value before the first data segment has arrived; negative as a signed number.
    pub const UNKNOWN: u32 = u32::MAX;

    /// Timestamp of a segment sent at `now`: microseconds, which wrap after 71 minutes.
    #[inline]
    #[must_use]
    pub const fn stamp(now: Instant) -> u32 {
        (now.as_nanos() / 1_000) as u32
    }

    /// Send time of the segment that triggered an acknowledgement with this stamp and this delay;
    /// `None` where it is unknown.
    #[must_use]
    pub fn answered(now: Instant, stamp: u32, delay: u32) -> Option<Instant> {
        // Both clocks wrap. Only their difference is compared, and a send time later than now,
        // which is negative as a signed number, belongs to no segment of this connection.
        let ago = Self::stamp(now).wrapping_sub(stamp.wrapping_sub(delay));
        if delay == Self::UNKNOWN || ago.cast_signed() < 0 {
            return None;
        }
        now.as_nanos().checked_sub(u64::from(ago) * 1_000).map(Instant::from_nanos)
    }

    /// A delay from an acknowledgement, in microseconds; `None` where it is unknown or negative.
    #[inline]
    #[must_use]
    pub const fn known(delay: u32) -> Option<u32> {
        if delay.cast_signed() < 0 { None } else { Some(delay) }
    }
}

/// Header fields of a TCP segment and the length of its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte (or of SYN).
    pub seq: u32,
    /// Next byte expected from the peer; counts with [`Flags::ACK`].
    pub ack: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Free receive buffer in bytes, already scaled (RFC 7323, section 2).
    pub window: u32,
    /// The sender's timestamp in milliseconds, and the timestamp that it echoes (RFC 7323, section
    /// 3); with another [`Self::clock`], the fields of that option.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// SACK-permitted option of a SYN segment (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// The option that `timestamps` belong to.
    pub clock: ClockOption,
    /// The ECN field of the IP header.
    pub ecn: EcnCodePoint,
    /// Control bits.
    pub flags: Flags,
    /// Bytes of IP and TCP headers with options.
    pub header: u8,
}

impl Segment {
    /// Size of the packet in bytes: headers and payload.
    #[inline]
    #[must_use]
    pub const fn wire_bytes(&self) -> u32 {
        self.len + self.header as u32
    }
    /// Sequence space of the segment: payload, SYN and FIN.
    #[inline]
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        self.len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }
}

/// Bytes of an option of TCP Fast Open with a cookie, with padding: kind, length, and 8 B as Linux
/// generates them (RFC 7413, section 4.1.1).
pub(crate) const FAST_OPEN_COOKIE: usize = 12;

/// Converts a 32-bit sequence number to the 64-bit stream position that is nearest to `reference`.
/// `isn` is the initial sequence number, which corresponds to position 0.
///
/// Positions never wrap, so they are compared as plain integers. The conversion is correct while
/// the position is less than 2 GiB from `reference` (RFC 9293, 3.4: windows are smaller).
#[inline]
#[must_use]
pub const fn expand(number: u32, isn: u32, reference: u64) -> Option<u64> {
    let offset = number.wrapping_sub(isn);
    // Modulo 2^32 and as a signed number, the difference is the shorter way around the circle of
    // sequence numbers (RFC 9293, 3.4: arithmetic modulo 2^32).
    let distance = offset.wrapping_sub(reference as u32) as i32;
    reference.checked_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every packet in a queue of a simulation holds one segment.
    #[test]
    fn a_segment_stays_small() {
        assert!(size_of::<Segment>() <= 72, "{}", size_of::<Segment>());
    }

    #[test]
    fn delays_are_differences_of_clocks_that_wrap() {
        let at = |us: u64| OneWayDelay::stamp(Instant::from_nanos(us * 1_000));
        // Sent 5 us before the clock wraps, received 20 us after it.
        let (sent, received) = (at((1 << 32) - 5), at((1 << 32) + 20));
        assert_eq!(OneWayDelay::known(received.wrapping_sub(sent)), Some(25));
        // The receiver's clock is late by more than the path delay.
        assert_eq!(OneWayDelay::known(at(10).wrapping_sub(at(30))), None);
        assert_eq!(OneWayDelay::known(OneWayDelay::UNKNOWN), None);
    }

    #[test]
    fn a_round_trip_does_not_depend_on_the_receivers_clock() {
        let at = |us: u64| Instant::from_nanos(us * 1_000);
        // Sent at 100, received and answered at 140, the acknowledgement received at 170; the
        // receiver's clock is late, correct, and early.
        for offset in [-120_i32, 0, 5_000] {
            let received = 140_u32.wrapping_add_signed(offset);
            let delay = received.wrapping_sub(100);
            assert_eq!(OneWayDelay::answered(at(170), received, delay), Some(at(100)), "{offset}");
        }
        assert_eq!(OneWayDelay::answered(at(170), 140, OneWayDelay::UNKNOWN), None);
        // An acknowledgement of a segment with a later send time.
        assert_eq!(OneWayDelay::answered(at(170), 240, 40), None);
    }

    #[test]
    fn positions_continue_where_sequence_numbers_wrap() {
        let isn = u32::MAX - 5;
        assert_eq!(expand(isn, isn, 0), Some(0));
        assert_eq!(expand(10, isn, 0), Some(16));
        let far = (5 << 32) + 7;
        assert_eq!(expand(isn.wrapping_add(9), isn, far), Some(far + 2));
        assert_eq!(expand(isn.wrapping_add(5), isn, far), Some(far - 2));
        // No position precedes the start of the stream.
        assert_eq!(expand(isn.wrapping_sub(1), isn, 0), None);
    }
}
