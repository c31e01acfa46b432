//! Aggregated acknowledgements: if the path, or a receiver that delays acknowledgements,
//! acknowledges more data at once than the bandwidth explains, the window is increased by the
//! excess (draft-ietf-ccwg-bbr, `BBRUpdateACKAggregation`; the constants are those of Linux).

use gridhaul_scenario::units::{Duration, Instant};

/// Linux, `bbr_extra_acked_win_rtts`: the largest excess of the last five to ten round trips is
/// used.
const ROUNDS: u8 = 5;
/// Linux, `bbr_extra_acked_max_us`: at most the data delivered at the bandwidth in this time.
const MAX_EXTRA_TIME: Duration = Duration::from_millis(100);

/// Excess of acknowledged data over the data expected at the bandwidth.
#[derive(Debug, Clone)]
pub(super) struct AckAggregation {
    /// Start of the interval in which acknowledgements exceed the bandwidth, and bytes acknowledged
    /// since.
    since: Instant,
    acked: f64,
    /// Round trips in the newer window.
    rounds: u8,
    /// The largest excess of the newer window and of the one before, in bytes.
    max_excess: [f64; 2],
}

impl AckAggregation {
    pub(super) const fn new() -> Self {
        Self { since: Instant::ZERO, acked: 0.0, rounds: 0, max_excess: [0.0; 2] }
    }

    /// Handles an acknowledgement of `delivered` bytes, which may start a round trip; `expected`
    /// returns the bytes expected at the bandwidth in a time.
    #[inline]
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        delivered: f64,
        begins_round: bool,
        cwnd: f64,
        expected: impl Fn(Duration) -> f64,
    ) {
        if begins_round {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                self.rounds = 0;
                self.max_excess = [0.0, self.max_excess[0]];
            }
        }
        let mut expected_bytes = expected(now.since(self.since));
        if self.acked <= expected_bytes {
            // No excess any more: the interval restarts with this acknowledgement.
            (self.acked, self.since, expected_bytes) = (0.0, now, 0.0);
        }
        self.acked += delivered;
        self.max_excess[0] = self.max_excess[0].max((self.acked - expected_bytes).min(cwnd));
    }

    /// Increase of the window, in bytes.
    #[inline]
    pub(super) fn extra_acked(&self, expected: impl Fn(Duration) -> f64) -> f64 {
        self.max_excess[0].max(self.max_excess[1]).min(expected(MAX_EXTRA_TIME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment per millisecond.
    fn expected_bytes(time: Duration) -> f64 {
        (time.as_secs_f64() * 1e3 + 1e-9).floor()
    }

    #[test]
    fn a_burst_of_six_increases_the_window_for_ten_rounds() {
        let mut aggregation = AckAggregation::new();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        // Six segments at once after six milliseconds without acknowledgements, three times: five
        // more than expected.
        for burst in 1..=3 {
            for _ in 0..6 {
                aggregation.on_ack(at(6 * burst), 1.0, false, 100.0, expected_bytes);
            }
        }
        assert_eq!(aggregation.extra_acked(expected_bytes), 6.0);
        // Then one segment per millisecond, in ten round trips.
        for round in 1..=9 {
            aggregation.on_ack(at(30 + round), 1.0, true, 100.0, expected_bytes);
            assert_eq!(aggregation.extra_acked(expected_bytes), 6.0, "round {round}");
        }
        aggregation.on_ack(at(50), 1.0, true, 100.0, expected_bytes);
        assert_eq!(aggregation.extra_acked(expected_bytes), 1.0);
    }

    #[test]
    fn the_increase_is_bounded_by_the_window_and_by_a_tenth_of_a_second() {
        let mut aggregation = AckAggregation::new();
        aggregation.on_ack(Instant::ZERO, 500.0, false, 300.0, expected_bytes);
        assert_eq!(aggregation.extra_acked(|_| 400.0), 300.0);
        assert_eq!(aggregation.extra_acked(expected_bytes), 100.0);
    }

    #[test]
    fn only_data_beyond_the_bandwidth_is_an_excess() {
        let mut aggregation = AckAggregation::new();
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        aggregation.on_ack(at(0), 3.0, false, 100.0, expected_bytes);
        aggregation.on_ack(at(1), 3.0, false, 100.0, expected_bytes);
        // Six segments, of which the bandwidth explains one.
        assert_eq!(aggregation.extra_acked(expected_bytes), 5.0);
    }
}
