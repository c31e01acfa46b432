//! Progress of the close of a connection that is only forwarded.

use gridhaul_core::pep::Side;
use gridhaul_core::tcp::{Flags, Segment};

/// FIN and RST of both hosts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Close {
    /// Sequence number after FIN, by the side that sends it, and whether it was acknowledged.
    pub(super) ends: [Option<u32>; 2],
    pub(super) acknowledged: [bool; 2],
    is_reset: bool,
}

impl Close {
    /// Observes a segment. `ack` is its acknowledgement as a sequence number of the other host.
    pub(super) fn observe(&mut self, from: Side, segment: &Segment, ack: u32) {
        let (own, other) = (from.index(), from.other().index());
        if segment.flags.has(Flags::SYN) {
            *self = Self::default();
        }
        self.is_reset |= segment.flags.has(Flags::RST);
        if segment.flags.has(Flags::FIN) {
            self.ends[own] = Some(segment.seq.wrapping_add(segment.sequence_len()));
        }
        let acknowledges = segment.flags.has(Flags::ACK) && self.ends[other] == Some(ack);
        self.acknowledged[other] |= acknowledges;
    }

    pub(super) const fn is_reset(&self) -> bool {
        self.is_reset
    }

    pub(super) const fn is_closed(&self) -> bool {
        self.is_reset || self.acknowledged[0] && self.acknowledged[1]
    }
}
