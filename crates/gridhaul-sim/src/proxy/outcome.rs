//! What a run says of its proxies: metrics, and whether the auditor agrees.

use gridhaul_core::pep::{BufferStatus, Side};
use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::{Proxies, Unit};
use crate::audit::Violation;
use crate::flow::{Books, Flow};

/// What the units of a row have counted so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ProxySums {
    units: u64,
    /// In byte nanoseconds.
    bytes_at_risk: u128,
    bytes_at_risk_max: u64,
    repeated: u64,
    lost: u64,
}

impl Proxies {
    /// The sums of each row up to `now`.
    pub(crate) fn sums(&self, now: Instant, flows: &[Flow], rows: usize) -> Vec<ProxySums> {
        if self.units.is_empty() {
            return Vec::new();
        }
        let mut sums = vec![ProxySums::default(); rows];
        for (flow, &first) in flows.iter().zip(&self.first) {
            let loses = |unit: &Unit| unit.crashed > 0 || unit.machine.lost() > 0;
            if first != u32::MAX && self.of_flow(first).any(loses) {
                sums[flow.row as usize].lost += self.lost(flow, first);
            }
        }
        for unit in &self.units {
            let sum = &mut sums[flows[unit.flow as usize].row as usize];
            sum.units += 1;
            sum.bytes_at_risk += unit.bytes_at_risk.integral_at(now);
            sum.bytes_at_risk_max = sum.bytes_at_risk_max.max(unit.bytes_at_risk.max());
            sum.repeated += unit.repeated;
        }
        sums
    }

    fn of_flow(&self, first: u32) -> impl Iterator<Item = &Unit> {
        let units = &self.units[first as usize..];
        let flow = units.first().map_or(0, |unit| unit.flow);
        units.iter().take_while(move |unit| unit.flow == flow)
    }

    /// Payload that was acknowledged to its sender, has not arrived, and that nobody has any more.
    fn lost(&self, flow: &Flow, first: u32) -> u64 {
        let Some((left, right)) = flow.books() else { return 0 };
        let held: u64 = self.of_flow(first).map(|unit| unit.bytes_at_risk.value()).sum();
        let missing = |near: Books, far: Books| near.acknowledged.saturating_sub(far.delivered);
        (missing(left, right) + missing(right, left)).saturating_sub(held)
    }

    /// Flows of which a proxy has reset the connection with bytes at risk: their rows.
    pub(crate) fn gave_up(&self, flows: &[Flow]) -> impl Iterator<Item = u32> {
        let lossy = self.units.iter().filter(|unit| unit.machine.lost() > 0);
        lossy.map(|unit| flows[unit.flow as usize].row)
    }

    /// Re-checks a flow: each unit has received no more than was sent to it and acknowledged no more than
    /// that, and nobody was told of more than was acknowledged. Without units, the ends are looked at
    /// alone.
    pub(crate) fn audit(&self, index: usize, flow: &Flow) -> Result<(), Violation> {
        let first = self.first.get(index).copied().filter(|&first| first != u32::MAX);
        let Some(first) = first else { return flow.audit() };
        let units: Vec<_> = self.of_flow(first).collect();
        if units.iter().any(|unit| unit.crashed > 0) {
            // Its numbers have begun anew, and what it held is counted as lost.
            return Ok(());
        }
        let Some((left, right)) = flow.books() else { return Ok(()) };
        for (from, near, far) in [(Side::Client, left, right), (Side::Server, right, left)] {
            let way: Vec<_> = match from {
                Side::Client => units.clone(),
                Side::Server => units.iter().rev().copied().collect(),
            };
            // Of the one before: what it has sent on, and what it knows to be acknowledged.
            let (mut sent, mut acknowledged) = (near.sent, near.acknowledged);
            for unit in way {
                let Some(held) = unit.forwarded(from, sent) else { continue };
                let BufferStatus { received, acknowledged: taken, released, .. } = held;
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
        if self.units == 0 {
            return;
        }
        let per_unit = span.as_nanos() as f64 * self.units as f64;
        into.push((
            Metric::BytesAtRiskMean,
            (self.bytes_at_risk - before.bytes_at_risk) as f64 / per_unit,
        ));
        into.push((Metric::BytesAtRiskMax, self.bytes_at_risk_max as f64));
        into.push((Metric::ProxyRetransmissions, (self.repeated - before.repeated) as f64));
        into.push((Metric::LostInCrashes, self.lost as f64));
    }
}
