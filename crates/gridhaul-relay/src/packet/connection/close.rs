//! Progress of the close of a connection that is only forwarded.

use gridhaul_core::pep::Side;
use gridhaul_core::tcp::{Flags, Segment};

/// FIN and RST of both hosts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Close {
    /// Sequence number after FIN, by the side that sends it, and whether it was acknowledged.
    ends: [Option<u32>; 2],
    acknowledged: [bool; 2],
    is_reset: bool,
}

impl Close {
    pub(super) fn observe(&mut self, from: Side, segment: &Segment) {
        let (own, other) = (from.index(), from.other().index());
        if segment.flags.has(Flags::SYN) {
            *self = Self::default();
        }
        self.is_reset |= segment.flags.has(Flags::RST);
        if segment.flags.has(Flags::FIN) {
            self.ends[own] = Some(segment.seq.wrapping_add(segment.sequence_len()));
        }
        let acknowledges = segment.flags.has(Flags::ACK) && self.ends[other] == Some(segment.ack);
        self.acknowledged[other] |= acknowledges;
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_reset || self.acknowledged[0] && self.acknowledged[1]
    }
}
