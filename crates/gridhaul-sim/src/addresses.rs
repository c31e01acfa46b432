//! Addresses of the flows of a scenario, for captures.

use gridhaul_core::tcp::{StackParams, window_shift_of};
use gridhaul_scenario::scenario::{Dscp, IpVersion, ProxyMode, Scenario};

use crate::capture::{Addresses, FlowEnds, NodeGroup};
use crate::layout::{Layout, members};

/// Addresses for captures. Nodes are numbered in the order of the scenario.
pub(crate) fn addresses(scenario: &Scenario, layout: &Layout) -> Addresses {
    let nodes = |name: &str| {
        let (index, _, node) = scenario.node.get_full(name).expect("ends of flows are nodes");
        NodeGroup { node: index as u32, members: u64::from(node.count) }
    };
    let flows = scenario.flow.iter().zip(&layout.aggregation.flows).zip(&layout.flows);
    let own = flows.map(|(((name, flow), stage), &(_, count))| FlowEnds {
        from: nodes(&flow.from),
        to: nodes(&stage.to),
        group: members(scenario, &flow.from, &flow.to),
        count,
        ip: flow.ip,
        dscp: flow.dscp,
        window_shifts: {
            let to_stack = flow.to_stack.as_ref().filter(|_| stage.next.is_none());
            let ends = [flow.stack.as_ref(), to_stack.or(flow.stack.as_ref())];
            let split = shift_of_splitting_proxies(scenario, name);
            window_shifts(scenario, ends, flow.ip).map(|shift| shift.max(split))
        },
        upstream: false,
    });
    let upstream = layout.aggregation.groups.iter().map(|group| FlowEnds {
        from: nodes(&group.aggregator),
        to: nodes(&group.to),
        group: group.count,
        count: group.count,
        ip: group.ip,
        dscp: Dscp::default(),
        window_shifts: window_shifts(
            scenario,
            [group.stack.as_ref(), group.to_stack.as_ref()],
            group.ip,
        ),
        upstream: true,
    });
    Addresses::new(own.chain(upstream))
}

/// Window scales of the packets that the two ends of a connection send. Packets of ns-2 contain no
/// window; a capture shows one with the scale of its size.
fn window_shifts(scenario: &Scenario, stacks: [Option<&String>; 2], ip: IpVersion) -> [u8; 2] {
    stacks.map(|stack| window_shift_of(StackParams::named(scenario, stack, ip).receive_window))
}

/// The largest window scale of the splitting proxies on the path of a flow, which offer windows of
/// their own.
fn shift_of_splitting_proxies(scenario: &Scenario, flow: &str) -> u8 {
    let positions = scenario.proxy_positions(flow).unwrap_or_default();
    let proxies = positions.iter().filter_map(|point| scenario.node[point.node].proxy.as_ref());
    let split = proxies.filter(|proxy| proxy.mode == ProxyMode::Split);
    split.map(|proxy| window_shift_of(proxy.window())).max().unwrap_or(0)
}
