//! Hybrid routers of a scenario: each is a relay daemon at a node with several links to its peer.

use gridhaul_linux::IpPrefix;
use gridhaul_scenario::scenario::{FlowEnd, Hop, HybridRouter, Scenario, Transport};

use super::address::AddressFamily;
use super::flow_layout::FlowLayout;

/// A node with a hybrid router.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RouterLayout {
    /// Index of the node.
    pub node: usize,
    /// Index of the layout whose addresses are those of this router and of its peer: probes cross
    /// the links as packets of a flow of their own.
    pub probes: usize,
    /// The end of this layout that is the address of this router.
    pub side: FlowEnd,
    /// Indices of its devices in [`NetworkPlan::ports`](super::NetworkPlan::ports), in the order of
    /// the links of the router.
    pub ports: Vec<usize>,
}

/// The hybrid routers that are on. A layout of probes is appended for each pair.
pub(super) fn add_routers(scenario: &Scenario, flows: &mut Vec<FlowLayout>) -> Vec<RouterLayout> {
    let mut routers: Vec<RouterLayout> = Vec::new();
    for (name, router) in scenario.hybrid_routers() {
        let index = |name: &str| {
            scenario.node.get_index_of(name).expect("a valid scenario names nodes that it has")
        };
        let (node, peer) = (index(name), index(&router.peer));
        let (probes, side) = match routers.iter().find(|known| known.node == peer) {
            Some(peer) => (peer.probes, FlowEnd::To),
            None => {
                let probes = probe_layout(scenario, router, [node, peer], flows);
                flows.push(probes);
                (flows.len() - 1, FlowEnd::From)
            }
        };
        let ports = router.links.iter().map(|link| port(scenario, link, name)).collect();
        routers.push(RouterLayout { node, probes, side, ports });
    }
    routers
}

/// The probes of two routers. Routes of the kernel use the first link of each direction; the
/// sockets of the daemons choose theirs.
fn probe_layout(
    scenario: &Scenario,
    router: &HybridRouter,
    ends: [usize; 2],
    flows: &[FlowLayout],
) -> FlowLayout {
    let path = |from: usize| -> Vec<Hop> {
        let hops = router.links.iter().filter_map(|name| {
            let (index, _, link) = scenario.link.get_full(name)?;
            let forward = scenario.node.get_index_of(&link.from) == Some(from);
            let direction = if forward { link.forward() } else { link.reverse() };
            direction.map(|_| Hop { link: index, forward })
        });
        hops.take(1).collect()
    };
    FlowLayout {
        idle: None,
        count: 1,
        group: 1,
        family: AddressFamily::V4,
        transport: Transport::Datagram,
        ends,
        server: ends[1],
        traffic_class: 0,
        aggregators: 0,
        limits_window: false,
        // Datagrams use nothing of them, and a scenario has a flow.
        stacks: flows[0].stacks.clone(),
        paths: ends.map(path),
        chosen: [false; 2],
        for_external_programs: false,
        controls: [None, None],
    }
}

/// The device of a link at one of its nodes.
fn port(scenario: &Scenario, link: &str, node: &str) -> usize {
    let (index, _, found) =
        scenario.link.get_full(link).expect("a valid scenario names links that it has");
    2 * index + usize::from(found.from != node)
}

impl super::NetworkPlan {
    /// Addresses that the routes of a hybrid router's node reach over its links.
    pub(crate) fn destinations(&self, router: &RouterLayout) -> Vec<IpPrefix> {
        let mut found = Vec::new();
        for (number, flow, side) in self.ends() {
            let is_here = flow.node(side) == router.node;
            let port = self.port_towards(flow, side, router.node);
            if !is_here && port.is_some_and(|port| router.ports.contains(&port)) {
                found.push(super::Address::block(number as u16, side, flow.family));
            }
        }
        found
    }
}
