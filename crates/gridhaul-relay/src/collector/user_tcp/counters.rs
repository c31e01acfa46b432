//! Counters of TCP in user space.

use gridhaul_scenario::units::{Duration, Instant};

use super::settings::DropCause;

/// Counters of TCP in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UserTcpCounters {
    /// Dropped packets by [`DropCause`].
    pub dropped: [u64; DropCause::ALL.len()],
    /// Segments that belong to no connection and were answered with RST.
    pub unknown: u64,
    /// Connections that were removed before their handshake was complete, for others.
    pub half_open_evicted: u64,
    /// Segments that repeat data which has arrived and is not stored: the meter's retransmission
    /// timeout is shorter than the time until the data is stored.
    pub early_retransmissions: u64,
    /// Connections that ended because the meter did not answer.
    pub timeouts: u64,
    delay: ConfirmationDelay,
}

/// Times between the arrival of data and its confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct ConfirmationDelay {
    smoothed: Option<Duration>,
    maximum: Duration,
}

/// Weight of a new value in the smoothed delay: that of the smoothed round-trip time of TCP (RFC
/// 6298, section 2.3).
const GAIN: f64 = 0.125;

impl UserTcpCounters {
    pub(super) const fn drop(&mut self, cause: DropCause) {
        self.dropped[cause as usize] += 1;
    }

    /// Data that arrived at `since` is confirmed now.
    pub(super) fn note_confirmation(&mut self, since: Instant, now: Instant) {
        let delay = now.since(since);
        let smoothed = match self.delay.smoothed {
            None => delay,
            Some(before) => {
                let seconds = before.as_secs_f64() * (1.0 - GAIN) + delay.as_secs_f64() * GAIN;
                Duration::from_secs_f64(seconds)
            }
        };
        self.delay.smoothed = Some(smoothed);
        self.delay.maximum = self.delay.maximum.max(delay);
    }

    /// Smoothed time between the arrival of data and its confirmation; `None` before the first.
    #[must_use]
    pub const fn confirmation_delay(&self) -> Option<Duration> {
        self.delay.smoothed
    }

    /// The longest such time so far.
    #[must_use]
    pub const fn confirmation_delay_max(&self) -> Duration {
        self.delay.maximum
    }
}
