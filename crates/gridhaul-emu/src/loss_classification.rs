//! Classifications of losses by MEDX compared with the ground truth: the kernel reports the missing
//! byte, and the link emulator records the cause of the loss of its segment.

use std::collections::BTreeMap;

use gridhaul_cc::LossClassification;
use gridhaul_core::link::{ClassificationCounts, ConfusionMatrix, UnclassifiedLosses};
use gridhaul_scenario::units::Instant;

use crate::link_emulator::LostData;

/// A classification of a loss by one member of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MemberClassification {
    /// Time at which it was read: the first read after the classification.
    pub at: Instant,
    pub member: u32,
    pub classification: LossClassification,
}

/// Counts the classifications of a flow from `begin` on by ground truth. Both lists are in order of
/// time.
pub(crate) fn confusion<'a>(
    classifications: &[MemberClassification],
    lost: impl Iterator<Item = &'a LostData>,
    begin: Instant,
) -> ConfusionMatrix {
    let mut confusion = ConfusionMatrix::default();
    let mut members: BTreeMap<u32, UnclassifiedLosses> = BTreeMap::new();
    let mut lost = lost.peekable();
    for MemberClassification { at, member, classification } in classifications {
        while let Some(loss) = lost.next_if(|loss| loss.at <= *at) {
            members.entry(loss.member).or_default().add(loss.seq, loss.len, loss.cause);
        }
        let cause = members.entry(*member).or_default().take(classification.first_missing);
        if *at >= begin {
            let congestion = u64::from(classification.congestion);
            confusion.add(cause, ClassificationCounts { congestion, error: 1 - congestion });
        }
    }
    confusion
}

#[cfg(test)]
mod tests {
    use gridhaul_core::link::LossCause;
    use gridhaul_scenario::answer::{Metric, Metrics};
    use gridhaul_scenario::units::Duration;

    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn lost(at_ms: u64, member: u32, seq: u32, cause: LossCause) -> LostData {
        LostData { at: ms(at_ms), flow: 0, member, seq, len: 100, cause }
    }

    fn classification(
        at_ms: u64,
        member: u32,
        missing: u32,
        congestion: bool,
    ) -> MemberClassification {
        MemberClassification {
            at: ms(at_ms),
            member,
            classification: LossClassification { first_missing: missing, congestion },
        }
    }

    #[test]
    fn a_classification_belongs_to_the_newest_loss_before_it() {
        let losses = [
            lost(10, 0, 500, LossCause::Error),
            lost(11, 1, 500, LossCause::Queue),
            lost(30, 0, 500, LossCause::Queue),
        ];
        let classifications = [
            // the error, although that segment will be lost again
            classification(20, 0, 500, false),
            classification(21, 1, 500, false), // the other member's full queue
            classification(40, 0, 500, true),  // the second loss
            classification(50, 0, 9_000, true), // nothing of it was lost
        ];
        let counts = |begin| {
            let mut metrics = Metrics::new();
            confusion(&classifications, losses.iter(), begin).metrics(&mut metrics);
            [
                Metric::QueueLossClassifiedCongestion,
                Metric::QueueLossClassifiedError,
                Metric::ErrorLossClassifiedCongestion,
                Metric::ErrorLossClassifiedError,
                Metric::NoLossClassifiedCongestion,
                Metric::NoLossClassifiedError,
            ]
            .map(|wanted| {
                metrics.iter().find(|(metric, _)| *metric == wanted).map(|metric| metric.1)
            })
        };
        assert_eq!(counts(Instant::ZERO), [1.0, 1.0, 0.0, 1.0, 1.0, 0.0].map(Some));
        // Before `begin`, only the losses are recorded.
        assert_eq!(counts(ms(25)), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0].map(Some));
    }
}
