//! The packets of a flow of the scenario, as links identify them.

use std::ops::Range;

use gridhaul_scenario::scenario::FlowEnd;

use crate::end_id::EndId;
use crate::flow::Flow;

/// The [`LinkPayload::flow`](gridhaul_core::link::LinkPayload::flow) of the packets to both ends of
/// the flows of a row of the scenario.
pub(super) fn flow_range(flows: &[Flow], row: usize) -> Range<u64> {
    // The flows of the scenario are in the order of their rows, before upstream connections.
    let first = |row: usize| flows.partition_point(|flow| (flow.row as usize) < row) as u32;
    let [start, end] = [row, row + 1].map(|row| EndId::of(first(row), FlowEnd::From).index());
    u64::from(start)..u64::from(end)
}
