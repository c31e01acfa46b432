//! Congestion window validation as in Linux (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`): a window
//! that the application does not fill does not grow, and shrinks if that lasts (RFC 2861). Linux
//! counts segments, this code bytes.

use gridhaul_scenario::units::{Duration, Instant};

use super::Sender;
use crate::tcp::congestion::Controller;
use crate::tcp::params::StackParams;

/// Use of the congestion window.
#[derive(Debug, Clone, Default)]
pub(super) struct CwndValidation {
    /// The window was full in the current round trip.
    full: bool,
    /// Maximum of outstanding data in the current round trip, in bytes.
    max_outstanding: u64,
    /// Position whose acknowledgement ends the current round trip.
    round_end: u64,
    /// Time of the last use of the window, and the maximum of outstanding data since.
    used_at: Instant,
    max_since: u64,
}

impl CwndValidation {
    /// `Some` for stacks that follow Linux; congestion controls with pacing do not use it.
    pub(super) fn new(params: &StackParams, paced: bool) -> Option<Self> {
        (params.policy.validates_window && !paced).then(Self::default)
    }

    /// Updates the use of the window with `outstanding` bytes.
    fn update(&mut self, outstanding: u64, una: u64, next: u64, full: bool) {
        if una >= self.round_end || full || !self.full && outstanding > self.max_outstanding {
            (self.full, self.max_outstanding, self.round_end) = (full, outstanding, next);
        }
    }

    /// Whether the window may grow: it was full or, in slow start, half of it was outstanding.
    #[inline]
    fn allows_growth(&self, congestion: &Controller) -> bool {
        self.full || self.allows_slow_start(congestion.cwnd(), congestion.ssthresh())
    }

    fn allows_slow_start(&self, cwnd: u32, ssthresh: u32) -> bool {
        cwnd < ssthresh && u64::from(cwnd) < 2 * self.max_outstanding
    }
}

impl Sender {
    /// Whether the window has limited the sender, so that it may grow.
    #[inline]
    pub(super) fn window_was_limit(&self) -> bool {
        match self.optional.cwnd_validation() {
            Some(cwnd_validation) => cwnd_validation.allows_growth(&self.congestion),
            None => self.window_limited,
        }
    }

    /// New data was sent, or the window blocked it (`full`).
    #[inline]
    pub(super) fn note_cwnd_usage(&mut self, now: Instant, full: bool, params: &StackParams) {
        let (una, next) = (self.una, self.next);
        let Some(cwnd_validation) = self.optional.cwnd_validation_mut() else {
            self.window_limited |= full;
            return;
        };
        if full {
            // A full window may grow and is not reduced, as most are with bulk data.
            cwnd_validation.update(next - una, una, next, true);
            (cwnd_validation.used_at, cwnd_validation.max_since) = (now, 0);
        } else {
            self.validate_cwnd(now, params);
        }
    }

    /// RFC 2861, section 3.2: after an RTO in which the window was not used, it is reduced to the
    /// mean of the window and its used part, but not while more data waits, nor in recovery.
    #[inline(never)]
    fn validate_cwnd(&mut self, now: Instant, params: &StackParams) {
        let outstanding = self.next - self.una;
        let more = self.next < self.end();
        let Some(cwnd_validation) = self.optional.cwnd_validation_mut() else { return };
        cwnd_validation.update(outstanding, self.una, self.next, false);
        if cwnd_validation.allows_growth(&self.congestion) || self.recovery_active {
            (cwnd_validation.used_at, cwnd_validation.max_since) = (now, 0);
            return;
        }
        cwnd_validation.max_since = cwnd_validation.max_since.max(outstanding);
        if more || !params.restart_after_idle {
            return;
        }
        if now.since(cwnd_validation.used_at) < self.rtt.rto(params) {
            return;
        }
        let cwnd = self.congestion.cwnd();
        let used = (cwnd_validation.max_since as u32).max(params.initial_window);
        (cwnd_validation.used_at, cwnd_validation.max_since) = (now, 0);
        if used < cwnd {
            self.congestion.on_cwnd_unused(used.midpoint(cwnd));
            self.refresh_window();
        }
    }

    /// RFC 2861, section 3.1: the window halves for each RTO of idle time, down to the initial
    /// window (`tcp_cwnd_restart`).
    pub(super) fn decay_window(&mut self, now: Instant, params: &StackParams) {
        let Some(cwnd_validation) = self.optional.cwnd_validation_mut() else { return };
        (cwnd_validation.used_at, cwnd_validation.max_since) = (now, 0);
        let rto = self.rtt.rto(params);
        let cwnd = self.congestion.cwnd();
        let window_min = params.initial_window.min(cwnd);
        let (mut left, mut idle) = (cwnd, now.since(self.last_sent).saturating_sub(rto));
        while idle > Duration::ZERO && left > window_min {
            left /= 2;
            idle = idle.saturating_sub(rto);
        }
        self.congestion.on_cwnd_unused(left.max(window_min));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow start continues until the window is twice the outstanding data.
    #[test]
    fn a_window_that_is_half_used_grows_in_slow_start_only() {
        let mut cwnd_validation = CwndValidation::default();
        cwnd_validation.update(7_000, 1, 7_001, false);
        assert!(!cwnd_validation.full);
        assert!(cwnd_validation.allows_slow_start(13_999, u32::MAX));
        assert!(!cwnd_validation.allows_slow_start(14_000, u32::MAX));
        assert!(!cwnd_validation.allows_slow_start(8_000, 8_000));
    }

    /// A full window counts until the data then outstanding is acknowledged.
    #[test]
    fn a_full_window_counts_for_a_round_trip() {
        let mut cwnd_validation = CwndValidation::default();
        cwnd_validation.update(10_000, 1, 10_001, true);
        cwnd_validation.update(4_000, 7_001, 11_001, false);
        assert!(cwnd_validation.full);
        cwnd_validation.update(4_000, 10_001, 14_001, false);
        assert!(!cwnd_validation.full && !cwnd_validation.allows_slow_start(10_000, 5_000));
    }
}
