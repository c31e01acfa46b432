//! Explicit wireless loss notification, with which paper `medx`, section 5, compares itself
//! (Shagdar, Shirazi and Zhang 2003, "EWLN"): the link layer reports the segments that it has lost.

use std::collections::VecDeque;

use super::{LossClassifier, is_covered};
use crate::link::{LossCause, UnclassifiedLosses};
use crate::tcp::event::{DelayReport, LinkEvent, LinkReport, Loss};
use crate::tcp::params::StackParams;

/// Treats losses as congestion unless a transmission error was reported.
///
/// Every segment that passes the link after a loss carries the report, so that the sender has it
/// with the first acknowledgement of a segment sent later. If no such segment arrives, the timeout
/// is congestion.
#[derive(Debug, Clone)]
pub(crate) struct ExplicitNotification {
    /// Errors that no acknowledgement has reported yet, in order of loss.
    pending: VecDeque<LinkReport>,
    reported: UnclassifiedLosses,
}

/// Maximum number of errors that wait for an acknowledgement, for connections on which none
/// arrives.
const PENDING: usize = 4096;

impl LossClassifier for ExplicitNotification {
    const NEEDS_DELAYS: bool = false;

    fn new(_params: &StackParams) -> Self {
        Self { pending: VecDeque::new(), reported: UnclassifiedLosses::default() }
    }

    fn on_delay(&mut self, report: &DelayReport) {
        let Some(answered) = report.sent_at else { return };
        let (reported, waiting): (VecDeque<_>, VecDeque<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|loss| is_covered(loss.sent_at, answered));
        for loss in reported {
            self.reported.add(loss.first, loss.len, LossCause::Error);
        }
        self.pending = waiting;
    }

    fn on_link_report(&mut self, report: &LinkReport) {
        if report.event == LinkEvent::Lost(LossCause::Error) {
            if self.pending.len() == PENDING {
                self.pending.pop_front();
            }
            self.pending.push_back(*report);
        }
    }

    fn classify(&mut self, loss: &Loss) -> Option<LossCause> {
        Some(self.reported.take(loss.una as u32).unwrap_or(LossCause::Queue))
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::samples::{answer, loss_at, lost, params};
    use super::*;

    #[test]
    fn a_report_arrives_with_the_acknowledgement_of_a_later_segment() {
        let mut explicit = ExplicitNotification::new(&params(Kind::ExplicitNotification));
        explicit.on_link_report(&lost(1, 10, LossCause::Error));
        explicit.on_delay(&answer(9, 40));
        assert_eq!(explicit.clone().classify(&loss_at(1)), Some(LossCause::Queue), "sent before");
        explicit.on_delay(&answer(11, 42));
        assert_eq!(explicit.classify(&loss_at(1)), Some(LossCause::Error));
        assert_eq!(explicit.classify(&loss_at(1)), Some(LossCause::Queue), "one report, one loss");
    }

    #[test]
    fn a_drop_by_a_queue_is_not_reported() {
        let mut explicit = ExplicitNotification::new(&params(Kind::ExplicitNotification));
        explicit.on_link_report(&lost(1, 10, LossCause::Queue));
        explicit.on_delay(&answer(11, 42));
        assert_eq!(explicit.classify(&loss_at(1)), Some(LossCause::Queue));
    }

    #[test]
    fn each_of_several_reported_losses_is_an_error() {
        let mut explicit = ExplicitNotification::new(&params(Kind::ExplicitNotification));
        for (position, sent_ms) in [(1, 10), (1_001, 11), (2_001, 12)] {
            explicit.on_link_report(&lost(position, sent_ms, LossCause::Error));
        }
        explicit.on_delay(&answer(13, 40));
        let causes = [1, 1_001, 2_001].map(|position| explicit.classify(&loss_at(position)));
        assert_eq!(causes, [Some(LossCause::Error); 3]);
    }
}
