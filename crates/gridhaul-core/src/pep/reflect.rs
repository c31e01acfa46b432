//! A reflecting proxy: the "reflection and regeneration unit" BR²U of paper `plc`, sections II.D.3
//! and III, with a congestion window of its own on each hop.
//!
//! The proxy stores each segment, sends it over the next hop in order, and acknowledges it, with
//! the smaller of its own window and the window of the next hop. The acknowledgement of the next
//! hop, which may be another reflecting proxy, releases the copy; until then, the proxy retransmits
//! lost segments. [`Spoof`](super::Spoof) forwards at once, without a window of its own.
//!
//! Trade-offs are listed in `docs/limitations/reflect.md`.

use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::coupling::{Coupling, CouplingMode};
use super::transparent::{EntryState, Relay, Transparent};
use super::{BufferStatus, Outgoing, Side, Statistics};
use crate::tcp::{Connection, Segment, StackParams};

/// A reflecting proxy: two coupled connections with the sequence numbers of the hosts.
pub type Reflect = Transparent<Coupling>;

impl Relay for Coupling {
    fn engage(params: &Arc<StackParams>, entry: &EntryState, window_shifts: [u8; 2]) -> Self {
        let connections = Side::BOTH.map(|side| {
            let (own, peer) = (entry.isns[side.other().index()], entry.isns[side.index()]);
            let window = entry.windows[side.index()];
            Connection::adopted(Arc::clone(params), own, peer, window, entry.sack)
        });
        Self::new(connections, CouplingMode::EndToEnd, window_shifts)
    }

    fn request_ack(&mut self, to: Side) {
        self.connection_mut(to).request_ack();
    }

    #[inline(always)]
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.handle_segment(now, from, segment);
    }

    #[inline]
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.poll_transmit(now)
    }

    #[inline]
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&Outgoing)) -> (Instant, u64) {
        self.transmit(now, send)
    }

    #[inline]
    fn next_deadline(&self) -> Instant {
        self.next_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_timeout(now);
    }

    fn exceeds_r2(&self, now: Instant) -> bool {
        self.exceeds_r2(now)
    }

    fn abort(&mut self) {
        self.abort();
    }

    fn drain(&mut self) {
        self.drain();
    }

    #[inline]
    fn is_unsent(&self, from: Side, ack: u32) -> bool {
        self.connection(from).is_unsent(ack)
    }

    fn next_to(&self, to: Side) -> u32 {
        self.connection(to).next_sequence_number()
    }

    #[inline]
    fn expected(&self, from: Side) -> u32 {
        self.connection(from).expected()
    }

    fn is_over(&self) -> bool {
        self.is_over()
    }

    fn is_finished(&self) -> bool {
        self.is_finished()
    }

    #[inline]
    fn bytes_at_risk(&self) -> u64 {
        self.bytes_at_risk()
    }

    fn buffer_status(&self, from: Side) -> BufferStatus {
        self.buffer_status(from)
    }

    fn lost(&self) -> u64 {
        self.lost()
    }

    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        self.accepts(from, segment)
    }

    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.set_window_shift(toward, shift);
    }

    fn count(&self, statistics: &mut Statistics) {
        self.count(statistics);
    }
}
