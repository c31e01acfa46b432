//! Configuration of a hybrid router: two or more links to the same peer, and one address (paper
//! `hybrid`, section 3.3).

mod check;

use std::net::IpAddr;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::scenario::OpeningSide;
use crate::units::{BitRate, Bytes, Duration, QueueLimit};

pub(super) use check::check;

/// A hybrid router: sends packets to its peer, another hybrid router, over one of several links.
/// Hosts on both sides keep their addresses whichever link carries their packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Router"))]
pub struct RouterConfig {
    /// IP address of this router. It belongs to no single link, for example to the loopback device.
    pub address: String,
    /// IP address of the peer.
    pub peer: String,
    /// UDP port of the probes between both routers.
    #[serde(default = "probe_port")]
    pub port: u16,
    /// IP prefixes behind the peer, such as `"10.9.0.0/24"` or `"0.0.0.0/0"`: packets to these are
    /// routed over the links.
    pub destinations: Vec<String>,
    /// IP prefixes within `destinations` that are not behind the peer, such as the local network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
    /// Time without a probe that arrives after which a link has failed in the direction to the
    /// peer. Half of the largest round-trip time of the last minutes and its variation are added.
    #[serde(default = "detection_time")]
    pub detection_time: Duration,
    /// Time for which a link must answer probes after a failure before it is used again.
    #[serde(default = "hold_time")]
    pub hold_time: Duration,
    /// Number of the routing table of the first link, and preference of its rule; the following
    /// links have the following numbers.
    #[serde(default = "first_table")]
    pub table: u32,
    /// Folder of the record of all changes to the system, by which they are undone after a crash.
    #[serde(default = "state_folder")]
    pub state: String,
    /// Links to the peer by name, in the order of preference. The peer has the same names.
    pub link: IndexMap<String, RouterLink>,
    /// Classes of packets with their own order of links. A packet belongs to the first class that
    /// matches; all others use the links in the order in which they are declared.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub class: IndexMap<String, RouterClass>,
}

/// A link of a hybrid router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouterLink {
    /// Network device of the link.
    pub device: String,
    /// IP addresses of the next hop, at most one of each version of IP. Empty: a point-to-point
    /// device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway: Vec<String>,
    /// Interval of probes. A probe has 74 bytes with two links; at the default interval, probes use
    /// 3 kbit/s in each direction.
    #[serde(default = "probe_interval")]
    pub probe_interval: Duration,
    /// Size of large probes, with headers of IP: one follows every second probe, so that a link is
    /// left which loses packets of this size although smaller ones arrive. At most the MTU of the
    /// path. At 1500 B and the default interval, they use 30 kbit/s. Absent: no large probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe_size: Option<Bytes>,
    /// Shaper of packets to the peer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<RouterShaper>,
}

impl RouterLink {
    /// Smallest value of `probe_size`: probes with reports about eight links are shorter.
    pub const PROBE_SIZE_MIN: u64 = 296;

    /// Largest value of `probe_size`.
    pub const PROBE_SIZE_MAX: u64 = 9_000;
}

/// A shaper of a link, without bursts: HTB of the Linux kernel. With a rate slightly below that of
/// the link, packets wait in the shaper, where they have shares, and not in the queue of the link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouterShaper {
    /// Rate of all packets, including headers of IP.
    pub rate: BitRate,
    /// Bytes that each share may send at once after an idle time.
    #[serde(default = "one_packet")]
    pub burst: Bytes,
    /// Limit of the queue of each share.
    #[serde(default = "queue")]
    pub queue: QueueLimit,
    /// Shares with a guaranteed rate, such as that of a single user. A packet belongs to the first
    /// share that matches; all others share the remaining rate.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub share: IndexMap<String, RouterShare>,
}

/// A guaranteed rate for some packets of a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouterShare {
    /// Packets of the share.
    pub packets: PacketMatch,
    /// Guaranteed rate.
    pub guarantee: BitRate,
    /// Largest rate. Absent: the rate of the shaper.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<BitRate>,
}

/// A class of packets that has its own order of links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouterClass {
    /// Packets of the class.
    pub packets: PacketMatch,
    /// Names of links in the order of preference. Other links are used if all of these have failed.
    pub links: Vec<String>,
}

/// Conditions that a packet must meet, all of them. Absent conditions are met.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PacketMatch {
    /// Side that has opened the connection of the packet, by connection tracking of the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<OpeningSide>,
    /// Only TCP segments that carry an acknowledgement and nothing else, by flags and length.
    #[serde(default)]
    pub acknowledgements: bool,
    /// Protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<TransportProtocol>,
    /// Ports of TCP or UDP, of which one is the source or the destination of the packet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// IP prefixes of the source address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// IP prefixes of the destination address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
}

/// A protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TransportProtocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// ICMP, or ICMPv6.
    Icmp,
}

/// Address and length of each valid IP prefix; bits after the prefix are zero.
#[must_use]
pub fn network_prefixes(texts: &[String]) -> Vec<(IpAddr, u8)> {
    let parsed = texts.iter().filter_map(|text| super::prefix::parse_prefix(text));
    parsed
        .map(|(address, length)| {
            let network = match address {
                IpAddr::V4(ip) => {
                    let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
                    IpAddr::V4((ip.to_bits() & mask).into())
                }
                IpAddr::V6(ip) => {
                    let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
                    IpAddr::V6((ip.to_bits() & mask).into())
                }
            };
            (network, length)
        })
        .collect()
}

const fn probe_port() -> u16 {
    4_784
}
const fn detection_time() -> Duration {
    Duration::from_secs(1)
}
const fn hold_time() -> Duration {
    Duration::from_secs(6)
}
const fn first_table() -> u32 {
    7_100
}
fn state_folder() -> String {
    "/run/gridhaul".to_owned()
}
const fn probe_interval() -> Duration {
    Duration::from_millis(200)
}
const fn one_packet() -> Bytes {
    Bytes::new(1_500)
}
const fn queue() -> QueueLimit {
    QueueLimit::Packets(100)
}
