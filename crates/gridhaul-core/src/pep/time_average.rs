//! A quantity that changes over time, and its time average.

use gridhaul_scenario::units::Instant;

/// A quantity that changes over time, with its maximum and its integral.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeAverage {
    value: u64,
    max: u64,
    since: Instant,
    /// Sum of value times nanoseconds up to `since`.
    integral: u128,
}

impl TimeAverage {
    /// Current value.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Maximum so far, or since the last [`restart_max`](Self::restart_max).
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// The maximum begins anew with the current value: the measured time begins.
    pub const fn restart_max(&mut self) {
        self.max = self.value;
    }

    /// Integral over time up to `now`, in value nanoseconds: the time average of an interval is the
    /// difference of two integrals over the length of the interval in nanoseconds.
    #[must_use]
    pub fn integral_at(&self, now: Instant) -> u128 {
        self.integral + u128::from(self.value) * u128::from(now.since(self.since).as_nanos())
    }

    /// Sets the value from `now` on.
    pub fn set(&mut self, now: Instant, value: u64) {
        self.integral = self.integral_at(now);
        self.since = now;
        self.value = value;
        self.max = self.max.max(value);
    }

    pub(super) fn increase(&mut self, now: Instant, by: u64) {
        self.set(now, self.value + by);
    }

    pub(super) fn decrease(&mut self, now: Instant, by: u64) {
        self.set(now, self.value - by);
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    /// 3 for two seconds, 5 for one and 1 for four: 15 in all.
    #[test]
    fn the_integral_is_the_sum_of_values_times_their_durations() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut quantity = TimeAverage::default();
        quantity.set(at(10), 3);
        quantity.increase(at(12), 2);
        quantity.decrease(at(13), 4);
        assert_eq!((quantity.value(), quantity.max()), (1, 5));
        assert_eq!(quantity.integral_at(at(17)), 15_000_000_000);
        quantity.restart_max();
        assert_eq!(quantity.max(), 1);
    }
}
