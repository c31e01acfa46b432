//! Counters of single members of flows, for `record.members`.

use gridhaul_scenario::units::Duration;

use crate::flow::Flow;
use crate::row_counters::SenderSums;

/// Counters of the members of some rows. Without such rows, there are no counters.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemberCounters {
    /// The rows, in their order.
    pub rows: Vec<u32>,
    /// Delays of the messages of each flow, by its number; empty without rows.
    delays: Vec<MemberDelays>,
}

/// Message delays of a member.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct MemberDelays {
    pub messages: u64,
    pub sum: Duration,
    pub largest: Duration,
}

impl MemberCounters {
    /// Counters for the members of these rows, of `flows` flows in all.
    pub(crate) fn new(rows: Vec<u32>, flows: usize) -> Self {
        let flows = if rows.is_empty() { 0 } else { flows };
        Self { rows, delays: vec![MemberDelays::default(); flows] }
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
    pub(crate) fn delays(&self, flow: usize) -> MemberDelays {
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
