//! Metrics of the proxies of a run, and the audit at its end.

use gridhaul_core::pep::{BufferStatus, Side};
use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::{Proxies, ProxyInstance};
use crate::audit::Violation;
use crate::flow::{Flow, PayloadCounters};

/// Sums over the proxy instances of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProxySums {
    instances: u64,
    /// In byte nanoseconds.
    bytes_at_risk: u128,
    bytes_at_risk_max: u64,
    retransmissions: u64,
    lost: u64,
}

impl Proxies {
    /// The sums of each row up to `now`.
    pub(crate) fn sums(&self, now: Instant, flows: &[Flow], rows: usize) -> Vec<ProxySums> {
        if self.instances.is_empty() {
            return Vec::new();
        }
        let mut sums = vec![ProxySums::default(); rows];
        for (flow, &first) in flows.iter().zip(&self.first) {
            let loses =
                |instance: &ProxyInstance| instance.crashes_so_far > 0 || instance.proxy.lost() > 0;
            if first != u32::MAX && self.of_flow(first).any(loses) {
                sums[flow.row as usize].lost += self.lost(flow, first);
            }
        }
        for instance in &self.instances {
            let sum = &mut sums[flows[instance.flow as usize].row as usize];
            sum.instances += 1;
            sum.bytes_at_risk += instance.bytes_at_risk.integral_at(now);
            sum.bytes_at_risk_max = sum.bytes_at_risk_max.max(instance.bytes_at_risk.max());
            sum.retransmissions += instance.sent_data.retransmissions;
        }
        sums
    }

    /// The maxima of all instances begin anew: the measured time begins.
    pub(crate) fn restart_maxima(&mut self) {
        self.instances.iter_mut().for_each(|instance| instance.bytes_at_risk.restart_max());
    }

    fn of_flow(&self, first: u32) -> impl Iterator<Item = &ProxyInstance> {
        let instances = &self.instances[first as usize..];
        let flow = instances.first().map_or(0, |instance| instance.flow);
        instances.iter().take_while(move |instance| instance.flow == flow)
    }

    /// Payload that was acknowledged to its sender, was not delivered, and is held by no proxy.
    fn lost(&self, flow: &Flow, first: u32) -> u64 {
        let Some((left, right)) = flow.payload_counters() else { return 0 };
        let held: u64 = self.of_flow(first).map(|instance| instance.bytes_at_risk.value()).sum();
        let missing = |sender: PayloadCounters, receiver: PayloadCounters| {
            sender.acknowledged.saturating_sub(receiver.delivered)
        };
        (missing(left, right) + missing(right, left)).saturating_sub(held)
    }

    /// Rows of the flows of which a proxy has reset the connection with bytes at risk.
    pub(crate) fn rows_reset_with_loss(&self, flows: &[Flow]) -> impl Iterator<Item = u32> {
        let lossy = self.instances.iter().filter(|instance| instance.proxy.lost() > 0);
        lossy.map(|instance| flows[instance.flow as usize].row)
    }

    /// Audits a flow: each proxy instance has received no more than was sent to it, has
    /// acknowledged no more than that, and no sender has seen more acknowledged than that. Without
    /// proxies the two ends are compared.
    pub(crate) fn audit(&self, index: usize, flow: &Flow) -> Result<(), Violation> {
        let first = self.first.get(index).copied().filter(|&first| first != u32::MAX);
        let Some(first) = first else { return flow.audit() };
        let instances: Vec<_> = self.of_flow(first).collect();
        if instances.iter().any(|instance| instance.crashes_so_far > 0) {
            // Its counters have restarted from 0, and the bytes that it held are counted as lost.
            return Ok(());
        }
        let Some((left, right)) = flow.payload_counters() else { return Ok(()) };
        for (from, sender, receiver) in [(Side::Client, left, right), (Side::Server, right, left)] {
            let path: Vec<_> = match from {
                Side::Client => instances.clone(),
                Side::Server => instances.iter().rev().copied().collect(),
            };
            // Payload that the previous hop has sent, and that is acknowledged to it.
            let (mut sent, mut acknowledged) = (sender.sent, sender.acknowledged);
            for instance in path {
                let Some(held) = instance.progress(from, sent) else { continue };
                let BufferStatus { received, acknowledged: taken, released, .. } = held;
                if received > sent || taken > received || acknowledged > taken {
                    let acknowledged_by_proxy = taken;
                    return Err(Violation::ProxyInput {
                        sent,
                        acknowledged,
                        received,
                        acknowledged_by_proxy,
                    });
                }
                (sent, acknowledged) = (received, released);
            }
            if receiver.delivered > sent || acknowledged > receiver.delivered {
                let (received, delivered) = (sent, receiver.delivered);
                return Err(Violation::ProxyOutput { received, acknowledged, delivered });
            }
        }
        Ok(())
    }
}

impl ProxySums {
    /// The metrics of a row over the measured time.
    pub(crate) fn metrics(&self, before: &Self, span: Duration, into: &mut Metrics) {
        if self.instances == 0 {
            return;
        }
        let per_unit = span.as_nanos() as f64 * self.instances as f64;
        into.push((
            Metric::BytesAtRiskMean,
            (self.bytes_at_risk - before.bytes_at_risk) as f64 / per_unit,
        ));
        into.push((Metric::BytesAtRiskMax, self.bytes_at_risk_max as f64));
        into.push((
            Metric::ProxyRetransmissions,
            (self.retransmissions - before.retransmissions) as f64,
        ));
        into.push((Metric::LostInCrashes, self.lost as f64));
    }
}
