//! TCP-MEDX (Xiong, Yim, Leigh and Murata, "Energy-Efficient Method to Improve TCP Performance for MANETs";
//! paper `medx`): Reno that checks at every loss whether the one-way delays to the receiver indicate
//! congestion, and keeps its window if they do not.
//!
//! The receiver reports the delay of every data segment ([`OneWayDelay`]). Decisions where the paper is
//! silent or contradicts itself:
//!
//! - Criterion I compares the *current* delay with `β P̄`; figure 3 has "the weighted sum of propagation
//!   delay in the list" instead, without weights. This implementation follows the text. In a list that never
//!   falls no weighted mean exceeds its newest delay, so the text classifies the most losses as congestion.
//! - `P̄` includes the current delay: the sender saves it and "at the same time" updates the average.
//! - The average begins with the first delay; the list holds four (`medx_buffer`): the three duplicates that
//!   indicate a loss, and one delay before them.
//! - A timeout is also classified. The back-off of the timer is unchanged (RFC 6298, 5.5).
//! - A loss is not classified without new delays: as long as the list is not full, and when a timeout follows
//!   without any delay since the last classification (a retransmission was lost, or the path is down). The
//!   response is then that of RFC 5681.
//!
//! [`OneWayDelay`]: crate::tcp::OneWayDelay

use std::collections::VecDeque;

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, EstimatorCounters, Loss, LossClassifications, Window};
use crate::tcp::params::StackParams;

/// MEDX.
#[derive(Debug, Clone)]
pub struct Medx {
    window: Window,
    alpha: f64,
    beta: f64,
    /// `P̄` in microseconds.
    average: f64,
    /// The propagation buffer: the newest delays in microseconds, oldest first.
    delays: VecDeque<u32>,
    list_len: usize,
    /// A delay was reported since the last classification.
    has_new_delay: bool,
    updates: u32,
    loss_classifications: LossClassifications,
}

/// Inferred cause of a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LossCause {
    Congestion,
    Error,
}

impl CongestionControl for Medx {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::NewReno;

    fn new(params: &StackParams) -> Self {
        let (alpha, beta, list_len) = params.medx;
        let list_len = list_len as usize;
        Self {
            window: Window::new(params),
            alpha,
            beta,
            average: 0.0,
            delays: VecDeque::with_capacity(list_len),
            list_len,
            has_new_delay: false,
            updates: 0,
            loss_classifications: LossClassifications::default(),
        }
    }
    own_window!();

    /// Figure 3, lines 1 and 2, and equation 1: `P̄ = α P̄ + (1 - α) P_new`.
    fn on_one_way_delay(&mut self, us: u32) {
        let newest = f64::from(us);
        self.average = if self.updates == 0 {
            newest
        } else {
            self.alpha * self.average + (1.0 - self.alpha) * newest
        };
        if self.delays.len() == self.list_len {
            self.delays.pop_front();
        }
        self.delays.push_back(us);
        self.has_new_delay = true;
        self.updates += 1;
    }

    /// Section 2: "If congestion did occur, it halves its congestion window. Otherwise, TCP-MEDX
    /// assumes that the packet loss is caused by a transmission error and does not change" it.
    fn on_loss(&mut self, loss: &Loss) {
        if self.classify_loss() == LossCause::Congestion {
            self.window.halve(loss);
        }
    }

    fn on_timeout(&mut self, loss: &Loss) {
        if self.classify_loss() == LossCause::Congestion {
            self.window.collapse(loss);
        }
    }

    /// Updates: equation 1 with every acknowledgement. Evaluations: the criteria with every classification.
    fn estimator_counters(&self) -> Option<EstimatorCounters> {
        let LossClassifications { congestion, error } = self.loss_classifications;
        let evaluations = congestion + error;
        Some(EstimatorCounters {
            updates: Some(self.updates),
            evaluations,
            loss_classifications: Some(self.loss_classifications),
        })
    }
}

impl Medx {
    /// Figure 3, `predict_loss_cause`.
    fn classify_loss(&mut self) -> LossCause {
        if !std::mem::take(&mut self.has_new_delay) || self.delays.len() < self.list_len {
            return LossCause::Congestion;
        }
        if self.exceeds_average() && self.never_falls() {
            self.loss_classifications.congestion += 1;
            LossCause::Congestion
        } else {
            self.loss_classifications.error += 1;
            LossCause::Error
        }
    }

    /// Criterion I: the current delay exceeds `β P̄`.
    fn exceeds_average(&self) -> bool {
        let current = self.delays.back().copied().unwrap_or(0);
        f64::from(current) > self.beta * self.average
    }

    /// Criterion II: no delay in the list is below the one before it.
    fn never_falls(&self) -> bool {
        self.delays.iter().is_sorted()
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Profile, Stack};
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;

    const MSS: u32 = 1000;

    fn medx() -> Medx {
        let stack = Stack {
            profile: Profile::Rfc,
            congestion_control: Some(CongestionControlAlgorithm::Medx),
            ..Stack::default()
        };
        let params =
            StackParams { mss: MSS, initial_window: 20 * MSS, ..StackParams::resolve(&stack) };
        Medx::new(&params)
    }

