//! Metrics of the aggregators of a run, and the audit at its end.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::Aggregators;
use crate::audit::Violation;
use crate::flow::{Ends, Flow};

/// Integrals over time of the buffer of one upstream connection at its aggregator.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BufferIntegrals {
    /// In message nanoseconds.
    waiting: u128,
    /// In byte nanoseconds.
    bytes_at_risk: u128,
}

impl Aggregators {
    /// The integrals of all upstream connections up to `now`.
    pub(crate) fn buffer_integrals(&self, now: Instant) -> Vec<BufferIntegrals> {
        let integrals = self.connections.iter().map(|connection| {
            let aggregator = &self.nodes[connection.node as usize].aggregator;
            let slot = connection.slot as usize;
            BufferIntegrals {
                waiting: aggregator.waiting(slot).integral_at(now),
                bytes_at_risk: aggregator.bytes_at_risk(slot).integral_at(now),
            }
        });
        integrals.collect()
    }

    /// The maxima of all upstream connections begin anew: the measured time begins.
    pub(crate) fn restart_maxima(&mut self) {
        self.nodes.iter_mut().for_each(|node| node.aggregator.restart_maxima());
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
        let now = self.buffer_integrals(end);
        for (index, connection) in self.connections.iter().enumerate() {
            if flows[self.first_flow as usize + index].row != row {
                continue;
            }
            waiting += now[index].waiting - before[index].waiting;
            bytes_at_risk += now[index].bytes_at_risk - before[index].bytes_at_risk;
            let aggregator = &self.nodes[connection.node as usize].aggregator;
            waiting_max = waiting_max.max(aggregator.waiting(connection.slot as usize).max());
            bytes_at_risk_max =
                bytes_at_risk_max.max(aggregator.bytes_at_risk(connection.slot as usize).max());
            count += 1;
        }
        let per_connection = span.as_nanos() as f64 * f64::from(count.max(1));
        into.push((Metric::BufferMean, waiting as f64 / per_connection));
        into.push((Metric::BufferMax, waiting_max as f64));
        into.push((Metric::BytesAtRiskMean, bytes_at_risk as f64 / per_connection));
        into.push((Metric::BytesAtRiskMax, bytes_at_risk_max as f64));
    }

    /// Finishes the audit of all aggregators. An error has the row of the upstream connection.
    pub(crate) fn audit(&mut self, flows: &[Flow]) -> Result<(), (u32, Violation)> {
        for (index, connection) in self.connections.iter().enumerate() {
            let flow = &flows[self.first_flow as usize + index];
            let Ends::Tcp(ends) = &flow.ends else { continue };
            let (_, una) = ends[0].sent_and_acknowledged();
            let received = ends[1].receiver().delivered();
            let audit = &mut self.nodes[connection.node as usize].audit;
            audit
                .finish(
                    connection.slot as usize,
                    una.saturating_sub(1),
                    received,
                    connection.messages.iter(),
                )
                .map_err(|violation| (flow.row, violation))?;
        }
        Ok(())
    }
}
