//! The time after a proxy has reset both hosts.
//!
//! RST is not retransmitted (RFC 9293, section 3.5.3). If it is lost, a host that sends something
//! is answered with another one, and a host that only receives would wait for ever: it is reset
//! again when the other host, or another proxy on its side, sends a segment.

use gridhaul_scenario::units::{Duration, Instant};

/// State of a proxy that has reset both hosts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Aborted {
    /// When the reset of a host may be repeated.
    repetition_at: Instant,
}

/// Minimum time between repetitions: many segments that were in flight cause one of them.
const INTERVAL: Duration = Duration::from_millis(200);

impl Aborted {
    /// Whether a segment that arrives now causes a repetition.
    pub(super) fn may_repeat(&mut self, now: Instant) -> bool {
        let is_due = self.repetition_at <= now;
        if is_due {
            self.repetition_at = now + INTERVAL;
        }
        is_due
    }
}
