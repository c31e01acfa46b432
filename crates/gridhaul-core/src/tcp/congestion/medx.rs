//! TCP-MEDX (Xiong, Yim, Leigh and Murata, "Energy-Efficient Method to Improve TCP Performance for
//! MANETs"; paper `medx`): Reno that checks at every loss whether the one-way delays to the
//! receiver indicate congestion, and keeps its window if they do not.
//!
//! The receiver reports the delay of every data segment ([`OneWayDelay`]). A classifier
//! (`tcp/loss_classifier/`) decides on the cause of a loss: that of the paper, or
//! a control. Decisions where the paper is silent:
//!
//! - A timeout is also classified. The back-off of the timer is unchanged (RFC 6298, 5.5).
//! - A loss is not classified without new delays: as long as the list is not full, and when a
//!   timeout follows without any delay since the last classification (a retransmission was lost, or
//!   the path is down). The response is then that of RFC 5681.
//!
//! [`OneWayDelay`]: crate::tcp::OneWayDelay

use gridhaul_scenario::scenario::Recovery;

use super::{CongestionControl, EstimatorCounters, LossClassifications, Window};
use crate::link::LossCause;
use crate::tcp::event::{Ack, DelayReport, LinkReport, Loss};
use crate::tcp::loss_classifier::Classifier;
use crate::tcp::params::StackParams;

/// MEDX.
#[derive(Debug, Clone)]
pub struct Medx {
    window: Window,
    classifier: Classifier,
    /// A delay was reported since the last classification.
    has_new_delay: bool,
    updates: u32,
    loss_classifications: LossClassifications,
}

impl CongestionControl for Medx {
    type Storage = Box<Self>;
    const RECOVERY: Recovery = Recovery::NewReno;

    fn new(params: &StackParams) -> Self {
        Self {
            window: Window::new(params),
            classifier: Classifier::new(params),
            has_new_delay: false,
            updates: 0,
            loss_classifications: LossClassifications::default(),
        }
    }
    own_window!();

    fn on_delay_report(&mut self, report: &DelayReport) {
        self.classifier.on_delay(report);
        self.has_new_delay = true;
        self.updates += 1;
    }

    fn on_link_report(&mut self, report: &LinkReport) {
        self.classifier.on_link_report(report);
    }

    /// RFC 3168, section 6.1.2: the response to a congestion mark is that to a loss.
    fn on_delivered(&mut self, ack: &Ack) {
        if self.classifier.takes_mark(ack.una, ack.next) && !ack.in_recovery {
            let flight = u32::try_from(ack.prior_in_flight).unwrap_or(u32::MAX);
            self.window.halve_flight(flight);
        }
    }

    /// Section 2: "If congestion did occur, it halves its congestion window. Otherwise, TCP-MEDX
    /// assumes that the packet loss is caused by a transmission error and does not change" it.
    fn on_loss(&mut self, loss: &Loss) {
        if self.is_reduced_by(loss) {
            self.window.halve(loss);
        }
    }

    fn on_timeout(&mut self, loss: &Loss) {
        if self.is_reduced_by(loss) {
            self.window.collapse(loss);
        }
    }

    /// Updates: equation 1 with every acknowledgement. Evaluations: the criteria with every
    /// classification.
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
    /// Classifies a loss, and returns whether it reduces the window.
    fn is_reduced_by(&mut self, loss: &Loss) -> bool {
        let has_new_delay = std::mem::take(&mut self.has_new_delay);
        if self.classifier.needs_delays() && !has_new_delay {
            return true;
        }
        match self.classifier.classify(loss) {
            Some(LossCause::Queue) => {
                self.loss_classifications.congestion += 1;
                self.classifier.reduces(loss)
            }
            Some(LossCause::Error) => {
                self.loss_classifications.error += 1;
                false
            }
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, LossClassifier, Stack};
    use gridhaul_scenario::units::Instant;
    use proptest::prelude::*;

    use super::super::samples;
    use super::*;
    use crate::tcp::event::LinkEvent;

    const MSS: u32 = 1000;

    fn medx(classifier: LossClassifier) -> Medx {
        let stack = Stack {
            medx_classifier: Some(classifier),
            ..samples::stack(CongestionControlAlgorithm::Medx)
        };
        let params =
            StackParams { mss: MSS, initial_window: 20 * MSS, ..StackParams::resolve(&stack) };
        Medx::new(&params)
    }

    fn report(ms: u32) -> DelayReport {
        DelayReport { now: Instant::ZERO, one_way_us: ms * 1000, sent_at: None }
    }

    fn after(delays_ms: &[u32]) -> Medx {
        let mut medx = medx(LossClassifier::OneWayDelay);
        delays_ms.iter().for_each(|ms| medx.on_delay_report(&report(*ms)));
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
    fn controls_without_information_always_respond_alike() {
        for (classifier, left) in
            [(LossClassifier::AlwaysError, 20), (LossClassifier::AlwaysCongestion, 10)]
        {
            // Delays that the paper classifies as congestion, and as an error.
            for delays in [[10, 20, 30, 40], [40, 30, 20, 10]] {
                let mut medx = medx(classifier);
                delays.iter().for_each(|ms| medx.on_delay_report(&report(*ms)));
                medx.on_loss(&loss());
                assert_eq!(medx.window.cwnd() / MSS, left, "{classifier:?}, {delays:?}");
            }
        }
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
        // Each segment is delayed by one more service time of 1 ms. The average lags by one step,
        // so P > 1.2 (P - 1 ms) needs P < 6 ms, for any queue length.
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
        medx.on_delay_report(&report(5));
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
        fn only_ratios_and_order_matter(delays in prop::collection::vec(1_u32..10_000, 4..40),
            by in 2_u32..50) {
            let left = left_after(&delays);
            let scaled: Vec<u32> = delays.iter().map(|delay| delay * by).collect();
            prop_assert_eq!(left, left_after(&scaled));
            if !delays[delays.len() - 4..].is_sorted() {
                prop_assert_eq!(left, 20);
            }
        }
    }

    /// RFC 3168, section 6.1.2: the reaction to a mark is that to a loss, but not in a recovery.
    #[test]
    fn a_congestion_mark_halves_the_window() {
        let after_mark = |in_recovery| {
            let mut medx = medx(LossClassifier::Ecn);
            let (sent_at, event) = (Instant::from_nanos(1_000_000), LinkEvent::Marked);
            medx.on_link_report(&LinkReport { first: 1, len: MSS, sent_at, event });
            medx.on_delay_report(&DelayReport { sent_at: Some(sent_at), ..report(10) });
            let (prior_in_flight, next) = (u64::from(20 * MSS), 30_000);
            let ack = Ack { in_recovery, prior_in_flight, next, una: 1_001, ..samples::ack(MSS) };
            medx.on_delivered(&ack);
            medx.window.cwnd() / MSS
        };
        assert_eq!([after_mark(false), after_mark(true)], [10, 20]);
    }
}
