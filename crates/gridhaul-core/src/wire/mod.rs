//! Packet codec: Ethernet II with VLAN tags, IPv4, IPv6, TCP and UDP.
//!
//! Parsing borrows from the packet: [`EthernetFrame`], [`IpPacket`], [`TcpPacket`] and
//! [`UdpPacket`] are views whose lengths have been checked. Writing appends to a buffer of the
//! caller ([`EthernetHeader::write`], [`write_tcp`], [`write_udp`]). [`PacketRewriter`] changes
//! fields in place and keeps the checksum correct. [`TcpSegmenter`] divides a large packet of
//! segmentation offload. None of them allocates for a packet, apart from
//! the growth of the caller's buffer.
//!
//! Options of IPv4, and the hop-by-hop and destination options of IPv6, are skipped and not
//! written. Fragments are refused ([`WireError::Fragment`]), because all but the first have no
//! transport header.

pub mod checksum;
mod error;
mod ethernet;
mod ip;
mod options;
mod path_mtu;
mod rewrite;
mod segmentation;
mod summary;
mod tcp;
mod udp;
mod write;

pub use error::{Layer, WireError};
pub use ethernet::{EtherType, EthernetFrame, EthernetHeader, VlanTag};
pub use ip::{Addresses, IpHeader, IpPacket, Transport};
pub use options::{TcpOptions, UnknownOptions};
pub use path_mtu::reported_mtu;
pub use rewrite::{PacketRewriter, clamp_mss, mark_congestion};
pub use segmentation::TcpSegmenter;
pub use summary::PacketSummary;
pub use tcp::{TcpHeader, TcpPacket};
pub use udp::{UdpHeader, UdpPacket};
pub use write::{Payload, write_tcp, write_udp};

/// Protocol numbers of IP (RFC 9293, RFC 768).
const TCP: u8 = 6;
const UDP: u8 = 17;
