//! A parsed TCP segment, and sequence numbers on the wire.

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
    /// The acknowledgement number counts.
    pub const ACK: Self = Self(0x10);
    /// None of them.
    pub const NONE: Self = Self(0);

    /// Whether all bits of `other` are set.
    #[inline]
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// Both sets together.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Those of `self` that are not set in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// The bits as on the wire.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

/// Up to four selectively acknowledged ranges (RFC 2018), as sequence numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [(u32, u32); 4],
    count: u8,
}

impl SackBlocks {
    /// Most blocks that fit beside a timestamps option, and without one (RFC 2018, section 3).
    pub const MAX: usize = 4;

    /// Adds a range, from its first byte to the byte after its last.
    ///
    /// # Panics
    /// When four ranges are already in.
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
    /// Whether there is none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// A TCP segment without its payload bytes: what the machines need to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Segment {
    /// Sequence number of the first byte (or of SYN).
    pub seq: u32,
    /// Next byte expected from the other end; counts with [`Flags::ACK`].
    pub ack: u32,
    /// Bytes of payload.
    pub len: u32,
    /// Free receive buffer in bytes, already scaled (RFC 7323, section 2).
    pub window: u32,
    /// Timestamp of the sender in milliseconds, and the one it echoes (RFC 7323, section 3).
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
    /// With SYN: this end takes part in selective acknowledgements (RFC 2018, section 2).
    pub sack_permitted: bool,
    /// Control bits.
    pub flags: Flags,
    /// Bytes of IP and TCP headers with options.
    pub header: u8,
}

impl Segment {
    /// Bytes on the wire: headers and payload.
    #[inline]
    #[must_use]
    pub const fn wire_bytes(&self) -> u32 {
        self.len + self.header as u32
    }
    /// Sequence space that the segment takes: payload, SYN and FIN.
    #[inline]
    #[must_use]
    pub const fn sequence_len(&self) -> u32 {
        self.len + self.flags.has(Flags::SYN) as u32 + self.flags.has(Flags::FIN) as u32
    }
}

/// Finds the 64-bit stream position that a 32-bit number on the wire stands for: the one nearest
/// to `near`. `isn` is the initial sequence number, which stands for position 0.
///
/// Positions never wrap, so the machines compare them as plain integers. Right as long as less
/// than 2 GiB lie between the two (RFC 9293, 3.4: windows are below that).
#[inline]
#[must_use]
pub const fn expand(wire: u32, isn: u32, near: u64) -> Option<u64> {
    let offset = wire.wrapping_sub(isn);
    let distance = offset.wrapping_sub(near as u32) as i32;
    near.checked_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_on_where_numbers_wrap() {
        let isn = u32::MAX - 5;
        assert_eq!(expand(isn, isn, 0), Some(0));
        assert_eq!(expand(10, isn, 0), Some(16));
        let far = (5 << 32) + 7;
        assert_eq!(expand(isn.wrapping_add(9), isn, far), Some(far + 2));
        assert_eq!(expand(isn.wrapping_add(5), isn, far), Some(far - 2));
        // Before the beginning of the stream there is nothing.
        assert_eq!(expand(isn.wrapping_sub(1), isn, 0), None);
    }
}
