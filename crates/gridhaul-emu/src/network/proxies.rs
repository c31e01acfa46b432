//! Proxies of a scenario: each is a relay daemon that bridges the two devices of its node.

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Scenario, Transport};

use super::link_device::LinkDevice;

/// A node with a proxy. Its kernel forwards nothing: the daemon bridges the devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProxyLayout {
    /// Index of the node.
    pub node: usize,
    /// Indices of its two devices in [`NetworkPlan::ports`](super::NetworkPlan::ports).
    pub ports: [usize; 2],
    /// The flows that the proxy serves.
    pub served: Vec<ServedFlow>,
}

/// A flow that a proxy serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServedFlow {
    /// Index of the flow in the scenario.
    pub flow: usize,
    /// The index in [`ProxyLayout::ports`] of the device at which data of the flow arrives.
    pub arrives_at: usize,
}

/// The proxies that serve at least one flow of a supported scenario. Other nodes with a proxy are
/// routers.
pub(super) fn proxies(
    scenario: &Scenario,
    ports: &[LinkDevice],
) -> Result<Vec<ProxyLayout>, RunError> {
    let mut found: Vec<ProxyLayout> = Vec::new();
    for (flow, (name, _)) in tcp_flows(scenario) {
        let invalid = |problem| RunError::Invalid(format!("{problem}"));
        let positions = scenario.proxy_positions(name).map_err(invalid)?;
        let forward = scenario.routes(name).map_err(invalid)?.forward;
        for position in positions {
            let node = position.node;
            let of_node: Vec<usize> =
                (0..ports.len()).filter(|at| ports[*at].node == node).collect();
            let [first, second] = of_node[..] else { continue };
            // The last hop before the proxy ends at the device where data arrives.
            let Some(hop) = forward.get(position.hops_before[0] - 1) else { continue };
            let arrives_at = usize::from(ports[first].link != scenario_link(scenario, hop.link));
            let served = ServedFlow { flow, arrives_at };
            match found.iter_mut().find(|known| known.node == node) {
                Some(known) => known.served.push(served),
                None => {
                    found.push(ProxyLayout { node, ports: [first, second], served: vec![served] });
                }
            }
        }
    }
    Ok(found)
}

fn tcp_flows(
    scenario: &Scenario,
) -> impl Iterator<Item = (usize, (&String, &gridhaul_scenario::scenario::Flow))> {
    scenario.flow.iter().enumerate().filter(|(_, (_, flow))| flow.transport == Transport::Tcp)
}

fn scenario_link(scenario: &Scenario, index: usize) -> &str {
    scenario.link.get_index(index).map_or("", |(name, _)| name)
}
