//! A quantity that rises and falls, and its mean over time.

use gridhaul_scenario::units::Instant;

/// A quantity that rises and falls.
#[derive(Debug, Clone, Copy, Default)]
pub struct Level {
    value: u64,
    max: u64,
    since: Instant,
    /// Value times nanoseconds up to `since`.
    integral: u128,
}

impl Level {
    /// What it is now.
    #[must_use]
    pub const fn value(&self) -> u64 {
        self.value
    }

    /// Most that it ever was.
    #[must_use]
    pub const fn max(&self) -> u64 {
        self.max
    }

    /// Integral over time up to `now`, in value nanoseconds: the mean between two times is the
    /// difference of two of these over the nanoseconds between them.
    #[must_use]
    pub fn integral_at(&self, now: Instant) -> u128 {
        self.integral + u128::from(self.value) * u128::from(now.since(self.since).as_nanos())
    }

    /// It is now this.
    pub fn set(&mut self, now: Instant, value: u64) {
        self.integral = self.integral_at(now);
        self.since = now;
        self.value = value;
        self.max = self.max.max(value);
    }

    pub(super) fn rise(&mut self, now: Instant, by: u64) {
        self.set(now, self.value + by);
    }

    pub(super) fn fall(&mut self, now: Instant, by: u64) {
        self.set(now, self.value - by);
    }
}
