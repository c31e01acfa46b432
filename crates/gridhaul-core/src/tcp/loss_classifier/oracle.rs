//! Control: the true cause of every loss, the upper bound of any classifier.

use super::LossClassifier;
use crate::link::{LossCause, UnclassifiedLosses};
use crate::tcp::event::{LinkEvent, LinkReport, Loss};
use crate::tcp::params::StackParams;

/// Has the cause of each loss at the time at which it is detected.
#[derive(Debug, Clone)]
pub(crate) struct Oracle {
    losses: UnclassifiedLosses,
}

impl LossClassifier for Oracle {
    const NEEDS_DELAYS: bool = false;

    fn new(_params: &StackParams) -> Self {
        Self { losses: UnclassifiedLosses::default() }
    }

    fn on_link_report(&mut self, report: &LinkReport) {
        if let LinkEvent::Lost(cause) = report.event {
            self.losses.add(report.first, report.len, cause);
        }
    }

    /// If nothing was lost, as at a spurious timeout, there is no congestion either.
    fn classify(&mut self, loss: &Loss) -> Option<LossCause> {
        Some(self.losses.take(loss.una as u32).unwrap_or(LossCause::Error))
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::samples::{loss_at, lost, params};
    use super::*;

    #[test]
    fn the_cause_is_that_of_the_missing_segment() {
        let mut oracle = Oracle::new(&params(Kind::Oracle));
        oracle.on_link_report(&lost(1, 0, LossCause::Error));
        oracle.on_link_report(&lost(5_001, 0, LossCause::Queue));
        assert_eq!(oracle.classify(&loss_at(1)), Some(LossCause::Error));
        assert_eq!(oracle.classify(&loss_at(5_001)), Some(LossCause::Queue));
        assert_eq!(oracle.classify(&loss_at(9_001)), Some(LossCause::Error), "nothing was lost");
    }
}
