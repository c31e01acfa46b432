//! Time in whole nanoseconds.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use super::quantity::{Quantity, quantity_text};

/// A length of time in whole nanoseconds. In files: `"25 ms"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

/// A point in time, as nanoseconds since the run began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Quantity for Duration {
    const EXPECTED: &'static str = "a time such as \"25 ms\"";
    const UNITS: &'static [(&'static str, f64)] = &[
        ("d", 86_400e9),
        ("h", 3_600e9),
        ("min", 60e9),
        ("s", 1e9),
        ("ms", 1e6),
        ("us", 1e3),
        ("ns", 1.0),
    ];
    const ZERO_TEXT: Option<&'static str> = Some("0 s");
    const MISTAKES: &'static [(&'static str, &'static str)] = &[
        ("m", "write \"min\" for minutes or \"ms\" for milliseconds"),
        // The micro sign, and the Greek letter that looks like it.
        ("\u{b5}s", "write \"us\""),
        ("\u{3bc}s", "write \"us\""),
        ("msec", "write \"ms\""),
        ("sec", "write \"s\""),
        ("second", "write \"s\""),
        ("seconds", "write \"s\""),
        ("minute", "write \"min\""),
        ("minutes", "write \"min\""),
        ("hour", "write \"h\""),
        ("hours", "write \"h\""),
        ("day", "write \"d\""),
        ("days", "write \"d\""),
    ];
    fn from_base(base: u64) -> Self {
        Self(base)
    }
}
quantity_text!(Duration, r"^\s*[0-9][0-9_.eE+-]*\s*(d|h|min|s|ms|us|ns)\s*$");

impl Duration {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than any run. Half of the range, so that a time of a run plus this duration is before
    /// [`Instant::NEVER`].
    pub const MAX: Self = Self(u64::MAX >> 1);

    /// From nanoseconds.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// From microseconds.
    #[inline]
    #[must_use]
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros * 1_000)
    }
    /// From milliseconds.
    #[inline]
    #[must_use]
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis * 1_000_000)
    }
    /// From seconds.
    #[inline]
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs * 1_000_000_000)
    }
    /// From seconds, rounded to the nearest nanosecond; negative or NaN becomes zero.
    #[inline]
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round().clamp(0.0, Self::MAX.0 as f64) as u64)
    }
    /// In nanoseconds.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// In seconds.
    #[inline]
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// True for no time at all.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The difference, or zero where `other` is longer.
    #[inline]
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// Scaled by a factor, rounded to the nearest nanosecond.
    #[inline]
    #[must_use]
    pub fn mul_f64(self, factor: f64) -> Self {
        Self::from_secs_f64(self.as_secs_f64() * factor)
    }
}

impl Add for Duration {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        // A sum beyond the range is a time that no run reaches, as `Self::MAX` is.
        Self(self.0.saturating_add(other.0))
    }
}
impl Sub for Duration {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        // A longer `other` is a defect of the caller, which `Self::saturating_sub` would hide.
        Self(self.0 - other.0)
    }
}
impl Mul<u64> for Duration {
    type Output = Self;
    #[inline]
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}
impl Div<u64> for Duration {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}
impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Instant {
    /// The beginning of the run.
    pub const ZERO: Self = Self(0);
    /// Never: later than every event.
    pub const NEVER: Self = Self(u64::MAX);

    /// From nanoseconds since the run began.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }
    /// From seconds since the run began.
    #[inline]
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self(Duration::from_secs_f64(secs).0)
    }
    /// Nanoseconds since the run began.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the run began.
    #[inline]
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// Time since `earlier`, or zero where `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}
impl AddAssign<Duration> for Instant {
    #[inline]
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}
impl Sub<Duration> for Instant {
    type Output = Self;
    #[inline]
    fn sub(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.0))
    }
}
