//! Addresses for captures, from a scenario.

use gridhaul_scenario::scenario::Scenario;

use crate::capture::{Addresses, Place, Way};
use crate::layout::{Layout, members};

/// Addresses for captures: nodes are numbered in the order of the scenario.
pub(crate) fn addresses(scenario: &Scenario, layout: &Layout) -> Addresses {
    let place = |name: &str| {
        let (node, _, found) = scenario.node.get_full(name).expect("ends of flows are nodes");
        Place { node: node as u32, members: u64::from(found.count) }
    };
    let flows = scenario.flow.values().zip(&layout.aggregation.flows).zip(&layout.flows);
    let own = flows.map(|((flow, way), &(_, count))| Way {
        from: place(&flow.from),
        to: place(&way.to),
        group: members(scenario, &flow.from, &flow.to),
        count,
        ip: flow.ip,
        upstream: false,
    });
    let upstream = layout.aggregation.groups.iter().map(|group| Way {
        from: place(&group.collector),
        to: place(&group.to),
        group: group.count,
        count: group.count,
        ip: group.ip,
        upstream: true,
    });
    Addresses::new(own.chain(upstream))
}
