//! What a run says of its collectors: metrics, and whether the auditor agrees.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::Aggregators;
use crate::audit::Violation;
use crate::flow::{Ends, Flow};

/// Integrals over time of what waits at a collector for one upstream connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferIntegrals {
    /// In message nanoseconds.
    waiting: u128,
    /// In byte nanoseconds.
    bytes_at_risk: u128,
}

impl Aggregators {
    /// The integrals of all upstream up to `now`.
    pub(crate) fn levels(&self, now: Instant) -> Vec<BufferIntegrals> {
        let levels = self.upstream.iter().map(|outlet| {
            let aggregate = &self.nodes[outlet.machine as usize].aggregate;
            let slot = outlet.slot as usize;
            BufferIntegrals {
                waiting: aggregate.waiting(slot).integral_at(now),
                bytes_at_risk: aggregate.bytes_at_risk(slot).integral_at(now),
            }
        });
        levels.collect()
    }

    /// The metrics of the upstream connections of a row, averaged over them.
    pub(crate) fn metrics(
        &self,
        (flows, row): (&[Flow], u32),
        before: &[BufferIntegrals],
        (end, span): (Instant, Duration),
        into: &mut Metrics,
    ) {
        let (mut waiting, mut bytes_at_risk) = (0, 0);
        let (mut waiting_max, mut bytes_at_risk_max) = (0, 0);
        let mut count = 0_u32;
        let now = self.levels(end);
        for (index, outlet) in self.upstream.iter().enumerate() {
            if flows[self.first as usize + index].row != row {
                continue;
            }
            waiting += now[index].waiting - before[index].waiting;
            bytes_at_risk += now[index].bytes_at_risk - before[index].bytes_at_risk;
            let aggregate = &self.nodes[outlet.machine as usize].aggregate;
            waiting_max = waiting_max.max(aggregate.waiting(outlet.slot as usize).max());
            bytes_at_risk_max =
                bytes_at_risk_max.max(aggregate.bytes_at_risk(outlet.slot as usize).max());
            count += 1;
        }
        let per_outlet = span.as_nanos() as f64 * f64::from(count.max(1));
        into.push((Metric::BufferMean, waiting as f64 / per_outlet));
        into.push((Metric::BufferMax, waiting_max as f64));
        into.push((Metric::BytesAtRiskMean, bytes_at_risk as f64 / per_outlet));
        into.push((Metric::BytesAtRiskMax, bytes_at_risk_max as f64));
    }

    /// Has the collectors re-checked. An error names the row of the upstream connection.
    pub(crate) fn audit(&mut self, flows: &[Flow]) -> Result<(), (u32, Violation)> {
        for (index, outlet) in self.upstream.iter().enumerate() {
            let flow = &flows[self.first as usize + index];
            let Ends::Tcp(ends) = &flow.ends else { continue };
            let (_, una) = ends[0].sent_and_acknowledged();
            let received = ends[1].receiver().delivered();
            let audit = &mut self.nodes[outlet.machine as usize].audit;
            audit
                .finish(
                    outlet.slot as usize,
                    (una.saturating_sub(1), received),
                    outlet.messages.iter(),
                )
                .map_err(|violation| (flow.row, violation))?;
        }
        Ok(())
    }
}
