//! The truth beside what senders say: why a packet was really lost, and what a congestion control
//! that tells causes apart called the loss.
//!
//! Of flows whose control judges, every lost data packet is remembered with its cause. When the
//! sender judges, it has just found its first unacknowledged segment missing: the newest loss of
//! that segment is the truth. A repeated segment that is lost again counts for itself. Losses that a
//! recovery repairs without asking are not judged, and so not counted. Behind a proxy on the way,
//! losses count as the sender's although the proxy may repair them.

use std::collections::{BTreeMap, VecDeque};

use gridhaul_core::tcp::congestion::Verdicts;
use gridhaul_core::tcp::{Connection, Segment};
use gridhaul_scenario::answer::{Metric, Metrics};

use crate::flow::{Ends, Flow};

/// What is known of the flows whose control judges losses, by the number of the flow.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    flows: BTreeMap<u32, Watched>,
    /// Judgements of each row.
    rows: Vec<Confusion>,
}

/// Why a packet does not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// A queue or a collector's buffer was full, or active queue management dropped it.
    Queue,
    /// It was lost or damaged on the way.
    Error,
}

/// Judgements by the true cause: what was called congestion, and what was called an error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Confusion {
    queue: Called,
    error: Called,
    /// Nothing was lost, or only acknowledgements.
    nothing: Called,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Called {
    congestion: u64,
    error: u64,
}

/// A flow whose control judges.
#[derive(Debug, Default)]
struct Watched {
    row: u32,
    /// Lost data packets that were not judged yet, in the order in which they were lost.
    lost: VecDeque<Lost>,
    verdicts: Verdicts,
}

#[derive(Debug, Clone, Copy)]
struct Lost {
    seq: u32,
    len: u32,
    cause: Cause,
}

/// Most losses of one flow that are remembered: what recoveries repair without asking stays, until
/// an acknowledgement has passed it and the sender judges again.
const REMEMBERED: usize = 4096;

impl Truth {
    /// Watches those of the flows that judge.
    pub(crate) fn new(flows: &[Flow], rows: usize) -> Self {
        let watched: BTreeMap<u32, Watched> = (0..)
            .zip(flows)
            .filter(
                |(_, flow)| matches!(&flow.ends, Ends::Tcp(ends) if verdicts(&ends[0]).is_some()),
            )
            .map(|(number, flow)| (number, Watched { row: flow.row, ..Watched::default() }))
            .collect();
        let rows = if watched.is_empty() { 0 } else { rows };
        Self { flows: watched, rows: vec![Confusion::default(); rows] }
    }

    /// Whether any flow judges.
    #[inline]
    pub(crate) const fn is_asked(&self) -> bool {
        !self.rows.is_empty()
    }

    /// A data packet of a flow is lost.
    #[inline]
    pub(crate) fn on_lost(&mut self, flow: u32, segment: &Segment, cause: Cause) {
        if self.is_asked() {
            self.remember(flow, segment, cause);
        }
    }

    #[cold]
    fn remember(&mut self, flow: u32, segment: &Segment, cause: Cause) {
        let Some(watched) = self.flows.get_mut(&flow) else { return };
        if watched.lost.len() == REMEMBERED {
            watched.lost.pop_front();
        }
        watched.lost.push_back(Lost { seq: segment.seq, len: segment.len, cause });
    }

    /// The sender of a flow has handled something: it may have judged.
    pub(crate) fn on_handled(&mut self, flow: u32, ends: &[Connection; 2]) {
        let Some(watched) = self.flows.get_mut(&flow) else { return };
        let Some(now) = verdicts(&ends[0]) else { return };
        let then = std::mem::replace(&mut watched.verdicts, now);
        if now == then {
            return;
        }
        let cause = watched.take(ends[0].first_unacknowledged());
        let row = &mut self.rows[watched.row as usize];
        let called = match cause {
            Some(Cause::Queue) => &mut row.queue,
            Some(Cause::Error) => &mut row.error,
            None => &mut row.nothing,
        };
        called.congestion += u64::from(now.congestion.wrapping_sub(then.congestion));
        called.error += u64::from(now.error.wrapping_sub(then.error));
    }

    /// The judgements of all rows so far; empty where nobody judges.
    pub(crate) fn rows(&self) -> &[Confusion] {
        &self.rows
    }

    /// Whether flows of this row judge.
    pub(crate) fn judges(&self, row: u32) -> bool {
        self.flows.values().any(|watched| watched.row == row)
    }
}

impl Watched {
    /// The cause of the newest loss of the segment that holds this number. Its other losses, and what
    /// lies before it, are forgotten.
    fn take(&mut self, seq: u32) -> Option<Cause> {
        let holds = |lost: &Lost| seq.wrapping_sub(lost.seq) < lost.len;
        let newest = self.lost.iter().rev().find(|lost| holds(lost)).map(|lost| lost.cause);
        // What begins behind the number is still to be judged or repaired.
        self.lost.retain(|lost| lost.seq.wrapping_sub(seq).cast_signed() > 0);
        newest
    }
}

impl Confusion {
    /// What was added since an earlier time.
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            queue: self.queue.since(&earlier.queue),
            error: self.error.since(&earlier.error),
            nothing: self.nothing.since(&earlier.nothing),
        }
    }

    pub(crate) fn metrics(&self, into: &mut Metrics) {
        let Self { queue, error, nothing } = self;
        into.extend([
            (Metric::QueueLossCalledCongestion, queue.congestion as f64),
            (Metric::QueueLossCalledError, queue.error as f64),
            (Metric::ErrorLossCalledCongestion, error.congestion as f64),
            (Metric::ErrorLossCalledError, error.error as f64),
            (Metric::NoLossCalledCongestion, nothing.congestion as f64),
            (Metric::NoLossCalledError, nothing.error as f64),
        ]);
        let share = |right: u64, wrong: u64| {
            (right + wrong > 0).then(|| right as f64 / (right + wrong) as f64)
        };
        let congestion = share(queue.congestion, queue.error);
        into.extend(congestion.map(|share| (Metric::CongestionRecognised, share)));
        let errors = share(error.error, error.congestion);
        into.extend(errors.map(|share| (Metric::ErrorRecognised, share)));
    }
}

impl Called {
    const fn since(&self, earlier: &Self) -> Self {
        Self { congestion: self.congestion - earlier.congestion, error: self.error - earlier.error }
    }
}

fn verdicts(end: &Connection) -> Option<Verdicts> {
    end.sender()?.effort()?.verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(watched: &mut Watched, seq: u32, cause: Cause) {
        watched.lost.push_back(Lost { seq, len: 100, cause });
    }

    #[test]
    fn the_newest_loss_of_the_missing_segment_counts() {
        let mut watched = Watched::default();
        // Numbers wrap between the first and the second segment.
        let first = u32::MAX - 99;
        lost(&mut watched, first, Cause::Error);
        lost(&mut watched, 0, Cause::Error);
        lost(&mut watched, 300, Cause::Queue);
        lost(&mut watched, 0, Cause::Queue);
        // The first was repaired without a judgement; of the second, the repetition is missing.
        assert_eq!(watched.take(0), Some(Cause::Queue));
        assert_eq!(watched.take(0), None, "nothing of it has been lost since");
        assert_eq!(watched.take(200), None, "a segment that was not lost");
        assert_eq!(watched.take(300), Some(Cause::Queue));
        assert!(watched.lost.is_empty());
    }
}
