//! Rows of `record.fairness`: the goodputs of chosen flows, compared.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Duration;

use super::{Members, RunState, WarmupSnapshot};
use crate::layout::Comparison;

/// Jain's index over all connections of the flows and, without transfers, the sum of their
/// goodputs: transfers that follow each other would exceed the rate of a link in sum.
pub(super) fn row(
    state: RunState<'_>,
    before: &WarmupSnapshot,
    comparison: &Comparison,
    span: Duration,
) -> Metrics {
    let mut compared = Members::default();
    for &row in &comparison.rows {
        compared.add_row(state, before, row as usize, span);
    }
    let mut metrics = Metrics::new();
    if compared.transfers.count() == 0 {
        compared.goodputs.metrics(&mut metrics);
        return metrics;
    }
    let mut all = compared.goodputs;
    all.join(compared.transfers.goodputs());
    metrics.extend(all.fairness().map(|fairness| (Metric::Fairness, fairness)));
    metrics
}
