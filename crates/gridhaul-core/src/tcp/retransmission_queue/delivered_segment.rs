//! The delivered segment that was sent last (RFC 8985, section 5.2, `RACK.segment`).

use gridhaul_scenario::units::Instant;

use super::OutstandingSegment;

/// The delivered segment that was sent last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DeliveredSegment {
    pub sent_at: Instant,
    /// Stream position of its end.
    pub end: u64,
    /// Send time of the segment that was examined last.
    pub last_sent_at: Instant,
    /// Whether the segment was sent once and a later segment had arrived before: the network has
    /// reordered.
    pub reordered: bool,
    /// Start of the first of the delivered segments that was sent once; [`u64::MAX`] if none was.
    pub original: u64,
}

impl DeliveredSegment {
    /// A segment that has just been delivered, while everything before `highest` was sacked or
    /// missing.
    pub(crate) const fn of(sent: &OutstandingSegment, highest: u64) -> Self {
        let retransmitted = sent.transmits > 1;
        let reordered = !retransmitted && sent.end() <= highest;
        let original = if retransmitted { u64::MAX } else { sent.start };
        let (sent_at, end) = (sent.sent_at, sent.end());
        Self { sent_at, end, last_sent_at: sent_at, reordered, original }
    }

    /// Whether this segment was sent after another (RFC 8985, section 6.2, `RACK_sent_after`).
    pub(crate) fn is_after(&self, other: &Self) -> bool {
        (self.sent_at, self.end) > (other.sent_at, other.end)
    }

    /// The later of two, with the reordering that either has shown; `other` was examined before.
    pub(crate) fn later(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        let reordered = self.reordered || other.reordered;
        let original = self.original.min(other.original);
        let last = if self.is_after(&other) { self } else { other };
        Self { reordered, original, last_sent_at: self.last_sent_at, ..last }
    }
}
