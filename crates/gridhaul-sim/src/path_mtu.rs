//! Nodes before links that are too small for segments: they drop these, and report the MTU to their
//! sender (RFC 1191, section 4) unless the link is a black hole.

use gridhaul_core::tcp::{Segment, discovers_path_mtu};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Hop, IpVersion, PacketTooBig, Scenario, Transport};

use crate::network::END_OF_ROUTE;

/// The response to large packets of each direction of a link, by row of the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct PathMtu {
    responses: Vec<Option<PacketTooBig>>,
    /// The node from which packets enter the direction.
    nodes: Vec<usize>,
    /// IP version of each row of flows.
    ip_versions: Vec<IpVersion>,
}

impl PathMtu {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let (mut responses, mut nodes) = (Vec::new(), Vec::new());
        for link in scenario.link.values() {
            let directions = [(&link.from, link.forward()), (&link.to, link.reverse())];
            for (node, direction) in directions {
                let Some(direction) = direction else { continue };
                responses.push(direction.packet_too_big);
                nodes.push(scenario.node.get_index_of(node).unwrap_or(usize::MAX));
            }
        }
        let ip_versions = scenario.flow.values().map(|flow| flow.ip).collect();
        Self { responses, nodes, ip_versions }
    }

    /// Size of a report about a packet of a flow: as much of the packet as fits into 576 B (RFC
    /// 1812, section 4.3.2.3), or into 1,280 B with IPv6 (RFC 4443, section 3.2).
    pub(crate) fn report_bytes(&self, packet: u32, flow_row: u32) -> u32 {
        match self.ip_versions.get(flow_row as usize) {
            Some(IpVersion::V6) => (packet + 48).min(1_280),
            _ => (packet + 28).min(576),
        }
    }

    /// Where a report of the node before a direction joins the reverse route of a flow, as an index
    /// into this route; `None` if the direction is a black hole. Both are given by the rows of
    /// their directions.
    pub(crate) fn return_path(
        &self,
        row: u32,
        mut route: impl Iterator<Item = u32>,
    ) -> Option<usize> {
        if self.responses[row as usize] != Some(PacketTooBig::Icmp) {
            return None;
        }
        let node = self.nodes[row as usize];
        route.position(|row| row != END_OF_ROUTE && self.nodes[row as usize] == node)
    }
}

/// Size of a segment that does not count selective acknowledgements: a host shortens the data of
/// segments that carry them (Linux, `tcp_current_mss`).
pub(crate) fn size_without_sack(segment: &Segment) -> u32 {
    let blocks = segment.sack.as_slice().len() as u32;
    let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    segment.wire_bytes().saturating_sub(sack)
}

/// The keys of links with small packets that the simulator does not support.
pub(crate) fn unsupported_path_mtu(scenario: &Scenario) -> Vec<Unsupported> {
    let mut unsupported = Vec::new();
    for (name, flow) in &scenario.flow {
        if flow.transport != Transport::Tcp {
            continue;
        }
        let stages = scenario.stages(name).unwrap_or_default();
        let has_proxy = scenario.proxy_positions(name).is_ok_and(|found| !found.is_empty());
        let mut reject = |key: String, reason: &str| {
            unsupported.push(Unsupported { key, reason: reason.to_owned() });
        };
        let hops = stages.iter().flat_map(|stage| stage.forward.iter().chain(&stage.reverse));
        if has_proxy && let Some(key) = hops.copied().find_map(|hop| limiting_key(scenario, hop)) {
            let reason = "the proxies of the simulator keep the segment size of the hosts; remove \
                          this key, or the proxy";
            reject(key, reason);
        }
        let reason = match flow.connection_key() {
            None if stages.len() > 1 => {
                "the aggregators of the simulator divide data by the \
                                         segment size; write a smaller `mss` in the stack"
            }
            None => continue,
            Some(_) => {
                "the simulator discovers the MTU of a path for connections that stay open; \
                        write a smaller `mss` in the stack"
            }
        };
        if discovers_path_mtu(scenario, name) {
            reject(format!("flow.{name}.stack"), reason);
        }
    }
    unsupported.dedup();
    unsupported
}

/// The key of a hop that limits the size of segments.
fn limiting_key(scenario: &Scenario, hop: Hop) -> Option<String> {
    let direction = hop.direction(scenario);
    let key = match (direction.packet_too_big, direction.mss_clamp) {
        (Some(_), _) => "packet_too_big",
        (None, Some(_)) => "mss_clamp",
        (None, None) => return None,
    };
    let (link, _) = scenario.link.get_index(hop.link)?;
    let side = if hop.forward { "forward" } else { "reverse" };
    Some(format!("link.{link}.{side}.{key}"))
}
