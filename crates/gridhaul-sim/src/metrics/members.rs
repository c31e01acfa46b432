//! Metrics of single members of flows, for `record.members`.

use gridhaul_scenario::answer::{Metric, Metrics, RunMembers};
use gridhaul_scenario::units::Duration;

use super::{Members, RunState, WarmupSnapshot};
use crate::layout::Layout;

/// The members of each row with counters of its members.
pub(super) fn rows(
    state: RunState<'_>,
    before: &WarmupSnapshot,
    layout: &Layout,
    span: Duration,
) -> Vec<RunMembers> {
    let counters = &state.counters.members;
    let senders = counters.senders(state.flows);
    let senders = senders.iter().zip(&before.members).map(|(now, then)| now.since(then));
    let senders: Vec<_> = senders.collect();
    let member = |index: usize, secs: f64| {
        let flow = &state.flows[index];
        let mut metrics = Metrics::new();
        let mut own = Members::default();
        own.add_flow(state, before, index, secs);
        own.deliveries(&mut metrics);
        if flow.is_tcp() {
            senders[index].metrics(&mut metrics);
        }
        if flow.has_messages() {
            let delays = counters.delays(index);
            metrics.push((Metric::Messages, delays.messages as f64));
            if delays.messages > 0 {
                let mean = delays.sum.as_secs_f64() / delays.messages as f64;
                metrics.push((Metric::DelayMean, mean));
                metrics.push((Metric::DelayMax, delays.largest.as_secs_f64()));
            }
        }
        metrics
    };
    let row = |&row: &u32| {
        let secs = state.goodput_secs(row as usize, span);
        let own = (0..state.flows.len()).filter(|&index| state.flows[index].row == row);
        RunMembers {
            flow: layout.flows[row as usize].0.clone(),
            members: own.map(|index| member(index, secs)).collect(),
        }
    };
    counters.rows.iter().map(row).collect()
}
