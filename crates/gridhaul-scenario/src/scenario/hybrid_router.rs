//! Hybrid routers: pairs of nodes with several links between them, over which relay daemons send
//! packets (paper `hybrid`, section 3.3).

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::units::Duration;

/// A hybrid router at a node: `gridhaul relay` with `[router]`. It sends the packets of all flows
/// that cross one of its links over the link that it selects by class and by probes, in place of
/// the routes of the flows. The peer has a hybrid router as well. Packets that a link has accepted
/// stay on it, and those that a failed link loses before the router has left it are lost: TCP
/// retransmits them over the other link, because addresses do not change. The simulator runs the
/// router of the daemon with its probes. A shaper on a link in the direction to the peer is that of
/// the router (backend `emu`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HybridRouter {
    /// Whether the router runs; `false` removes it, for example in a sweep.
    #[serde(default = "is_on", skip_serializing_if = "is_true")]
    pub on: bool,
    /// Name of the node at the other end of the links.
    pub peer: String,
    /// Names of the links to the peer, in the order of preference.
    pub links: Vec<String>,
    /// Interval of probes on each link.
    #[serde(default = "probe_interval")]
    pub probe_interval: Duration,
    /// Time without a probe that arrives after which a link has failed. Half of the largest
    /// round-trip time of the last minutes and its variation are added. If another link answers, a
    /// link is left earlier: after 44 % of this time, when six probes in a row are missing.
    #[serde(default = "detection_time")]
    pub detection_time: Duration,
    /// Time for which a link must answer probes after a failure before it is used again.
    #[serde(default = "hold_time")]
    pub hold_time: Duration,
    /// Classes of packets with their own order of links. A packet belongs to the first class of
    /// which it meets all conditions; all others use `links`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub class: IndexMap<String, HybridRouterClass>,
}

/// Packets that have their own order of links. Absent conditions are met by all packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HybridRouterClass {
    /// Names of flows, of which the packet belongs to one, in either direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<String>,
    /// Side that has opened the connection of the packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<OpeningSide>,
    /// Only TCP segments that carry an acknowledgement and nothing else; backend `emu` only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub acknowledgements: bool,
    /// Names of links in the order of preference. Other links are used if all of these have failed.
    pub links: Vec<String>,
}

/// Side of a hybrid router that opens connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OpeningSide {
    /// The hosts on the side of this router, and the router itself.
    ThisSide,
    /// The hosts on the side of the peer.
    Peer,
}

impl Scenario {
    /// The hybrid routers that are on, by the name of their node.
    pub fn hybrid_routers(&self) -> impl Iterator<Item = (&String, &HybridRouter)> {
        let routers =
            self.node.iter().filter_map(|(name, node)| Some((name, node.router.as_ref()?)));
        routers.filter(|(_, router)| router.on)
    }

    /// Keys of the hybrid routers that are on.
    pub fn hybrid_router_keys(&self) -> impl Iterator<Item = String> {
        self.hybrid_routers().map(|(name, _)| format!("node.{name}.router"))
    }
}

const fn is_on() -> bool {
    true
}
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands out references")]
const fn is_true(value: &bool) -> bool {
    *value
}
const fn probe_interval() -> Duration {
    Duration::from_millis(200)
}
const fn detection_time() -> Duration {
    Duration::from_secs(1)
}
const fn hold_time() -> Duration {
    Duration::from_secs(6)
}
