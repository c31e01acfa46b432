//! The offset as a linear function of time, within constraints from both sides.
//!
//! Each exchange limits the line from above and from below. All lines within the limits are a
//! convex set (linear programming as in Moon, Skelly, Towsley: Estimation and removal of clock
//! skew, INFOCOM 1999, with both directions). It is searched by the drift: for a given drift, the
//! limits of the offset are a minimum and a maximum over the exchanges, which are concave and
//! convex functions of the drift.

use super::Exchange;

/// Largest drift that is considered: 1,000 ppm, ten times that of a bad quartz.
pub const DRIFT_MAX: f64 = 1e-3;

/// Rounding of the times, in nanoseconds.
const ROUNDING: f64 = 1e-3;

/// Steps of a search: the interval shrinks to a 10^-15 part.
const STEPS: u32 = 90;

/// An interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

/// The lines that are consistent with some exchanges.
#[derive(Debug, Clone)]
pub struct ClockLine {
    /// Times on the remote clock, since `origin`, with the greatest and the least offset, in
    /// nanoseconds.
    max: Vec<(f64, f64)>,
    min: Vec<(f64, f64)>,
    origin: i64,
    /// Drift at which the limits are farthest apart, or 0 if it is unknown, and the greatest
    /// distance.
    best: (f64, f64),
    /// Whether the exchanges determine the drift, and not the end of the range that is searched.
    is_drift_known: bool,
}

impl Bounds {
    /// The middle.
    #[must_use]
    pub const fn middle(&self) -> f64 {
        f64::midpoint(self.min, self.max)
    }

    /// Whether a value is inside.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value)
    }
}

impl ClockLine {
    /// The lines within the limits of exchanges; `None` of no exchanges.
    #[must_use]
    pub fn new(exchanges: &[Exchange]) -> Option<Self> {
        let origin = exchanges.first()?.remote_received;
        let since = |at: i64| (at - origin) as f64;
        let mut line = Self {
            max: exchanges
                .iter()
                .map(|exchange| {
                    (since(exchange.remote_received), exchange.greatest_offset() as f64)
                })
                .collect(),
            min: exchanges
                .iter()
                .map(|exchange| (since(exchange.remote_sent), exchange.least_offset() as f64))
                .collect(),
            origin,
            best: (0.0, 0.0),
            is_drift_known: false,
        };
        let drift = maximum(-DRIFT_MAX, DRIFT_MAX, |drift| line.width(drift));
        let max = line.width(drift);
        // The distance is constant if all exchanges are from the same time, and grows up to an end
        // of the range if a larger drift would fit better: too few exchanges, or a time that is too
        // short for the variation of their delays.
        let is_known =
            [-DRIFT_MAX, DRIFT_MAX].iter().all(|drift| line.width(*drift) < max - ROUNDING);
        // Without a known drift, the clocks are taken to run at the same rate if that is
        // consistent.
        let drift = if !is_known && line.width(0.0) >= 0.0 { 0.0 } else { drift };
        line.is_drift_known = is_known;
        line.best = (drift, max);
        Some(line)
    }

    /// Distance between the limits at the drift where they are farthest apart; negative if no line
    /// is consistent.
    #[must_use]
    pub const fn greatest_width(&self) -> f64 {
        self.best.1
    }

    /// Drift in the middle of the consistent lines: the estimate for a symmetric path. `None` if
    /// the exchanges do not determine it.
    #[must_use]
    pub fn drift(&self) -> Option<f64> {
        self.is_drift_known.then_some(self.best.0)
    }

    /// Offset in the middle of the consistent lines at a time on the remote clock, in nanoseconds:
    /// the estimate for a path whose least delays in both directions are equal.
    #[must_use]
    pub fn offset(&self, remote: i64) -> f64 {
        let at = (remote - self.origin) as f64;
        f64::midpoint(self.above(self.best.0, at), self.below(self.best.0, at))
    }

    /// All drifts of consistent lines, which are infinite where the exchanges do not limit them;
    /// `None` if no line is consistent.
    #[must_use]
    pub fn drift_bounds(&self) -> Option<Bounds> {
        let Bounds { min, max } = self.consistent_drifts()?;
        let min = if min <= -DRIFT_MAX { f64::NEG_INFINITY } else { min };
        let max = if max >= DRIFT_MAX { f64::INFINITY } else { max };
        Some(Bounds { min, max })
    }

    /// All drifts of consistent lines in the range that is searched; `None` if no line is
    /// consistent.
    fn consistent_drifts(&self) -> Option<Bounds> {
        let (best, width) = self.best;
        let is_consistent = |drift: f64| self.width(drift) >= 0.0;
        (width >= 0.0).then(|| Bounds {
            min: last_consistent(best, -DRIFT_MAX, is_consistent),
            max: last_consistent(best, DRIFT_MAX, is_consistent),
        })
    }

    /// All offsets of consistent lines at a time on the remote clock, in nanoseconds; `None` if no
    /// line is consistent.
    #[must_use]
    pub fn offset_bounds(&self, remote: i64) -> Option<Bounds> {
        let Bounds { min, max } = self.consistent_drifts()?;
        let at = (remote - self.origin) as f64;
        let high = maximum(min, max, |drift| self.above(drift, at));
        let low = maximum(min, max, |drift| -self.below(drift, at));
        Some(Bounds { min: self.below(low, at), max: self.above(high, at) })
    }

    /// Greatest offset at a time for a drift.
    fn above(&self, drift: f64, at: f64) -> f64 {
        let limits = self.max.iter().map(|(time, limit)| limit - drift * (time - at));
        limits.fold(f64::INFINITY, f64::min)
    }

    /// Least offset at a time for a drift.
    fn below(&self, drift: f64, at: f64) -> f64 {
        let limits = self.min.iter().map(|(time, limit)| limit - drift * (time - at));
        limits.fold(f64::NEG_INFINITY, f64::max)
    }

    fn width(&self, drift: f64) -> f64 {
        self.above(drift, 0.0) - self.below(drift, 0.0)
    }
}

/// Where a concave function has its maximum (ternary search).
fn maximum(mut low: f64, mut high: f64, function: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        let (left, right) = (low + third, high - third);
        if function(left) < function(right) {
            low = left;
        } else {
            high = right;
        }
    }
    f64::midpoint(low, high)
}

/// The last value between `inside` and `outside` for which a condition holds that holds at
/// `inside`.
fn last_consistent(inside: f64, outside: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(outside) {
        return outside;
    }
    let (mut inside, mut outside) = (inside, outside);
    for _ in 0..STEPS {
        let middle = f64::midpoint(inside, outside);
        if holds(middle) {
            inside = middle;
        } else {
            outside = middle;
        }
    }
    inside
}
