//! Packet captures for Wireshark. A simulation has no payload bytes, so packets are truncated after
//! their headers, as with a short snapshot length.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use gridhaul_core::link::LinkPayload;
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses as IpAddresses, IpHeader, Payload, TcpHeader, UdpHeader, WireError, write_tcp,
    write_udp,
};
use gridhaul_data::pcapng::PcapngWriter;
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Capture, RecordingFile};
use gridhaul_scenario::scenario::{Dscp, IpVersion, assigned_member};
use gridhaul_scenario::units::Instant;

use crate::packet::{Body, Packet};

/// Records the packets that are offered to one direction of a link.
#[derive(Debug)]
pub(crate) struct Tap {
    capture: PcapngWriter,
    addresses: Arc<Addresses>,
}

/// Addresses and ports of the flows.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// Groups of equal flows, each with the number of its first flow.
    groups: Vec<(u64, FlowEnds)>,
}

/// The ends of equal flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlowEnds {
    pub from: NodeGroup,
    pub to: NodeGroup,
    /// Members of the larger of the two node groups.
    pub group: u64,
    /// Number of flows, the same for each member.
    pub count: u64,
    pub ip: IpVersion,
    pub dscp: Dscp,
    /// Window scales of the packets of the `from` and the `to` end (RFC 7323, section 2).
    pub window_shifts: [u8; 2],
    /// Whether the flows are upstream connections of an aggregator.
    pub upstream: bool,
}

/// A node or a group of nodes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NodeGroup {
    /// Number of the node.
    pub node: u32,
    pub members: u64,
}

impl Tap {
    /// For a direction of this name, with the file of its packets.
    pub(crate) fn new(
        name: &str,
        addresses: Arc<Addresses>,
        file: Option<Arc<RecordingFile>>,
    ) -> Self {
        let capture = PcapngWriter::new(name, file);
        Self { capture, addresses }
    }

    /// Records a packet. Probes of hybrid routers and reports of ICMP belong to no flow and are
    /// left out.
    pub(crate) fn on_offered(&mut self, now: Instant, packet: &Packet) {
        if matches!(packet.body, Body::Probe(_) | Body::PacketTooBig(_)) {
            return;
        }
        if self.capture.offer() {
            self.capture.push_with(now, |headers| {
                let length = self.addresses.encode(packet, headers);
                length.expect("a stack sends options that fit its header")
            });
        }
    }

    /// The capture.
    pub(crate) fn into_capture(self) -> io::Result<Capture> {
        self.capture.into_capture()
    }
}

impl Addresses {
    /// Addresses of flows that are numbered in the order of their groups.
    pub(crate) fn new(groups: impl Iterator<Item = FlowEnds>) -> Self {
        let mut first = 0;
        let groups = groups.map(|ends| {
            let start = first;
            first += ends.count;
            (start, ends)
        });
        Self { groups: groups.collect() }
    }

    /// Appends the headers of a packet, and returns its length on the link.
    fn encode(&self, packet: &Packet, headers: &mut Vec<u8>) -> Result<u32, WireError> {
        let flow = u64::from(packet.flow());
        let index = self.groups.partition_point(|&(first, _)| first <= flow).saturating_sub(1);
        let (first, ends) = &self.groups[index];
        let number = flow - first;
        // Flows of a single node are distinguished by address. An aggregator has only one address.
        let from = if ends.upstream || ends.from.members > 1 {
            ends.from.address(number, ends.group, ends.ip)
        } else {
            NodeGroup { members: ends.count, ..ends.from }.address(number, ends.count, ends.ip)
        };
        let to = ends.to.address(number, ends.group, ends.ip);
        let port = Scenario::captured_port(flow);
        let (addresses, [source_port, destination_port]) = if packet.is_reverse() {
            (IpAddresses::new(to, from), [SERVICE_PORT, port])
        } else {
            (IpAddresses::new(from, to), [port, SERVICE_PORT])
        };
        let traffic_class = ends.dscp.octet() | packet.ecn().bits();
        let ip = IpHeader { traffic_class, ..IpHeader::new(addresses?) };
        let length = match &packet.body {
            Body::Tcp(segment) => {
                let shift = ends.window_shifts[usize::from(packet.is_reverse())];
                let header = tcp_header(segment, [source_port, destination_port], shift);
                write_tcp(headers, &ip, &header, Payload::Omitted(segment.len))?
            }
            // The caller leaves them out.
            Body::Probe(_) | Body::PacketTooBig(_) => 0,
            Body::Datagram(datagram) => {
                let header = UdpHeader { source_port, destination_port };
                write_udp(headers, &ip, &header, Payload::Omitted(datagram.bytes))?
            }
        };
        // A stack with a smaller `header` compresses the headers shown here. A larger `header` adds
        // bytes that are not part of the IP packet.
        Ok(length.max(packet.body.wire_bytes()))
    }
}

/// The TCP header of a segment, as a capture shows it.
fn tcp_header(
    segment: &Segment,
    [source_port, destination_port]: [u16; 2],
    shift: u8,
) -> TcpHeader<'static> {
    let syn = segment.flags.has(Flags::SYN);
    // The window of a SYN is never scaled (RFC 7323, section 2.2). Windows of other segments are
    // whole units, except those of ns-2, and of a splitting proxy with a smaller unit: rounded up,
    // so that no sender appears to exceed them.
    let unit = if syn { 1 } else { 1 << shift };
    let segment = Segment {
        ack: if segment.flags.has(Flags::ACK) { segment.ack } else { 0 },
        window: segment.window.div_ceil(unit),
        sack_permitted: syn && segment.sack_permitted,
        ..*segment
    };
    let mut header = TcpHeader::from_segment(&segment, source_port, destination_port);
    header.options.window_scale = syn.then_some(shift);
    header
}

impl NodeGroup {
    /// The address of the member that is assigned to this number of a group. IPv4:
    /// 10.<node>.<member>, unique for the first 256 nodes and 65,536 members. IPv6: prefix, node
    /// and member, unique for the first 65,536 nodes and all members.
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

/// Port of the `to` end.
const SERVICE_PORT: u16 = 7;

/// First three groups of IPv6 addresses, a unique local prefix (RFC 4193), as in the emulator.
const PREFIX: [u16; 3] = [0xfd67, 0x7269, 0x6468];
