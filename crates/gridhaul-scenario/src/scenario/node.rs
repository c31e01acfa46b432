//! Nodes: hosts, routers, aggregators, proxies and hybrid routers.

use serde::{Deserialize, Serialize};

use super::{HybridRouter, IpVersion, Proxy};
use crate::units::{BufferLimit, Duration};

/// A node, or a group of equal nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Number of equal nodes in the group. A link or flow between a group and a single node exists
    /// once per member. Between two groups, the members of the larger one are assigned evenly to
    /// those of the smaller: of n members, member i to member ⌊i·k/n⌋ of k.
    #[serde(default = "one_node")]
    pub count: u32,
    /// Makes the node an aggregator: it terminates the TCP connections of the flows that pass it
    /// and forwards their messages over one upstream connection (a collector in paper `sa-tcp`,
    /// section 3.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<Aggregator>,
    /// Makes the node a proxy for individual TCP connections: `split`, `reflect`, `spoof`, `snoop`,
    /// `ack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Makes the node a hybrid router, which sends packets over one of several links to its peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router: Option<HybridRouter>,
    /// Equal-cost multipath: if several links lead from the node to the next node of a path, the
    /// packets of each flow leave over one of them, selected by a hash of the flow. Absent: all
    /// leave over the first one in the file. A given `route` of a flow does not change. Simulator
    /// only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ecmp: bool,
}

/// An aggregator: buffer and upstream connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Aggregator {
    /// Buffer of each aggregator for data that waits for the upstream connection.
    #[serde(default = "default_buffer")]
    pub buffer: BufferLimit,
    /// Name of the TCP stack of the upstream connection. Absent: the stack of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// IP version of the upstream connection. Absent: that of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpVersion>,
    /// Treatment of data that does not fit into the buffer.
    #[serde(default)]
    pub when_full: FullBufferPolicy,
    /// The upstream connections of several equal aggregators open at random times, uniformly
    /// distributed between the start of the run and this value, or with the first data if that
    /// arrives earlier; `"0 s"`: all at the start of the run. Absent: 1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
}

/// Policy of an aggregator when its buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FullBufferPolicy {
    /// Drop segments that do not fit, without acknowledgement; the sender retransmits them.
    #[default]
    Drop,
    /// Backpressure: close the window that is offered to the senders.
    Backpressure,
}

impl Default for Node {
    fn default() -> Self {
        Self { count: 1, aggregator: None, proxy: None, router: None, ecmp: false }
    }
}

const fn one_node() -> u32 {
    1
}
const fn default_buffer() -> BufferLimit {
    BufferLimit::Messages(100)
}
