//! The end of the proxy without loss: data is acknowledged to its sender only after the next hop
//! has acknowledged it, so that no byte remains at risk.

use super::direction::Direction;
use crate::tcp::Segment;

impl Direction {
    /// From now on data and FIN are acknowledged when the next hop has acknowledged them.
    pub(super) fn drain(&mut self) {
        self.offered_before_drain.get_or_insert(self.offered);
    }

    pub(super) const fn is_draining(&self) -> bool {
        self.offered_before_drain.is_some()
    }

    /// Whether the acknowledgement of this segment, which has just been stored, waits for that of
    /// the next hop: another one would only be a duplicate.
    pub(super) fn withholds_acknowledgement_of(&self, segment: &Segment) -> bool {
        let acknowledged = self.acknowledgement();
        let end = self.position(segment.seq).map(|at| at + u64::from(segment.sequence_len()));
        self.is_draining()
            && acknowledged < self.received
            && end.is_some_and(|end| end > acknowledged)
    }

    /// Acknowledgement number and window of a segment to the sender. The right edge is that of the
    /// next hop or of the buffer, and does not move back (RFC 9293, section 3.8.6).
    pub(super) fn offer_while_draining(&mut self) -> (u32, u32) {
        let acknowledgement = self.acknowledgement();
        let edge = self.offered_edge.max(self.edge_while_draining());
        let window = edge.saturating_sub(acknowledgement) >> self.shift << self.shift;
        (self.offered, self.offered_edge) = (acknowledgement, edge);
        (self.sequence_number(acknowledgement), window as u32)
    }

    /// Whether the window has become larger than the sender knows.
    pub(super) fn has_opened_while_draining(&self) -> bool {
        self.edge_while_draining() > self.offered_edge
    }

    fn edge_while_draining(&self) -> u64 {
        self.released + self.buffer.min(u64::from(self.next_window))
    }
}
