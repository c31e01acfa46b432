//! Why data was really lost, and what a congestion control that tells causes apart called the loss.
//!
//! When a sender judges, it has just found its first unacknowledged segment missing: the newest loss
//! of that segment is the truth. A repeated segment that is lost again counts for itself.

use std::collections::VecDeque;

use gridhaul_scenario::answer::{Metric, Metrics};

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossCause {
    /// A queue or a collector's buffer was full, or active queue management dropped it.
    Queue,
    /// It was lost or damaged on the way.
    Error,
}

/// Lost data of a flow that was not judged yet, in the order in which it was lost.
#[derive(Debug, Default)]
pub struct UnclassifiedLosses {
    lost: VecDeque<Lost>,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    seq: u32,
    len: u32,
    cause: LossCause,
}

/// Most losses that are remembered: what recoveries repair without asking stays, until an
/// acknowledgement has passed it and the sender judges again.
const REMEMBERED: usize = 4096;

/// Judgements by the true cause: what was called congestion, and what was called an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConfusionMatrix {
    queue: ClassificationCounts,
    error: ClassificationCounts,
    /// Nothing was lost, or only acknowledgements.
    nothing: ClassificationCounts,
}

/// How often losses were called one and the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassificationCounts {
    /// Congestion.
    pub congestion: u64,
    /// A transmission error.
    pub error: u64,
}

impl UnclassifiedLosses {
    /// A segment is lost that begins with the number `seq` and has `len` bytes.
    pub fn add(&mut self, seq: u32, len: u32, cause: LossCause) {
        if self.lost.len() == REMEMBERED {
            self.lost.pop_front();
        }
        self.lost.push_back(Lost { seq, len, cause });
    }

    /// The cause of the newest loss of the segment that holds this number. Its other losses, and what
    /// lies before it, are forgotten.
    pub fn take(&mut self, seq: u32) -> Option<LossCause> {
        let holds = |lost: &Lost| seq.wrapping_sub(lost.seq) < lost.len;
        let newest = self.lost.iter().rev().find(|lost| holds(lost)).map(|lost| lost.cause);
        // What begins behind the number is still to be judged or repaired.
        self.lost.retain(|lost| lost.seq.wrapping_sub(seq).cast_signed() > 0);
        newest
    }
}

impl ConfusionMatrix {
    /// UnclassifiedLosses with this cause, or of nothing at all, were judged.
    pub fn add(&mut self, cause: Option<LossCause>, called: ClassificationCounts) {
        let of_cause = match cause {
            Some(LossCause::Queue) => &mut self.queue,
            Some(LossCause::Error) => &mut self.error,
            None => &mut self.nothing,
        };
        of_cause.congestion += called.congestion;
        of_cause.error += called.error;
    }

    /// What was added since an earlier time.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            queue: self.queue.since(&earlier.queue),
            error: self.error.since(&earlier.error),
            nothing: self.nothing.since(&earlier.nothing),
        }
    }

    /// As columns of an answer.
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
        let share = |right: u64, wrong: u64| {
            (right + wrong > 0).then(|| right as f64 / (right + wrong) as f64)
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
        // Numbers wrap between the first and the second segment.
        let first = u32::MAX - 99;
        losses.add(first, 100, LossCause::Error);
        losses.add(0, 100, LossCause::Error);
        losses.add(300, 100, LossCause::Queue);
        losses.add(0, 100, LossCause::Queue);
        // The first was repaired without a judgement; of the second, the repetition is missing.
        assert_eq!(losses.take(0), Some(LossCause::Queue));
        assert_eq!(losses.take(0), None, "nothing of it has been lost since");
        assert_eq!(losses.take(200), None, "a segment that was not lost");
        assert_eq!(losses.take(300), Some(LossCause::Queue));
        assert!(losses.lost.is_empty());
    }

    #[test]
    fn shares_are_of_what_had_the_cause() {
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
