//! Causes of losses, and how a loss-classifying congestion control classified them.
//!
//! When a sender classifies a loss, it has just detected that its first unacknowledged segment is
//! missing: the cause of the newest loss of that segment is the ground truth. A lost retransmission
//! counts separately.

use std::collections::VecDeque;

use gridhaul_scenario::answer::{Metric, Metrics};

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// Dropped by a queue, by active queue management, or by the full buffer of an aggregator.
    Queue,
    /// Lost or corrupted on the link: a transmission error.
    Error,
}

/// Lost segments of a flow whose loss has not been classified yet, in order of loss.
#[derive(Debug, Clone, Default)]
pub struct UnclassifiedLosses {
    lost: VecDeque<Lost>,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    seq: u32,
    len: u32,
    cause: LossCause,
}

/// Maximum number of remembered losses. A loss that is repaired without classification stays until
/// a later classification finds its segment acknowledged.
const REMEMBERED: usize = 4096;

/// Classifications by true cause (a confusion matrix).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfusionMatrix {
    queue: ClassificationCounts,
    error: ClassificationCounts,
    /// No segment was lost, or only acknowledgements.
    nothing: ClassificationCounts,
}

/// Numbers of losses by class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassificationCounts {
    /// Classified as congestion.
    pub congestion: u64,
    /// Classified as a transmission error.
    pub error: u64,
}

impl UnclassifiedLosses {
    /// A segment of `len` bytes that starts at sequence number `seq` is lost.
    pub fn add(&mut self, seq: u32, len: u32, cause: LossCause) {
        if self.lost.len() == REMEMBERED {
            self.lost.pop_front();
        }
        self.lost.push_back(Lost { seq, len, cause });
    }

    /// The cause of the newest loss of the segment that contains this sequence number. Removes all
    /// losses of that segment and of earlier ones.
    pub fn take(&mut self, seq: u32) -> Option<LossCause> {
        let holds = |lost: &Lost| seq.wrapping_sub(lost.seq) < lost.len;
        let newest = self.lost.iter().rev().find(|lost| holds(lost)).map(|lost| lost.cause);
        // Segments that start after this sequence number are still to be classified or repaired.
        self.lost.retain(|lost| lost.seq.wrapping_sub(seq).cast_signed() > 0);
        newest
    }
}

impl ConfusionMatrix {
    /// Adds classifications of a loss with this cause, or without any loss.
    pub fn add(&mut self, cause: Option<LossCause>, counts: ClassificationCounts) {
        let of_cause = match cause {
            Some(LossCause::Queue) => &mut self.queue,
            Some(LossCause::Error) => &mut self.error,
            None => &mut self.nothing,
        };
        of_cause.congestion += counts.congestion;
        of_cause.error += counts.error;
    }

    /// The difference to an earlier state.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            queue: self.queue.since(&earlier.queue),
            error: self.error.since(&earlier.error),
            nothing: self.nothing.since(&earlier.nothing),
        }
    }

    /// The metrics of an answer.
    pub fn metrics(&self, into: &mut Metrics) {
        let Self { queue, error, nothing } = self;
        into.extend([
            (Metric::QueueLossClassifiedCongestion, queue.congestion as f64),
            (Metric::QueueLossClassifiedError, queue.error as f64),
            (Metric::ErrorLossClassifiedCongestion, error.congestion as f64),
            (Metric::ErrorLossClassifiedError, error.error as f64),
            (Metric::NoLossClassifiedCongestion, nothing.congestion as f64),
            (Metric::NoLossClassifiedError, nothing.error as f64),
        ]);
        let share = |correct: u64, incorrect: u64| {
            (correct + incorrect > 0).then(|| correct as f64 / (correct + incorrect) as f64)
        };
        let congestion = share(queue.congestion, queue.error);
        into.extend(congestion.map(|share| (Metric::CongestionDetection, share)));
        let errors = share(error.error, error.congestion);
        into.extend(errors.map(|share| (Metric::ErrorDetection, share)));
    }
}

impl ClassificationCounts {
    const fn since(&self, earlier: &Self) -> Self {
        Self { congestion: self.congestion - earlier.congestion, error: self.error - earlier.error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_loss_of_the_missing_segment_counts() {
        let mut losses = UnclassifiedLosses::default();
        // Sequence numbers wrap between the first and the second segment.
        let first = u32::MAX - 99;
        losses.add(first, 100, LossCause::Error);
        losses.add(0, 100, LossCause::Error);
        losses.add(300, 100, LossCause::Queue);
        losses.add(0, 100, LossCause::Queue);
        // The first was repaired without classification; of the second, the retransmission is
        // missing.
        assert_eq!(losses.take(0), Some(LossCause::Queue));
        assert_eq!(losses.take(0), None, "the segment has not been lost again");
        assert_eq!(losses.take(200), None, "a segment that was not lost");
        assert_eq!(losses.take(300), Some(LossCause::Queue));
        assert!(losses.lost.is_empty());
    }

    #[test]
    fn detection_ratios_are_shares_of_the_losses_with_that_cause() {
        let mut all = ConfusionMatrix::default();
        all.add(Some(LossCause::Queue), ClassificationCounts { congestion: 3, error: 1 });
        let before = all;
        all.add(Some(LossCause::Error), ClassificationCounts { congestion: 1, error: 4 });
        all.add(None, ClassificationCounts { congestion: 0, error: 2 });
        let shares = |confusion: ConfusionMatrix| {
            let mut metrics = Metrics::new();
            confusion.metrics(&mut metrics);
            [Metric::CongestionDetection, Metric::ErrorDetection].map(|wanted| {
                metrics.iter().find(|(metric, _)| *metric == wanted).map(|(_, value)| *value)
            })
        };
        assert_eq!(shares(all), [Some(0.75), Some(0.8)]);
        assert_eq!(shares(all.since(&before)), [None, Some(0.8)]);
    }
}
