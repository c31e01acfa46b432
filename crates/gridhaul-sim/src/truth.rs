//! The truth beside what senders say: why a packet was really lost, and what a congestion control
//! that tells causes apart called the loss.
//!
//! Of flows whose control judges, every lost data packet is remembered with its cause
//! (`gridhaul_core::link::UnclassifiedLosses`). Losses that a recovery repairs without asking are not judged, and so not
//! counted. Behind a proxy on the way, losses count as the sender's although the proxy may repair them.

use std::collections::BTreeMap;

use gridhaul_core::link::{ClassificationCounts, ConfusionMatrix, LossCause, UnclassifiedLosses};
use gridhaul_core::tcp::congestion::LossClassifications;
use gridhaul_core::tcp::{Connection, Segment};

use crate::flow::{Ends, Flow};

/// What is known of the flows whose control judges losses, by the number of the flow.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    flows: BTreeMap<u32, Watched>,
    /// Judgements of each row.
    rows: Vec<ConfusionMatrix>,
}

/// A flow whose control judges.
#[derive(Debug, Default)]
struct Watched {
    row: u32,
    losses: UnclassifiedLosses,
    verdicts: LossClassifications,
}

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
        Self { flows: watched, rows: vec![ConfusionMatrix::default(); rows] }
    }

    /// Whether any flow judges.
    #[inline]
    pub(crate) const fn is_asked(&self) -> bool {
        !self.rows.is_empty()
    }

    /// A data packet of a flow is lost.
    #[inline]
    pub(crate) fn on_lost(&mut self, flow: u32, segment: &Segment, cause: LossCause) {
        if self.is_asked() {
            self.remember(flow, segment, cause);
        }
    }

    #[cold]
    fn remember(&mut self, flow: u32, segment: &Segment, cause: LossCause) {
        let Some(watched) = self.flows.get_mut(&flow) else { return };
        watched.losses.add(segment.seq, segment.len, cause);
    }

    /// The sender of a flow has handled something: it may have judged.
    pub(crate) fn on_handled(&mut self, flow: u32, ends: &[Connection; 2]) {
        let Some(watched) = self.flows.get_mut(&flow) else { return };
        let Some(now) = verdicts(&ends[0]) else { return };
        let then = std::mem::replace(&mut watched.verdicts, now);
        if now == then {
            return;
        }
        let cause = watched.losses.take(ends[0].first_unacknowledged());
        let called = ClassificationCounts {
            congestion: u64::from(now.congestion.wrapping_sub(then.congestion)),
            error: u64::from(now.error.wrapping_sub(then.error)),
        };
        self.rows[watched.row as usize].add(cause, called);
    }

    /// The judgements of all rows so far; empty where nobody judges.
    pub(crate) fn rows(&self) -> &[ConfusionMatrix] {
        &self.rows
    }

    /// Whether flows of this row judge.
    pub(crate) fn judges(&self, row: u32) -> bool {
        self.flows.values().any(|watched| watched.row == row)
    }
}

fn verdicts(end: &Connection) -> Option<LossClassifications> {
    end.sender()?.estimator_counters()?.loss_classifications
}
