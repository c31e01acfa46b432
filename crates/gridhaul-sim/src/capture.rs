//! Captures: packets for Wireshark. Payload bytes do not exist in a simulation,
//! so packets are cut behind their headers, as with a short snapshot length.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses as IpAddresses, IpHeader, Payload, TcpHeader, UdpHeader, WireError, write_tcp,
    write_udp,
};
use gridhaul_data::pcapng::PcapngWriter;
use gridhaul_scenario::answer::Capture;
use gridhaul_scenario::scenario::{IpVersion, assigned_member};
use gridhaul_scenario::units::Instant;

use crate::packet::{Body, Packet};

/// Writes down the packets that are offered to one direction of a link.
#[derive(Debug)]
pub(crate) struct Tap {
    /// Name of the direction.
    name: String,
    packets: Vec<(Instant, Packet)>,
}

/// Addresses and ports of the flows.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The ways of the flows, and the number of the first flow of each.
    ways: Vec<(u64, Way)>,
}

/// The ends of equal flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub from: Place,
    pub to: Place,
    /// Members of the larger of the two groups.
    pub group: u64,
    /// Number of flows: for each member as many.
    pub count: u64,
    pub ip: IpVersion,
    /// Whether the flows lead on from a collector.
    pub upstream: bool,
}

/// A node or a group of nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Number of the node.
    pub node: u32,
    pub members: u64,
}

impl Tap {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), packets: Vec::new() }
    }

    pub(crate) fn on_offered(&mut self, now: Instant, packet: &Packet) {
        if self.packets.len() < PcapngWriter::PACKETS_MAX {
            self.packets.push((now, *packet));
        }
    }

    /// The capture.
    pub(crate) fn into_capture(self, addresses: &Addresses) -> Capture {
        let mut capture = PcapngWriter::new(&self.name);
        let mut headers = Vec::new();
        for (at, packet) in &self.packets {
            headers.clear();
            let whole = addresses.encode(packet, &mut headers);
            capture.push(*at, &headers, whole.expect("a stack sends options that fit its header"));
        }
        capture.into_capture()
    }
}

impl Addresses {
    /// For flows that are numbered in the order of their ways.
    pub(crate) fn new(ways: impl Iterator<Item = Way>) -> Self {
        let mut first = 0;
        let ways = ways.map(|way| {
            let begin = first;
            first += way.count;
            (begin, way)
        });
        Self { ways: ways.collect() }
    }

    /// Appends the headers of a packet, and returns its length on the link.
    fn encode(&self, packet: &Packet, headers: &mut Vec<u8>) -> Result<u32, WireError> {
        let flow = u64::from(packet.flow());
        let index = self.ways.partition_point(|&(first, _)| first <= flow).saturating_sub(1);
        let (first, way) = &self.ways[index];
        let number = flow - first;
        // The flows of a single node are told apart by address; a collector has but one.
        let near = if way.upstream || way.from.members > 1 {
            way.from.address(number, way.group, way.ip)
        } else {
            Place { members: way.count, ..way.from }.address(number, way.count, way.ip)
        };
        let far = way.to.address(number, way.group, way.ip);
        let port = 1024 + (flow % 60_000) as u16;
        let (addresses, [source_port, destination_port]) = if packet.returning() {
            (IpAddresses::new(far, near), [SERVICE_PORT, port])
        } else {
            (IpAddresses::new(near, far), [port, SERVICE_PORT])
        };
        let ip = IpHeader::new(addresses?);
        let stated = match &packet.body {
            Body::Tcp(segment) => {
                let header = tcp_header(segment, source_port, destination_port);
                write_tcp(headers, &ip, &header, Payload::Omitted(segment.len))?
            }
            Body::Datagram(datagram) => {
                let header = UdpHeader { source_port, destination_port };
                write_udp(headers, &ip, &header, Payload::Omitted(datagram.bytes))?
            }
        };
        // A stack whose `header` is smaller compresses what is shown here; a larger one adds bytes that
        // are no part of the IP packet.
        Ok(stated.max(packet.body.wire_bytes()))
    }
}

/// The TCP header of a segment, as a capture shows it.
fn tcp_header(segment: &Segment, source_port: u16, destination_port: u16) -> TcpHeader<'static> {
    let syn = segment.flags.has(Flags::SYN);
    // The window of a SYN is never scaled (RFC 7323, section 2.2).
    let scale = if syn { 0 } else { WINDOW_SCALE };
    let segment = Segment {
        ack: if segment.flags.has(Flags::ACK) { segment.ack } else { 0 },
        window: segment.window >> scale,
        sack_permitted: syn && segment.sack_permitted,
        ..*segment
    };
    let mut header = TcpHeader::from_segment(&segment, source_port, destination_port);
    header.options.window_scale = syn.then_some(WINDOW_SCALE);
    header
}

impl Place {
    /// IPv4: 10.<node>.<member>, where nodes and members differ for the first 256 and 65,536. IPv6: the
    /// prefix, the node and the member, which differ for the first 65,536 and all. The member is the one
    /// that goes with this one of a group.
    fn address(self, number: u64, group: u64, ip: IpVersion) -> IpAddr {
        let member = match self.members {
            1 => 0xfffe,
            members => assigned_member(number % group, group, members),
        };
        match ip {
            IpVersion::V4 => {
                IpAddr::V4(Ipv4Addr::new(10, self.node as u8, (member >> 8) as u8, member as u8))
            }
            IpVersion::V6 => {
                let [a, b, c] = PREFIX;
                let (high, low) = ((member >> 16) as u16, member as u16);
                IpAddr::V6(Ipv6Addr::new(a, b, c, self.node as u16, 0, 0, high, low))
            }
        }
    }
}

/// Shift of the windows in a capture (RFC 7323, section 2): room for 8 MB.
const WINDOW_SCALE: u8 = 7;

/// Port of the `to` end.
const SERVICE_PORT: u16 = 7;

/// First three groups of IPv6 addresses, a unique local prefix (RFC 4193), as in the emulator.
const PREFIX: [u16; 3] = [0xfd67, 0x7269, 0x6468];
