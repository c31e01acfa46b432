//! Ground truth of losses: compares the cause of each loss with its classification by the sender.
//!
//! Some congestion control algorithms classify losses as congestion or as transmission errors. For
//! their flows every lost data packet is recorded with its cause
//! (`gridhaul_core::link::UnclassifiedLosses`). Losses that loss recovery repairs without a
//! classification are not counted. On a path with a proxy, losses after the proxy count for the
//! sender although the proxy may repair them.

use std::collections::BTreeMap;

use gridhaul_core::link::{ClassificationCounts, ConfusionMatrix, LossCause, UnclassifiedLosses};
use gridhaul_core::tcp::congestion::LossClassifications;
use gridhaul_core::tcp::{Connection, Segment};

use crate::flow::{Ends, Flow};

/// Losses that are not classified yet, of the flows that classify losses, by the number of the
/// flow.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossCauses {
    flows: BTreeMap<u32, ClassifyingFlow>,
    /// Classifications by cause of each row.
    rows: Vec<ConfusionMatrix>,
    /// Whether links report losses and full queues to the sender of any flow.
    needs_reports: bool,
}

/// A flow whose congestion control algorithm classifies losses.
#[derive(Debug, Clone, Default)]
struct ClassifyingFlow {
    row: u32,
    losses: UnclassifiedLosses,
    /// Classifications up to the last event of the sender.
    classifications: LossClassifications,
}

impl LossCauses {
    /// Selects the flows that classify losses.
    pub(crate) fn new(flows: &[Flow], rows: usize) -> Self {
        let mut classifying = BTreeMap::new();
        let mut needs_reports = false;
        for (number, flow) in (0..).zip(flows) {
            if let Ends::Tcp(ends) = &flow.ends
                && classifications(&ends[0]).is_some()
            {
                needs_reports |= ends[0].params().medx.classifier.needs_reports_of_links();
                let flow = ClassifyingFlow { row: flow.row, ..ClassifyingFlow::default() };
                classifying.insert(number, flow);
            }
        }
        let rows = if classifying.is_empty() { 0 } else { rows };
        Self { flows: classifying, rows: vec![ConfusionMatrix::default(); rows], needs_reports }
    }

    /// Whether any flow classifies losses.
    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Whether links report losses and full queues to the sender of any flow.
    #[inline]
    pub(crate) const fn needs_reports(&self) -> bool {
        self.needs_reports
    }

    /// A data packet of a flow is lost.
    #[inline]
    pub(crate) fn on_lost(&mut self, flow: u32, segment: &Segment, cause: LossCause) {
        if self.is_active() {
            self.record(flow, segment, cause);
        }
    }

    #[cold]
    fn record(&mut self, flow: u32, segment: &Segment, cause: LossCause) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        flow.losses.add(segment.seq, segment.len, cause);
    }

    /// The sender of a flow has handled an event, and may have classified a loss.
    pub(crate) fn on_handled(&mut self, flow: u32, ends: &[Connection; 2]) {
        let Some(flow) = self.flows.get_mut(&flow) else { return };
        let Some(now) = classifications(&ends[0]) else { return };
        let previous = std::mem::replace(&mut flow.classifications, now);
        if now == previous {
            return;
        }
        let cause = flow.losses.take(ends[0].first_unacknowledged());
        let counts = ClassificationCounts {
            congestion: u64::from(now.congestion.wrapping_sub(previous.congestion)),
            error: u64::from(now.error.wrapping_sub(previous.error)),
        };
        self.rows[flow.row as usize].add(cause, counts);
    }

    /// The classifications of all rows so far; empty if no flow classifies losses.
    pub(crate) fn rows(&self) -> &[ConfusionMatrix] {
        &self.rows
    }

    /// Whether flows of this row classify losses.
    pub(crate) fn classifies(&self, row: u32) -> bool {
        self.flows.values().any(|flow| flow.row == row)
    }
}

fn classifications(end: &Connection) -> Option<LossClassifications> {
    end.sender()?.estimator_counters()?.loss_classifications
}