    fn after(delays_ms: &[u32]) -> Medx {
        let mut medx = medx();
        delays_ms.iter().for_each(|ms| medx.on_one_way_delay(ms * 1000));
        medx
    }

    fn loss() -> Loss {
        samples::loss(MSS, 20)
    }

    /// The window in segments after these delays and a loss.
    fn left_after(delays_ms: &[u32]) -> u32 {
        let mut medx = after(delays_ms);
        medx.on_loss(&loss());
        medx.window.cwnd() / MSS
    }

    #[test]
    fn the_average_is_equation_1() {
        // 0.5 * (0.5 * (0.5 * 10 + 0.5 * 20) + 0.5 * 30) + 0.5 * 40 = 31.25 ms.
        assert_eq!(after(&[10, 20, 30, 40]).average, 31_250.0);
    }

    #[test]
    fn alpha_is_the_weight_of_the_previous_average() {
        let mut medx = medx();
        medx.alpha = 0.25;
        [10_000, 30_000].into_iter().for_each(|us| medx.on_one_way_delay(us));
        // 0.25 * 10 + 0.75 * 30 ms.
        assert_eq!(medx.average, 25_000.0);
    }

    #[test]
    fn a_delay_of_exactly_beta_averages_does_not_indicate_congestion() {
        let mut medx = after(&[10, 10, 10, 12]);
        // Section 2: congestion where the delay is greater than beta times the average.
        (medx.beta, medx.average) = (1.5, 8_000.0);
        assert!(!medx.exceeds_average());
        medx.average = 7_999.0;
        assert!(medx.exceeds_average());
    }

    #[test]
    fn both_criteria_together_mean_congestion() {
        // 40 > 1.2 * 31.25 = 37.5, and rising.
        assert_eq!(left_after(&[10, 20, 30, 40]), 10);
        // 33 > 1.2 * (0.5 * 22.5 + 0.5 * 33) = 33.3 fails: rising, but below the threshold.
        assert_eq!(left_after(&[10, 20, 30, 33]), 20);
        // Far above the threshold, but the delay fell once among the last four.
        assert_eq!(left_after(&[10, 9, 30, 90]), 20);
        // Equal delays do not break a rise, and a fall before the last four is forgotten.
        assert_eq!(left_after(&[90, 10, 10, 30, 90]), 10);
    }

    #[test]
    fn a_long_queue_that_grows_steadily_is_classified_as_an_error() {
        // Each segment is delayed by one more service time of 1 ms. The average lags by one step, so P >
        // 1.2 (P - 1 ms) needs P < 6 ms, for any queue length.
        let from = |first: u32| (first..first + 12).collect::<Vec<_>>();
        assert_eq!(left_after(&from(20)), 20, "20 to 31 ms");
        assert_eq!(left_after(&[1, 2, 3, 4]), 10, "a queue that has just begun to grow");
    }

    #[test]
    fn an_offset_of_the_clocks_hides_congestion() {
        let ahead = |offset: u32| [10, 20, 30, 40].map(|ms| ms + offset);
        assert_eq!(left_after(&ahead(0)), 10);
        // 46 > 1.2 * 37.25 = 44.7, and 54 > 1.2 * 45.25 = 54.3 no more.
        assert_eq!((left_after(&ahead(6)), left_after(&ahead(14))), (10, 20));
    }

    #[test]
    fn without_new_delays_a_loss_has_the_response_of_reno() {
        assert_eq!(left_after(&[]), 10, "no delay reported");
        assert_eq!(left_after(&[30, 20, 10]), 10, "three of four");
        let mut medx = after(&[40, 30, 20, 10]);
        medx.on_timeout(&loss());
        assert_eq!(medx.window.cwnd(), 20 * MSS, "an error: the window stays");
        medx.on_timeout(&loss());
        assert_eq!(medx.window.cwnd(), MSS, "another timeout without a new delay");
        medx.on_one_way_delay(5_000);
        medx.window.set_cwnd(f64::from(20 * MSS));
        medx.on_timeout(&loss());
        assert_eq!(medx.window.cwnd(), 20 * MSS);
        let loss_classifications = Some(LossClassifications { congestion: 0, error: 2 });
        assert_eq!(
            medx.estimator_counters(),
            Some(EstimatorCounters { updates: Some(5), evaluations: 2, loss_classifications })
        );
    }

    proptest! {
        /// The scale does not matter, and a list that falls anywhere is classified as an error.
        #[test]
        fn only_ratios_and_order_matter(delays in prop::collection::vec(1_u32..10_000, 4..40), by in 2_u32..50) {
            let left = left_after(&delays);
            let scaled: Vec<u32> = delays.iter().map(|delay| delay * by).collect();
            prop_assert_eq!(left, left_after(&scaled));
            if !delays[delays.len() - 4..].is_sorted() {
                prop_assert_eq!(left, 20);
            }
        }
    }
}
