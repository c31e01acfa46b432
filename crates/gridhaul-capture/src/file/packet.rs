//! Packets of a capture, from the link layer to the TCP header, complete or truncated.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpNumber, LaxIpSlice, LenSource};
use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::TcpOptions;
use gridhaul_scenario::units::Instant;

use crate::CapturedSegment;

/// The captured bytes of a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) link_type: i32,
    pub(super) data: &'a [u8],
    /// Length before truncation.
    pub(super) original: u32,
}

/// Contents of a packet.
#[derive(Debug)]
pub(super) enum Parsed<'a> {
    Tcp(Tcp<'a>),
    /// Another protocol, or a fragment other than the first.
    Other,
    /// The captured bytes end before the TCP header does.
    Cut,
    UnknownLinkType,
}

/// A TCP segment, whose fixed header has been captured.
#[derive(Debug)]
pub(super) struct Tcp<'a> {
    addresses: [IpAddr; 2],
    hop_limit: u8,
    device: u32,
    packet: u32,
    payload: u32,
    /// The header, possibly without its last options.
    header: &'a [u8],
}

// Link types (tcpdump.org/linktypes.html).
const NULL: i32 = 0;
const ETHERNET: i32 = 1;
const LOOP: i32 = 108;
const RAW: i32 = 101;
const RAW_BSD: [i32; 2] = [12, 14];
const LINUX_COOKED: i32 = 113;
const IPV4: i32 = 228;
const IPV6: i32 = 229;
const LINUX_COOKED_V2: i32 = 276;

// EtherTypes (IEEE 802).
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;
const VLAN_TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// Length of a TCP header without options.
const FIXED: usize = 20;

impl<'a> Packet<'a> {
    pub(super) fn parse(self) -> Parsed<'a> {
        let half = |at: usize| {
            let bytes = self.data.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let ip_at = match self.link_type {
            ETHERNET => {
                let mut at = 12;
                while half(at).is_some_and(|kind| VLAN_TAGS.contains(&kind)) {
                    at += 4;
                }
                match half(at) {
                    Some(TYPE_IPV4 | TYPE_IPV6) => at + 2,
                    Some(_) => return Parsed::Other,
                    None => return Parsed::Cut,
                }
            }
            LINUX_COOKED => return self.cooked(half(14), 16),
            LINUX_COOKED_V2 => return self.cooked(half(0), 20),
            NULL | LOOP => 4,
            RAW | IPV4 | IPV6 => 0,
            kind if RAW_BSD.contains(&kind) => 0,
            _ => return Parsed::UnknownLinkType,
        };
        self.ip(ip_at)
    }

    fn cooked(self, protocol: Option<u16>, ip_at: usize) -> Parsed<'a> {
        match protocol {
            Some(TYPE_IPV4 | TYPE_IPV6) => self.ip(ip_at),
            Some(_) => Parsed::Other,
            None => Parsed::Cut,
        }
    }

    /// The device and the type of the packet, of which the header of a cooked capture has one or
    /// both: copies of a packet at several devices differ by them.
    fn device(self) -> u32 {
        let byte = |at: usize| u32::from(self.data.get(at).copied().unwrap_or(0));
        match self.link_type {
            LINUX_COOKED => 1 + byte(1),
            LINUX_COOKED_V2 => {
                1 + (byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(10)).min(u32::MAX - 1)
            }
            _ => 0,
        }
    }

    /// The IP packet that begins at this byte.
    fn ip(self, at: usize) -> Parsed<'a> {
        let Some(data) = self.data.get(at..).filter(|data| !data.is_empty()) else {
            return Parsed::Cut;
        };
        let Ok((ip, _)) = LaxIpSlice::from_slice(data) else {
            // Neither version 4 nor 6, or a header that the captured bytes do not contain.
            return if matches!(data[0] >> 4, 4 | 6) { Parsed::Cut } else { Parsed::Other };
        };
        let (ip_payload, hop_limit, stated) = match &ip {
            LaxIpSlice::Ipv4(ip) => {
                (ip.payload(), ip.header().ttl(), usize::from(ip.header().total_len()))
            }
            LaxIpSlice::Ipv6(ip) => {
                let length = usize::from(ip.header().payload_length());
                (ip.payload(), ip.header().hop_limit(), if length == 0 { 0 } else { 40 + length })
            }
        };
        if ip_payload.fragmented || ip_payload.ip_number != IpNumber::TCP {
            return Parsed::Other;
        }
        let original = (self.original as usize).max(self.data.len()).saturating_sub(at);
        // Segmentation offload leaves the length field zero for packets of more than 64 KiB.
        let no_length = ip_payload.len_source == LenSource::Slice && !ip_payload.incomplete;
        // Padding of short Ethernet frames is not part of the packet. Links without a link layer
        // have none; gridhaul adds the headers of a link to the length there.
        let padded = matches!(self.link_type, ETHERNET | LINUX_COOKED | LINUX_COOKED_V2);
        let packet = if no_length {
            original
        } else if padded {
            stated
        } else {
            stated.max(original)
        };
        let tcp = ip_payload.payload;
        if tcp.len() < FIXED {
            return Parsed::Cut;
        }
        let header_len = usize::from(tcp[12] >> 4) * 4;
        let headers = data.len() - tcp.len() - trailing(data.len(), stated, no_length) + header_len;
        let end = if no_length { original } else { stated };
        if header_len < FIXED || end < headers {
            return Parsed::Other;
        }
        Parsed::Tcp(Tcp {
            addresses: [ip.source_addr(), ip.destination_addr()],
            hop_limit,
            device: self.device(),
            packet: packet as u32,
            payload: (end - headers) as u32,
            header: &tcp[..header_len.min(tcp.len())],
        })
    }
}

/// Captured bytes after the end of the packet, such as padding.
fn trailing(captured: usize, stated: usize, no_length: bool) -> usize {
    if no_length { 0 } else { captured.saturating_sub(stated) }
}

impl Tcp<'_> {
    pub(super) fn segment(&self, at: Instant, point: u32) -> CapturedSegment {
        let half = |at: usize| u16::from_be_bytes([self.header[at], self.header[at + 1]]);
        let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
        let options = TcpOptions::parse_well_formed(&self.header[FIXED..]);
        let [source, destination] = self.addresses;
        CapturedSegment {
            at,
            point,
            device: self.device,
            source: SocketAddr::new(source, half(0)),
            destination: SocketAddr::new(destination, half(2)),
            seq: word(4),
            ack: word(8),
            flags: Flags::from_bits(self.header[13]),
            window: half(14),
            payload: self.payload,
            packet: self.packet,
            hop_limit: self.hop_limit,
            mss: options.mss,
            window_scale: options.window_scale,
            timestamps: options.timestamps,
            sack: options.sack,
        }
    }
}
