//! What MEDX said of losses beside their true cause: the kernel tells which byte was missing, and the
//! wire knows why the segment that held it was lost.

use std::collections::BTreeMap;

use gridhaul_cc::LossClassification;
use gridhaul_core::link::{ClassificationCounts, ConfusionMatrix, UnclassifiedLosses};
use gridhaul_scenario::units::Instant;

use crate::wire::LostData;

/// What one member of a flow said of a loss.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judgement {
    /// When it was known: at the next look behind it.
    pub at: Instant,
    pub member: u32,
    pub judged: LossClassification,
}

/// The judgements of a flow from `begin` on by their cause. Both lists are in the order of time.
pub(crate) fn confusion<'a>(
    judgements: &[Judgement],
    lost: impl Iterator<Item = &'a LostData>,
    begin: Instant,
) -> ConfusionMatrix {
    let mut confusion = ConfusionMatrix::default();
    let mut members: BTreeMap<u32, UnclassifiedLosses> = BTreeMap::new();
    let mut lost = lost.peekable();
    for Judgement { at, member, judged } in judgements {
        while let Some(loss) = lost.next_if(|loss| loss.at <= *at) {
            members.entry(loss.member).or_default().add(loss.seq, loss.len, loss.cause);
        }
        let cause = members.entry(*member).or_default().take(judged.first_missing);
        if *at >= begin {
            let congestion = u64::from(judged.congestion);
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

    fn said(at_ms: u64, member: u32, missing: u32, congestion: bool) -> Judgement {
        Judgement {
            at: ms(at_ms),
            member,
            judged: LossClassification { first_missing: missing, congestion },
        }
    }

    #[test]
    fn a_judgement_is_put_beside_the_newest_loss_before_it() {
        let losses = [
            lost(10, 0, 500, LossCause::Error),
            lost(11, 1, 500, LossCause::Queue),
            lost(30, 0, 500, LossCause::Queue),
        ];
        let judgements = [
            said(20, 0, 500, false), // the error, although that segment will be lost once more
            said(21, 1, 500, false), // the other member's full queue
            said(40, 0, 500, true),  // the second loss
            said(50, 0, 9_000, true), // nothing of it was lost
        ];
        let counts = |begin| {
            let mut metrics = Metrics::new();
            confusion(&judgements, losses.iter(), begin).metrics(&mut metrics);
            [
                Metric::QueueLossClassifiedCongestion,
                Metric::QueueLossClassifiedError,
                Metric::ErrorLossClassifiedCongestion,
                Metric::ErrorLossClassifiedError,
                Metric::NoLossClassifiedCongestion,
                Metric::NoLossClassifiedError,
            ]
            .map(|wanted| metrics.iter().find(|(metric, _)| *metric == wanted).map(|it| it.1))
        };
        assert_eq!(counts(Instant::ZERO), [1.0, 1.0, 0.0, 1.0, 1.0, 0.0].map(Some));
        // Of the time before, only the losses count.
        assert_eq!(counts(ms(25)), [1.0, 0.0, 0.0, 0.0, 1.0, 0.0].map(Some));
    }
}
