//! A judge on the correlation of losses with round-trip times, the end-to-end method with which
//! paper `medx`, section 5, compares itself (Barman and Matta, ICNP 2002: a loss at a large
//! round-trip time is congestion).
//!
//! The threshold is the mean of all round-trip times of the connection plus their standard
//! deviation. Mean and deviation have no parameter, so that none can be fitted.

use super::LossClassifier;
use crate::link::LossCause;
use crate::tcp::event::{DelayReport, Loss};
use crate::tcp::params::StackParams;

/// Compares the newest round-trip time with those of the connection.
#[derive(Debug, Clone)]
pub(crate) struct RttCorrelation {
    newest_us: f64,
    samples: u32,
    mean_us: f64,
    /// Sum of the squared differences from the mean.
    squares: f64,
}

impl LossClassifier for RttCorrelation {
    fn new(_params: &StackParams) -> Self {
        Self { newest_us: 0.0, samples: 0, mean_us: 0.0, squares: 0.0 }
    }

    /// Welford's recurrence for mean and variance (Knuth, "The Art of Computer Programming", volume
    /// 2, section 4.2.2).
    fn on_delay(&mut self, report: &DelayReport) {
        let Some(round_trip) = report.round_trip_us() else { return };
        self.newest_us = f64::from(round_trip);
        self.samples += 1;
        let before = self.newest_us - self.mean_us;
        self.mean_us += before / f64::from(self.samples);
        self.squares += before * (self.newest_us - self.mean_us);
    }

    fn classify(&mut self, _loss: &Loss) -> Option<LossCause> {
        if self.samples < 2 {
            return None;
        }
        let deviation = (self.squares / f64::from(self.samples - 1)).sqrt();
        let is_large = self.newest_us > self.mean_us + deviation;
        Some(if is_large { LossCause::Queue } else { LossCause::Error })
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::samples::{answer, loss_at, params};
    use super::*;

    fn after(round_trips_ms: &[u64]) -> Option<LossCause> {
        let mut judge = RttCorrelation::new(&params(Kind::RttCorrelation));
        round_trips_ms.iter().for_each(|ms| judge.on_delay(&answer(0, *ms)));
        judge.classify(&loss_at(1))
    }

    #[test]
    fn a_loss_above_mean_and_deviation_is_congestion() {
        // Mean 40 ms, deviation sqrt(1000 / 4) = 15.8 ms.
        assert_eq!(after(&[20, 30, 40, 50, 60]), Some(LossCause::Queue));
        // Mean and deviation are the same, the newest is 50 ms.
        assert_eq!(after(&[20, 30, 40, 60, 50]), Some(LossCause::Error));
        // Mean 40 ms, deviation of a sample of two: sqrt(450 / 1) = 21.2 ms.
        assert_eq!(after(&[25, 55]), Some(LossCause::Error));
        assert_eq!(after(&[20; 5]), Some(LossCause::Error), "no variation");
        assert_eq!(after(&[20]), None);
    }
}
