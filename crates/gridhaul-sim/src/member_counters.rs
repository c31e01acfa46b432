//! Counters of single members of flows, for `record.members` and `record.distribution`.

use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use crate::flow::Flow;
use crate::row_counters::SenderSums;

/// Counters of the members of some rows. Without such rows, there are no counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemberCounters {
    /// The rows whose members have metrics of their own, in their order.
    pub rows: Vec<u32>,
    /// The rows with a distribution over their members.
    pub distributions: Vec<u32>,
    /// Messages of each flow, by its number; empty without rows.
    delays: Vec<MemberMessages>,
}

/// Messages of a member and their delays.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberMessages {
    pub due: u64,
    pub messages: u64,
    pub sum: Duration,
    pub largest: Duration,
}

impl MemberCounters {
    /// Counters for the members of the rows that `record` names, of `flows` flows in all.
    pub(crate) fn new(scenario: &Scenario, flows: usize) -> Self {
        let rows_of = |names: &[String]| -> Vec<u32> {
            let rows = scenario.flow.keys().zip(0..);
            rows.filter(|(name, _)| names.contains(name)).map(|(_, row)| row).collect()
        };
        let rows = rows_of(&scenario.record.members);
        let distributions = rows_of(&scenario.record.distribution);
        let flows = if rows.is_empty() && distributions.is_empty() { 0 } else { flows };
        Self { rows, distributions, delays: vec![MemberMessages::default(); flows] }
    }

    /// A message of a flow is due.
    #[inline]
    pub(crate) fn on_due(&mut self, flow: u32) {
        if let Some(delays) = self.delays.get_mut(flow as usize) {
            delays.due += 1;
        }
    }

    /// A message of a flow has arrived.
    #[inline]
    pub(crate) fn on_delivered(&mut self, flow: u32, delay: Duration) {
        if let Some(delays) = self.delays.get_mut(flow as usize) {
            delays.messages += 1;
            delays.sum += delay;
            delays.largest = delays.largest.max(delay);
        }
    }

    /// The delays of a flow.
    pub(crate) fn delays(&self, flow: usize) -> MemberMessages {
        self.delays.get(flow).copied().unwrap_or_default()
    }

    /// The counters of the sender of each flow; empty without rows.
    pub(crate) fn senders(&self, flows: &[Flow]) -> Vec<SenderSums> {
        let sums = |flow: &Flow| {
            let mut sums = SenderSums::default();
            flow.add_senders(&mut sums);
            sums
        };
        if self.rows.is_empty() { Vec::new() } else { flows.iter().map(sums).collect() }
    }
}
