//! Acknowledged bytes and goodput over time, for charts.

use gridhaul_scenario::units::Instant;
use serde::Serialize;

use super::track::Track;
use crate::ConnectionExplanation;

/// Goodput over time: the mean of each interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// Middle of each interval in s.
    pub time_s: Vec<f64>,
    /// Mean goodput in it.
    pub goodput_bit_per_s: Vec<f64>,
}

/// Intervals of a curve: more cannot be distinguished in a chart of this width.
const INTERVALS: usize = 200;

impl ConnectionExplanation {
    /// Goodput of a direction over time, for the time until `end_s`, of a connection that was
    /// explained with its history. Times are those since `origin`.
    #[must_use]
    pub fn goodput_curve(&self, is_upload: bool, origin: Instant, end_s: f64) -> Option<Curve> {
        Some(Curve::of(&self.track(is_upload, origin)?, end_s))
    }

    /// Time of the first segment of the capture.
    #[must_use]
    pub const fn capture_start(&self) -> Instant {
        self.capture_start_at
    }
}

impl Curve {
    fn of(track: &Track, end_s: f64) -> Self {
        let width = end_s / INTERVALS as f64;
        let edge = |index: usize| index as f64 * width;
        let rate = |index: usize| {
            let bytes = track.bytes_at(edge(index + 1)) - track.bytes_at(edge(index));
            if width > 0.0 { bytes * 8.0 / width } else { 0.0 }
        };
        Self {
            time_s: (0..INTERVALS).map(|index| edge(index) + width / 2.0).collect(),
            goodput_bit_per_s: (0..INTERVALS).map(rate).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;
    use crate::Limit;
    use crate::connection::{Checkpoint, History};

    #[test]
    fn the_goodput_of_all_intervals_is_that_of_the_data() {
        let mut history = History::default();
        history.begin(Instant::from_secs_f64(1.0), 0);
        let limits = [Duration::ZERO; Limit::ALL.len()];
        let at = Instant::from_secs_f64(3.0);
        history.add(50_000, Checkpoint { at, bytes: 0, retransmissions: 0, limits });
        let curve = Curve::of(&Track::new(&history, Instant::ZERO).unwrap(), 4.0);
        let bits: f64 = curve.goodput_bit_per_s.iter().map(|rate| rate * 4.0 / 200.0).sum();
        assert!((bits - 400_000.0).abs() < 1e-6, "{bits}");
        assert_eq!(curve.goodput_bit_per_s[0], 0.0);
        assert!((curve.goodput_bit_per_s[100] - 200_000.0).abs() < 1e-6, "{curve:?}");
    }
}
