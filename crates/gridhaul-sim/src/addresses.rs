//! Addresses of the flows of a scenario, for captures.

use gridhaul_scenario::scenario::Scenario;

use crate::capture::{Addresses, FlowEnds, NodeGroup};
use crate::layout::{Layout, members};

/// Addresses for captures. Nodes are numbered in the order of the scenario.
pub(crate) fn addresses(scenario: &Scenario, layout: &Layout) -> Addresses {
    let nodes = |name: &str| {
        let (index, _, node) = scenario.node.get_full(name).expect("ends of flows are nodes");
        NodeGroup { node: index as u32, members: u64::from(node.count) }
    };
    let flows = scenario.flow.values().zip(&layout.aggregation.flows).zip(&layout.flows);
    let own = flows.map(|((flow, stage), &(_, count))| FlowEnds {
        from: nodes(&flow.from),
        to: nodes(&stage.to),
        group: members(scenario, &flow.from, &flow.to),
        count,
        ip: flow.ip,
        upstream: false,
    });
    let upstream = layout.aggregation.groups.iter().map(|group| FlowEnds {
        from: nodes(&group.aggregator),
        to: nodes(&group.to),
        group: group.count,
        count: group.count,
        ip: group.ip,
        upstream: true,
    });
    Addresses::new(own.chain(upstream))
}
