//! Windows and selective acknowledgements that are offered to the sender.

use super::direction::Direction;
use crate::tcp::SackBlocks;

impl Direction {
    /// The smaller of the free buffer space and the window of the next hop (paper `plc`, section
    /// II.D.3), in whole units of the window scale.
    fn window(&self) -> u64 {
        let free = (self.released + self.buffer).saturating_sub(self.received);
        free.min(u64::from(self.next_window)) >> self.shift << self.shift
    }

    /// The part of the offered window that the sender has not used.
    fn unused_window(&self) -> u64 {
        self.offered_edge.saturating_sub(self.received)
    }

    /// Whether the window must stay the same. While segments are missing, only an acknowledgement
    /// with an unchanged window counts as a duplicate (RFC 5681, section 2).
    fn must_keep_window(&self) -> bool {
        self.store.has_gap_at(self.received)
            && self.acknowledgement() == self.offered
            && self.unused_window() >= self.mss
    }

    /// Acknowledgement number and window of a segment to the sender.
    pub(super) fn offer(&mut self) -> (u32, u32) {
        if self.is_draining() {
            return self.offer_while_draining();
        }
        let unused = self.unused_window() >> self.shift << self.shift;
        let window = match self.must_keep_window() {
            true => unused,
            // The right edge of a window should not move back (RFC 9293, section 3.8.6).
            false => self.window().max(unused),
        };
        let acknowledgement = self.acknowledgement();
        self.offered = acknowledgement;
        self.offered_edge = acknowledgement + window;
        (self.sequence_number(acknowledgement), window as u32)
    }

    /// Whether the sender should be notified of a larger window: by one segment after less than one
    /// segment, or by half of the buffer (RFC 9293, section 3.8.6.2.2).
    pub(super) fn has_opened(&self) -> bool {
        let (unused, window) = (self.unused_window(), self.window());
        let half = self.buffer / 2;
        let step = self.mss.min(half).max(1);
        let has_opened = unused < step && window >= step || window >= unused + half.max(1);
        window > unused && has_opened && !self.must_keep_window()
    }

    /// The stored ranges after the acknowledgement, the most recent first (RFC 2018, section 4).
    pub(super) fn sack_blocks(&self) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        // While an acknowledgement is withheld, blocks after it would declare the data lost that
        // the proxy stores.
        let is_withheld = self.acknowledgement() < self.received;
        if !self.sack || is_withheld || !self.store.has_gap_at(self.received) {
            return blocks;
        }
        let ranges = self.store.ranges_after(self.received);
        let recent = ranges.iter().position(|range| range.contains(&self.latest.start));
        let others = (0..ranges.len()).filter(|&index| Some(index) != recent);
        for index in recent.into_iter().chain(others).take(SackBlocks::MAX) {
            let range = &ranges[index];
            blocks.push(self.sequence_number(range.start), self.sequence_number(range.end));
        }
        blocks
    }
}
