//! Reports of routers about packets that were too big (RFC 1191, RFC 8201).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use gridhaul_core::wire::{Addresses, IpPacket, checksum};

use super::key::Endpoints;

/// "Fragmentation needed and DF set" of ICMP, or "packet too big" of ICMPv6, about a TCP segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PacketTooBig {
    /// MTU of the next link, at least [`MTU_MIN`].
    pub(super) mtu: u32,
    /// Sender and receiver of the dropped packet.
    pub(super) ends: Endpoints,
    /// Sequence number of the dropped segment.
    pub(super) seq: u32,
}

/// Sender and receiver of the dropped packet.
struct Hosts {
    source: IpAddr,
    destination: IpAddr,
}

/// Minimum MTU that is accepted from a report. Smaller values would cost the hosts more than a
/// fragmentation; the minimum of IPv4 is 68 bytes (RFC 791), and links with 296 bytes exist (RFC
/// 1144).
const MTU_MIN: u32 = 256;

/// Minimum MTU of IPv6 (RFC 8200, section 5).
const MTU_MIN_V6: u32 = 1_280;

/// Length of an ICMP header.
const HEADER: usize = 8;

/// RFC 1191: plateaus for routers that do not state the MTU.
const PLATEAUS: [u32; 9] = [32_000, 17_914, 8_166, 4_352, 2_002, 1_492, 1_006, 508, 296];

impl PacketTooBig {
    /// Parses a packet with ICMP or ICMPv6.
    pub(super) fn parse(ip: &IpPacket<'_>) -> Option<Self> {
        let message = ip.payload();
        let (header, quoted) = message.split_at_checked(HEADER)?;
        let addresses = ip.addresses();
        let pseudo = match addresses {
            Addresses::V4 { .. } => 0,
            Addresses::V6 { .. } => {
                checksum::pseudo_header(&addresses, ip.protocol(), message.len() as u32)
            }
        };
        if checksum::internet(pseudo, message) != 0 {
            return None;
        }
        match (addresses, header[0], header[1]) {
            (Addresses::V4 { .. }, 3, 4) => Self::of_v4(header, quoted),
            (Addresses::V6 { .. }, 2, 0) => Self::of_v6(header, quoted),
            _ => None,
        }
    }

    fn of_v4(header: &[u8], quoted: &[u8]) -> Option<Self> {
        let header_len = usize::from(quoted.first()? & 0xf) * 4;
        if quoted.first()? >> 4 != 4 || header_len < 20 || *quoted.get(9)? != 6 {
            return None;
        }
        let address = |at: usize| {
            let octets: [u8; 4] = quoted.get(at..at + 4)?.try_into().ok()?;
            Some(IpAddr::V4(Ipv4Addr::from(octets)))
        };
        let hosts = Hosts { source: address(12)?, destination: address(16)? };
        let stated = u32::from(u16::from_be_bytes([header[6], header[7]]));
        let length = u32::from(u16::from_be_bytes([quoted[2], quoted[3]]));
        let below = || PLATEAUS.into_iter().find(|plateau| *plateau < length);
        let mtu = if stated == 0 { below()? } else { stated };
        Self::of_segment(mtu.max(MTU_MIN), &hosts, quoted.get(header_len..)?)
    }

    fn of_v6(header: &[u8], quoted: &[u8]) -> Option<Self> {
        if quoted.first()? >> 4 != 6 || *quoted.get(6)? != 6 {
            return None;
        }
        let address = |at: usize| {
            let octets: [u8; 16] = quoted.get(at..at + 16)?.try_into().ok()?;
            Some(IpAddr::V6(Ipv6Addr::from(octets)))
        };
        let hosts = Hosts { source: address(8)?, destination: address(24)? };
        let stated = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Self::of_segment(stated.max(MTU_MIN_V6), &hosts, quoted.get(40..)?)
    }

    fn of_segment(mtu: u32, hosts: &Hosts, segment: &[u8]) -> Option<Self> {
        let fixed = segment.first_chunk::<8>()?;
        let port = |at: usize| u16::from_be_bytes([fixed[at], fixed[at + 1]]);
        let ends = Endpoints {
            source: SocketAddr::new(hosts.source, port(0)),
            destination: SocketAddr::new(hosts.destination, port(2)),
        };
        let seq = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
        Some(Self { mtu, ends, seq })
    }
}
