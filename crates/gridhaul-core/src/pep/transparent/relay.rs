//! The part of a transparent proxy that handles segments between handshake and close.

use std::fmt;
use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::EntryState;
use crate::pep::{BufferStatus, Outgoing, Side, Statistics};
use crate::tcp::{Segment, StackParams};

/// Relays the segments of an open connection, and acknowledges data in place of the receiver. The
/// methods that have the names of those of [`Proxy`](crate::pep::Proxy) have the same contract.
pub trait Relay: fmt::Debug + Clone + Send + Sync + 'static {
    /// A relay that joins a connection. `window_shifts` are those of
    /// [`Proxy::set_window_shift`](crate::pep::Proxy::set_window_shift), by side.
    fn engage(params: &Arc<StackParams>, entry: &EntryState, window_shifts: [u8; 2]) -> Self;

    /// Sends an acknowledgement to a side.
    fn request_ack(&mut self, to: Side);

    /// Handles a segment from a side.
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment);

    /// The next segment to send now, if any.
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing>;

    /// Passes all segments that are to be sent now to `send`. Returns the time of the next timeout
    /// and the bytes at risk after that.
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&Outgoing)) -> (Instant, u64) {
        while let Some(outgoing) = self.poll_transmit(now) {
            send(&outgoing);
        }
        (self.next_deadline(), self.bytes_at_risk())
    }

    /// Time of the next timeout.
    fn next_deadline(&self) -> Instant;

    /// Handles all timers that have expired.
    fn handle_timeout(&mut self, now: Instant);

    /// Whether a side has not answered within R2 (RFC 1122, section 4.2.3.5).
    fn exceeds_r2(&self, now: Instant) -> bool;

    /// Resets the connection on both sides.
    fn abort(&mut self);

    /// From now on data is acknowledged to its sender after the next hop has acknowledged it.
    fn drain(&mut self);

    /// Whether the relay has never sent the data that a side acknowledges with this number.
    fn is_unsent(&self, from: Side, ack: u32) -> bool;

    /// Sequence number after the last byte that was sent to a side.
    fn next_to(&self, to: Side) -> u32;

    /// Next sequence number expected from a side.
    fn expected(&self, from: Side) -> u32;

    /// Whether both directions are closed.
    fn is_over(&self) -> bool;

    /// Whether both directions are closed and no answer is owed any more.
    fn is_finished(&self) -> bool;

    /// Payload bytes of both directions that were acknowledged to their sender and not by the next
    /// hop.
    fn bytes_at_risk(&self) -> u64;

    /// State of the buffer for the payload of a side.
    fn buffer_status(&self, from: Side) -> BufferStatus;

    /// Payload bytes that were acknowledged to their sender and discarded by [`Self::abort`].
    fn lost(&self) -> u64;

    /// The payload of a segment that would be stored: sequence number and length.
    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)>;

    /// Changes the unit of the windows that are offered to a side.
    fn set_window_shift(&mut self, toward: Side, shift: u8);

    /// Adds retransmissions and timeouts.
    fn count(&self, statistics: &mut Statistics);
}
