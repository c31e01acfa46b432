//! Retransmission timers of new connections (RFC 6298; RFC 8985, section 7).

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::Recovery;

/// The rules of a retransmission timer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimerRules {
    min_s: f64,
    max_s: f64,
    /// Whether the minimum applies to the variance term (Linux).
    floor_on_variance: bool,
    /// Whether tail loss probes precede timeouts.
    probes: bool,
}

/// The round trips that one end has measured, in seconds (RFC 6298, section 2.3).
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    smoothed_s: f64,
    variance_s: f64,
}

impl TimerRules {
    pub(super) fn new(stack: &StackParams) -> Self {
        Self {
            min_s: stack.rto_min.as_secs_f64(),
            max_s: stack.rto_max.as_secs_f64(),
            floor_on_variance: stack.rto_floor_on_variance,
            probes: stack.recovery == Recovery::Rack && stack.sack,
        }
    }

    /// Time until the sender of a flight transmits a segment again.
    pub(super) fn timeout_s(self, measured: Measured, segments: usize) -> f64 {
        let Measured { smoothed_s, variance_s } = measured;
        let spread_s = 4.0 * variance_s;
        let timeout_s = if self.floor_on_variance {
            smoothed_s + spread_s.max(self.min_s)
        } else {
            (smoothed_s + spread_s).max(self.min_s)
        };
        // RFC 8985, section 7.2: a single segment may wait for a delayed acknowledgement.
        let wait_s = if segments == 1 { self.min_s } else { 0.0 };
        let probe_s = if self.probes { 2.0 * smoothed_s + wait_s } else { f64::INFINITY };
        timeout_s.min(probe_s).min(self.max_s)
    }
}

impl Measured {
    pub(super) const fn first(round_trip_s: f64) -> Self {
        Self { smoothed_s: round_trip_s, variance_s: round_trip_s / 2.0 }
    }

    /// RFC 6298, section 2.3: the variance follows first.
    pub(super) fn next(self, round_trip_s: f64) -> Self {
        let error_s = (self.smoothed_s - round_trip_s).abs();
        Self {
            smoothed_s: 0.875 * self.smoothed_s + 0.125 * round_trip_s,
            variance_s: 0.75 * self.variance_s + 0.25 * error_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6298, section 2.2: 100 ms + 4 * 50 ms. The next sample of 500 ms: 150 ms + 4 * (37.5 +
    /// 100) ms.
    #[test]
    fn timeouts_follow_the_measured_round_trips() {
        let rfc = TimerRules { min_s: 0.2, max_s: 60.0, floor_on_variance: false, probes: false };
        let (first, near) = (Measured::first(0.1), |a: f64, b: f64| (a - b).abs() < 1e-9);
        assert!(near(rfc.timeout_s(first, 1), 0.3));
        assert!(near(rfc.timeout_s(first.next(0.5), 1), 0.7));
        // Linux: 100 ms + 200 ms, and a probe after two round trips, for one segment 200 ms later.
        let linux = TimerRules { floor_on_variance: true, probes: true, ..rfc };
        assert!(near(linux.timeout_s(first, 1), 0.3));
        assert!(near(linux.timeout_s(first, 2), 0.2));
    }
}
