//! Round-trip variation as Linux estimates it for the timeout (`tcp_rtt_estimator`): the largest
//! deviation within a round trip takes effect at once, and the estimate decreases only after a full
//! round trip of smaller deviations. While a queue fills and empties, the timeout thus stays above
//! the longest round trip.

use gridhaul_scenario::units::Duration;

use super::in_micros;

/// Four times the mean deviation and the values derived from it, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct MeanDeviation {
    /// The term that the timeout adds to the smoothed round trip.
    pub rttvar: u32,
    mdev: u32,
    /// The largest `mdev` of the current round trip.
    mdev_max: u32,
    /// Low half of the position whose acknowledgement ends the current round trip.
    end: u32,
}

/// Outstanding range at a measurement: low halves of the first unacknowledged position and of the
/// position that is sent next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutstandingRange {
    pub una: u32,
    pub next: u32,
}

impl MeanDeviation {
    /// The first sample: RFC 6298, 2.2, with the minimum timeout applied to the variation.
    pub(super) fn first(rtt_us: u32, floor: Duration, outstanding: OutstandingRange) -> Self {
        let mdev = rtt_us.saturating_mul(2);
        let rttvar = mdev.max(in_micros(floor.as_nanos()));
        Self { rttvar, mdev, mdev_max: rttvar, end: outstanding.next }
    }

    /// Adds a sample that differs by `error_us` from the smoothed round trip.
    pub(super) fn measure(
        &mut self,
        error_us: i64,
        floor: Duration,
        outstanding: OutstandingRange,
    ) {
        let size = error_us.unsigned_abs().min(u64::from(u32::MAX / 2)) as i64;
        let more = size - i64::from(self.mdev / 4);
        // A round trip below the average counts for an eighth: a queue that empties does not
        // lengthen the timeout.
        let change = if error_us < 0 && more > 0 { more >> 3 } else { more };
        self.mdev = (i64::from(self.mdev) + change).clamp(0, i64::from(u32::MAX)) as u32;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if outstanding.una.wrapping_sub(self.end).cast_signed() > 0 {
            self.rttvar -= self.rttvar.saturating_sub(self.mdev_max) / 4;
            self.end = outstanding.next;
            self.mdev_max = in_micros(floor.as_nanos());
        }
    }

    /// Encodes the state as four words for [`super::RttEstimator`].
    pub(super) const fn words(self) -> [u32; 4] {
        [self.rttvar, self.mdev, self.mdev_max, self.end]
    }

    pub(super) const fn of(words: [u32; 4]) -> Self {
        let [rttvar, mdev, mdev_max, end] = words;
        Self { rttvar, mdev, mdev_max, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_millis(200);

    fn outstanding(una: u32, next: u32) -> OutstandingRange {
        OutstandingRange { una, next }
    }

    #[test]
    fn the_largest_deviation_of_a_round_trip_takes_effect_at_once_and_decreases_slowly() {
        let mut deviation = MeanDeviation::first(100_000, FLOOR, outstanding(0, 10));
        assert_eq!((deviation.rttvar, deviation.mdev), (200_000, 200_000));
        // 450 ms above average: increases by 450 - 200 / 4.
        deviation.measure(450_000, FLOOR, outstanding(1, 11));
        assert_eq!((deviation.rttvar, deviation.mdev), (600_000, 600_000));
        // Nine samples without deviation: the mean deviation decreases by a quarter each time, the
        // timeout not at all.
        for una in 2..=10 {
            deviation.measure(0, FLOOR, outstanding(una, 20));
        }
        assert_eq!((deviation.rttvar, deviation.mdev), (600_000, 45_052));
        // The first round trip ends; its largest deviation was 600 ms. That of the second is the
        // minimum: the variation decreases by a quarter of the 400 ms between.
        deviation.measure(0, FLOOR, outstanding(11, 21));
        assert_eq!((deviation.rttvar, deviation.end), (600_000, 21));
        deviation.measure(0, FLOOR, outstanding(22, 30));
        assert_eq!(deviation.rttvar, 500_000);
    }

    #[test]
    fn a_queue_that_empties_counts_for_an_eighth() {
        let mut late = MeanDeviation::first(100_000, FLOOR, outstanding(0, 10));
        let mut early = late;
        late.measure(130_000, FLOOR, outstanding(1, 11));
        early.measure(-130_000, FLOOR, outstanding(1, 11));
        assert_eq!((late.mdev - 200_000, early.mdev - 200_000), (80_000, 10_000));
        // An error smaller than the mean deviation decreases it, whatever its sign.
        let before = early;
        early.measure(-10_000, FLOOR, outstanding(2, 12));
        assert!(early.mdev < before.mdev);
    }
}
