//! What a run says of its proxies: metrics, and whether the auditor agrees.

use gridhaul_core::pep::{Held, Side};
use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::{Proxies, ProxyInstance};
use crate::audit::Violation;
use crate::flow::{Flow, PayloadCounters};

/// What the instances of a row have counted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProxySums {
    instances: u64,
    /// In byte nanoseconds.
    bytes_at_risk: u128,
    bytes_at_risk_max: u64,
    repeated: u64,
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
                |instance: &ProxyInstance| instance.crashed > 0 || instance.machine.lost() > 0;
            if first != u32::MAX && self.of_flow(first).any(loses) {
                sums[flow.row as usize].lost += self.lost(flow, first);
            }
        }
        for instance in &self.instances {
            let sum = &mut sums[flows[instance.flow as usize].row as usize];
            sum.instances += 1;
            sum.bytes_at_risk += instance.bytes_at_risk.integral_at(now);
            sum.bytes_at_risk_max = sum.bytes_at_risk_max.max(instance.bytes_at_risk.max());
            sum.repeated += instance.repeated;
        }
        sums
    }

    fn of_flow(&self, first: u32) -> impl Iterator<Item = &ProxyInstance> {
        let instances = &self.instances[first as usize..];
        let flow = instances.first().map_or(0, |instance| instance.flow);
        instances.iter().take_while(move |instance| instance.flow == flow)
    }

    /// Payload that was acknowledged to its sender, has not arrived, and that nobody has any more.
    fn lost(&self, flow: &Flow, first: u32) -> u64 {
        let Some((left, right)) = flow.payload_counters() else { return 0 };
        let held: u64 = self.of_flow(first).map(|instance| instance.bytes_at_risk.value()).sum();
        let missing = |near: PayloadCounters, far: PayloadCounters| {
            near.acknowledged.saturating_sub(far.delivered)
        };
        (missing(left, right) + missing(right, left)).saturating_sub(held)
    }

    /// Flows of which a proxy has reset the connection with bytes at risk: their rows.
    pub(crate) fn gave_up(&self, flows: &[Flow]) -> impl Iterator<Item = u32> {
        let lossy = self.instances.iter().filter(|instance| instance.machine.lost() > 0);
        lossy.map(|instance| flows[instance.flow as usize].row)
    }

    /// Re-checks a flow: each instance has received no more than was sent to it and acknowledged no more than
    /// that, and nobody was told of more than was acknowledged. Without instances, the ends are looked at
    /// alone.
    pub(crate) fn audit(&self, index: usize, flow: &Flow) -> Result<(), Violation> {
        let first = self.first.get(index).copied().filter(|&first| first != u32::MAX);
        let Some(first) = first else { return flow.audit() };
        let instances: Vec<_> = self.of_flow(first).collect();
        if instances.iter().any(|instance| instance.crashed > 0) {
            // Its numbers have begun anew, and what it held is counted as lost.
            return Ok(());
        }
        let Some((left, right)) = flow.payload_counters() else { return Ok(()) };
        for (from, near, far) in [(Side::Left, left, right), (Side::Right, right, left)] {
            let way: Vec<_> = match from {
                Side::Left => instances.clone(),
                Side::Right => instances.iter().rev().copied().collect(),
            };
            // Of the one before: what it has sent on, and what it knows to be acknowledged.
            let (mut sent, mut acknowledged) = (near.sent, near.acknowledged);
            for instance in way {
                let Some(held) = instance.forwarded(from, sent) else { continue };
                let Held { received, taken, released, .. } = held;
                if received > sent || taken > received || acknowledged > taken {
                    return Err(Violation::ProxyInput { sent, acknowledged, received, taken });
                }
                (sent, acknowledged) = (received, released);
            }
            if far.delivered > sent || acknowledged > far.delivered {
                let (received, delivered) = (sent, far.delivered);
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
        into.push((Metric::ProxyRetransmissions, (self.repeated - before.repeated) as f64));
        into.push((Metric::LostInCrashes, self.lost as f64));
    }
}
