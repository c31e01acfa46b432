//! The criteria of MEDX on half of the round-trip time, which paper `medx`, section 2, rejects: on
//! an asymmetric path it is not the one-way delay.

use super::LossClassifier;
use super::one_way_delay::Criteria;
use crate::link::LossCause;
use crate::tcp::event::{DelayReport, Loss};
use crate::tcp::params::StackParams;

/// MEDX on half of the round-trip time of each segment that an acknowledgement answers.
#[derive(Debug, Clone)]
pub(crate) struct HalfRtt {
    criteria: Criteria,
}

impl LossClassifier for HalfRtt {
    fn new(params: &StackParams) -> Self {
        Self { criteria: Criteria::new(params) }
    }

    fn on_delay(&mut self, report: &DelayReport) {
        if let Some(round_trip) = report.round_trip_us() {
            self.criteria.add(round_trip / 2);
        }
    }

    fn classify(&mut self, _loss: &Loss) -> Option<LossCause> {
        self.criteria.classify()
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::LossClassifier as Kind;

    use super::super::one_way_delay::OneWayDelay;
    use super::super::samples::{loss_at, ms, params};
    use super::*;

    /// Both classifications after segments with these delays on the forward and the reverse path.
    fn both(delays_ms: [(u64, u64); 4]) -> [Option<LossCause>; 2] {
        let mut one_way = OneWayDelay::new(&params(Kind::OneWayDelay));
        let mut half = HalfRtt::new(&params(Kind::HalfRtt));
        for (index, (forward, reverse)) in (0..).zip(delays_ms) {
            let sent = 1000 * index;
            let report = DelayReport {
                now: ms(sent + forward + reverse),
                one_way_us: (forward * 1000) as u32,
                sent_at: Some(ms(sent)),
            };
            one_way.on_delay(&report);
            half.on_delay(&report);
        }
        [one_way.classify(&loss_at(1)), half.classify(&loss_at(1))]
    }

    #[test]
    fn both_agree_on_a_symmetric_path() {
        let congested = [(10, 10), (20, 20), (30, 30), (40, 40)];
        assert_eq!(both(congested), [Some(LossCause::Queue); 2]);
        assert_eq!(both([(10, 10); 4]), [Some(LossCause::Error); 2]);
    }

    #[test]
    fn the_reverse_path_changes_only_half_of_the_round_trip() {
        // The queue of the reverse path grows: no congestion of the data.
        let reverse = [(10, 10), (10, 40), (10, 70), (10, 100)];
        assert_eq!(both(reverse), [Some(LossCause::Error), Some(LossCause::Queue)]);
        // The queue of the forward path grows, and a long reverse path hides its growth.
        let hidden = [(10, 400), (20, 400), (30, 400), (40, 400)];
        assert_eq!(both(hidden), [Some(LossCause::Queue), Some(LossCause::Error)]);
    }
}
