//! Links whose MTU is smaller than the packets of a path.

use serde::{Deserialize, Serialize};

/// Response of the node before a link to packets that exceed its MTU and must not be fragmented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PacketTooBig {
    /// Drops the packet and reports the MTU to its sender: "fragmentation needed" of ICMP (RFC
    /// 1191, section 4), or "packet too big" of ICMPv6 (RFC 4443, section 3.2).
    Icmp,
    /// Drops the packet without a report, or a firewall drops the report: a black hole (RFC 2923,
    /// section 2.1).
    BlackHole,
}
