//! Nodes: where packets start, end, are forwarded, collected or enhanced.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IpVersion, Proxy};
use crate::units::{BufferLimit, Duration};

/// A node, or a group of equal nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// Number of equal nodes that this name stands for. A link from a group to a single node is
    /// made once for each member, and so is a flow. Between two groups, members of the larger one
    /// are dealt out evenly: of n members, member i goes with member ⌊i·k/n⌋ of the k others.
    #[serde(default = "one_node")]
    pub count: u32,
    /// Makes the node a collector (paper `sa-tcp`, section 3.2): TCP connections of flows that
    /// pass here end here, and what they deliver goes on over one connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregator: Option<Aggregator>,
    /// Makes the node a proxy for single connections: `split`, `reflect`, `snoop`, `ack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
}

/// What a collector does with the messages that it takes in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Aggregator {
    /// What may wait for the upstream connection at one collector.
    #[serde(default = "default_buffer")]
    pub buffer: BufferLimit,
    /// Name of the TCP stack of the upstream connection. Absent: the stack of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Version of IP of the upstream connection. Absent: that of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<IpVersion>,
    /// What happens to data for which the buffer has no room.
    #[serde(default)]
    pub when_full: FullBufferPolicy,
    /// The upstream connections of several equal collectors open at a random time, evenly distributed
    /// from the start of the run up to this, or with the first data if that comes earlier; `"0 s"`: all at the
    /// start of the run. Absent: 1 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
}

/// What a collector does when its buffer is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FullBufferPolicy {
    /// Segments that do not fit are dropped without acknowledgement; their sender repeats them.
    #[default]
    Drop,
    /// The window that is offered to the senders closes, and they wait (backpressure).
    Backpressure,
}

impl Default for Node {
    fn default() -> Self {
        Self { count: 1, aggregator: None, proxy: None }
    }
}

const fn one_node() -> u32 {
    1
}
const fn default_buffer() -> BufferLimit {
    BufferLimit::Messages(100)
}
