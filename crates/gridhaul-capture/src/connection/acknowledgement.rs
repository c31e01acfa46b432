//! Acknowledgements as the sender receives them.

use gridhaul_scenario::units::{Duration, Instant};

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement {
    /// Time at which the sender has it, estimated from the handshake.
    pub(super) at: Instant,
    /// Its timestamp, which the sender echoes (RFC 7323, section 3).
    pub(super) timestamp: Option<u32>,
    /// Offset in the stream.
    pub(super) ack: u64,
    /// Right edge of the receive window; `None` with an unknown scale.
    pub(super) edge: Option<u64>,
    /// Whether the segment has data of the receiver.
    pub(super) has_data: bool,
    /// Queueing delay in the round trip, if it acknowledges new data.
    pub(super) queueing: Option<Duration>,
    /// Time by which the receiver delayed it.
    pub(super) delayed: Option<Duration>,
}

/// Shortest delay that counts as a delayed acknowledgement. Linux waits at least 40 ms
/// (`TCP_DELACK_MIN`), other systems up to 200 ms; RFC 9293, section 3.8.6.3, allows 500 ms.
const DELAY_MIN: Duration = Duration::from_millis(20);

/// Longest delay.
const DELAY_MAX: Duration = Duration::from_millis(600);

/// An acknowledgement of new data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Time above the smallest round trip.
    pub(super) excess: Duration,
    /// That of the acknowledgement before.
    pub(super) previous_excess: Duration,
    /// Whether nothing else was outstanding when the segment was sent.
    pub(super) alone: bool,
    /// Whether at most one full-sized segment is acknowledged.
    pub(super) single: bool,
    /// Whether the segment has no data.
    pub(super) pure: bool,
}

impl Sample {
    /// The delay, if the receiver delayed the acknowledgement: a single segment, whose round trip
    /// is longer although no queue can explain it, since nothing was ahead of the segment, or the
    /// one ahead of it was faster.
    pub(super) fn delayed(&self) -> Option<Duration> {
        let no_queue = self.alone || self.previous_excess.mul_f64(2.0) < self.excess;
        let in_range = (DELAY_MIN..=DELAY_MAX).contains(&self.excess);
        (self.single && self.pure && no_queue && in_range).then_some(self.excess)
    }
}
