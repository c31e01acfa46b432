//! The criteria of TCP-MEDX (Xiong, Yim, Leigh and Murata, "Energy-Efficient Method to Improve TCP
//! Performance for MANETs"; paper `medx`, section 2 and figure 3).
//!
//! Decisions where the paper is silent or contradicts itself:
//!
//! - Criterion I compares the *current* delay with `β P̄`; figure 3 has "the weighted sum of
//!   propagation delay in the list" instead, without weights. This implementation follows the text.
//!   In a list that never falls no weighted mean exceeds its newest delay, so the text classifies
//!   the most losses as congestion.
//! - `P̄` includes the current delay: the sender saves it and "at the same time" updates the
//!   average.
//! - The average begins with the first delay; the list holds four (`medx_buffer`): the three
//!   duplicates that indicate a loss, and one delay before them. A loss is not classified before
//!   the list is full.
//! - `α` is the weight of the previous average, as in equation 1. The text wants a *higher* `α`
//!   where the delay changes fast, so that it "immediately reflects" the newest delay; in equation
//!   1 a higher `α` does the opposite. The equation is followed.

use std::collections::VecDeque;

use super::LossClassifier;
use crate::link::LossCause;
use crate::tcp::event::{DelayReport, Loss};
use crate::tcp::params::StackParams;

/// MEDX on one-way delays.
#[derive(Debug, Clone)]
pub(crate) struct OneWayDelay {
    criteria: Criteria,
}

impl LossClassifier for OneWayDelay {
    fn new(params: &StackParams) -> Self {
        Self { criteria: Criteria::new(params) }
    }

    fn on_delay(&mut self, report: &DelayReport) {
        self.criteria.add(report.one_way_us);
    }

    fn classify(&mut self, _loss: &Loss) -> Option<LossCause> {
        self.criteria.classify()
    }
}

/// The average and the list of delays, and both criteria on them.
#[derive(Debug, Clone)]
pub(super) struct Criteria {
    alpha: f64,
    beta: f64,
    /// `P̄` in microseconds.
    average: Option<f64>,
    /// The propagation buffer: the newest delays in microseconds, oldest first.
    delays: VecDeque<u32>,
    list_len: usize,
}

impl Criteria {
    pub(super) fn new(params: &StackParams) -> Self {
        let list_len = params.medx.buffer as usize;
        Self {
            alpha: params.medx.alpha,
            beta: params.medx.beta,
            average: None,
            delays: VecDeque::with_capacity(list_len),
            list_len,
        }
    }

    /// Figure 3, lines 1 and 2, and equation 1: `P̄ = α P̄ + (1 - α) P_new`.
    pub(super) fn add(&mut self, us: u32) {
        let newest = f64::from(us);
        let average = self.average.unwrap_or(newest);
        self.average = Some(self.alpha * average + (1.0 - self.alpha) * newest);
        if self.delays.len() == self.list_len {
            self.delays.pop_front();
        }
        self.delays.push_back(us);
    }

    /// Figure 3, `predict_loss_cause`.
    pub(super) fn classify(&self) -> Option<LossCause> {
        if self.delays.len() < self.list_len {
            return None;
        }
        let congestion = self.exceeds_average() && self.never_falls();
        Some(if congestion { LossCause::Queue } else { LossCause::Error })
    }

    /// Criterion I: the current delay exceeds `β P̄`.
    fn exceeds_average(&self) -> bool {
        let current = self.delays.back().copied().unwrap_or(0);
        f64::from(current) > self.beta * self.average.unwrap_or(0.0)
    }

    /// Criterion II: no delay in the list is below the one before it.
    fn never_falls(&self) -> bool {
        self.delays.iter().is_sorted()
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::samples;
    use super::*;

    fn after(delays_ms: &[u32]) -> Criteria {
        let mut criteria = Criteria::new(&samples::params(Kind::OneWayDelay));
        delays_ms.iter().for_each(|ms| criteria.add(ms * 1000));
        criteria
    }

    #[test]
    fn the_average_is_equation_1() {
        // 0.5 * (0.5 * (0.5 * 10 + 0.5 * 20) + 0.5 * 30) + 0.5 * 40 = 31.25 ms.
        assert_eq!(after(&[10, 20, 30, 40]).average, Some(31_250.0));
    }

    #[test]
    fn alpha_is_the_weight_of_the_previous_average() {
        let mut criteria = after(&[]);
        criteria.alpha = 0.25;
        [10_000, 30_000].into_iter().for_each(|us| criteria.add(us));
        // 0.25 * 10 + 0.75 * 30 ms.
        assert_eq!(criteria.average, Some(25_000.0));
    }

    #[test]
    fn a_higher_alpha_follows_a_change_of_the_delay_more_slowly() {
        // Section 2 claims the opposite: the average two delays after a route change from 10 to 50
        // ms.
        let average = |alpha| {
            let mut criteria = after(&[]);
            criteria.alpha = alpha;
            [10_000, 10_000, 50_000, 50_000].into_iter().for_each(|us| criteria.add(us));
            criteria.average.unwrap_or(0.0)
        };
        // 50 - 40 * 0.2^2 and 50 - 40 * 0.8^2 ms.
        assert!((average(0.2) - 48_400.0).abs() < 0.1, "{}", average(0.2));
        assert!((average(0.8) - 24_400.0).abs() < 0.1, "{}", average(0.8));
    }

    #[test]
    fn a_delay_of_exactly_beta_averages_does_not_indicate_congestion() {
        let mut criteria = after(&[10, 10, 10, 12]);
        // Section 2: congestion where the delay is greater than beta times the average.
        (criteria.beta, criteria.average) = (1.5, Some(8_000.0));
        assert!(!criteria.exceeds_average());
        criteria.average = Some(7_999.0);
        assert!(criteria.exceeds_average());
    }
}
