//! Explicit congestion notification (RFC 3168), with which paper `medx`, section 5, compares itself
//! (Chawla and Nandi 2002, "FECN"): routers mark segments when their queue grows, so that a loss
//! without marks is a transmission error.

use gridhaul_scenario::units::Instant;

use super::{LossClassifier, is_covered};
use crate::link::LossCause;
use crate::tcp::event::{DelayReport, LinkEvent, LinkReport, Loss};
use crate::tcp::params::StackParams;

/// Reacts to marks, and to losses in a round trip with marks.
#[derive(Debug, Clone)]
pub(crate) struct Ecn {
    /// Send time of the newest marked segment that no acknowledgement has reported yet.
    marked: Option<Instant>,
    /// The receiver has echoed a mark, to which the sender has not responded yet.
    echoed: bool,
    /// The window was reduced for data before this position: RFC 3168, section 6.1.2, permits one
    /// reaction per window of data.
    reduced_until: u64,
}

impl LossClassifier for Ecn {
    const NEEDS_DELAYS: bool = false;

    fn new(_params: &StackParams) -> Self {
        Self { marked: None, echoed: false, reduced_until: 0 }
    }

    fn on_delay(&mut self, report: &DelayReport) {
        if let (Some(marked), Some(answered)) = (self.marked, report.sent_at)
            && is_covered(marked, answered)
        {
            self.marked = None;
            self.echoed = true;
        }
    }

    /// Of several marked segments in flight the oldest is echoed first; the others belong to the
    /// same window.
    fn on_link_report(&mut self, report: &LinkReport) {
        if report.event == LinkEvent::Marked && self.marked.is_none() {
            self.marked = Some(report.sent_at);
        }
    }

    fn classify(&mut self, loss: &Loss) -> Option<LossCause> {
        let congested = self.echoed || loss.una < self.reduced_until;
        Some(if congested { LossCause::Queue } else { LossCause::Error })
    }

    fn reduces(&self, loss: &Loss) -> bool {
        loss.una >= self.reduced_until
    }

    fn takes_mark(&mut self, una: u64, next: u64) -> bool {
        let reduces = std::mem::take(&mut self.echoed) && una >= self.reduced_until;
        if reduces {
            self.reduced_until = next;
        }
        reduces
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::samples::{LEN, answer, loss_at, ms, params};
    use super::*;

    fn marked(sent_ms: u64) -> LinkReport {
        LinkReport { first: 1, len: LEN, sent_at: ms(sent_ms), event: LinkEvent::Marked }
    }

    #[test]
    fn a_window_is_reduced_once_for_its_marks() {
        let mut ecn = Ecn::new(&params(Kind::Ecn));
        assert!(!ecn.takes_mark(1, 20_001));
        ecn.on_link_report(&marked(10));
        ecn.on_delay(&answer(9, 30));
        assert!(!ecn.takes_mark(1, 20_001), "the mark has not been echoed yet");
        ecn.on_delay(&answer(10, 31));
        assert!(ecn.takes_mark(1, 20_001));
        ecn.on_link_report(&marked(12));
        ecn.on_delay(&answer(12, 33));
        assert!(!ecn.takes_mark(5_001, 25_001), "the same window of data");
        ecn.on_link_report(&marked(40));
        ecn.on_delay(&answer(40, 61));
        assert!(ecn.takes_mark(20_001, 40_001));
    }

    #[test]
    fn a_loss_is_congestion_in_a_window_with_marks() {
        let mut ecn = Ecn::new(&params(Kind::Ecn));
        assert_eq!(ecn.classify(&loss_at(1)), Some(LossCause::Error));
        ecn.on_link_report(&marked(10));
        ecn.on_delay(&answer(10, 31));
        assert!(ecn.takes_mark(1, 20_001));
        assert_eq!(ecn.classify(&loss_at(10_001)), Some(LossCause::Queue));
        assert!(!ecn.reduces(&loss_at(10_001)), "the mark has reduced the window already");
        assert_eq!(ecn.classify(&loss_at(20_001)), Some(LossCause::Error));
        assert!(ecn.reduces(&loss_at(20_001)), "the next window of data");
    }
}
