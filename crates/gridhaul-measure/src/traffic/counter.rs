//! Packets and bytes by layer, as protocol hierarchy statistics attribute them: each byte to the
//! layer of its header.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::AddAssign;

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{Addresses, IpPacket, Transport};
use gridhaul_protocols::capture::CapturedPacket;
use gridhaul_scenario::units::Instant;
use serde::{Deserialize, Serialize};

/// EtherTypes (IEEE 802 numbers).
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const SAMPLED_VALUES: u16 = 0x88ba;

/// Bytes of an Ethernet header. Captures begin at the network header, and an emulated network of IP
/// packets has no Ethernet header: it is added for each packet.
const ETHERNET: u64 = 14;

/// Bytes of a VLAN tag (IEEE 802.1Q), which the capture contains or reports.
const VLAN: u64 = 4;

/// Which packets are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selection {
    /// TCP connections with this address at one of their ends.
    Connections(SocketAddr),
    /// Frames of Sampled Values.
    SampledValues,
}

/// Packets and their bytes by layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Traffic {
    /// All packets.
    pub packets: u64,
    /// Packets of TCP without payload that neither open nor close a connection: acknowledgements,
    /// also those of keep-alive.
    pub acknowledgements: u64,
    /// Packets of TCP that open, close or reset a connection.
    pub connection_packets: u64,
    /// Bytes of Ethernet headers.
    pub ethernet: u64,
    /// Bytes of VLAN tags.
    pub vlan: u64,
    /// Bytes of IP headers.
    pub ip: u64,
    /// Bytes of TCP headers.
    pub transport: u64,
    /// Bytes after the TCP header, or after the EtherType of Sampled Values: protocol and payload.
    pub application: u64,
    /// Packets of TCP whose payload was captured before. They are counted nowhere else: the network
    /// loses nothing, and only a loaded machine retransmits, because an acknowledgement is late.
    #[serde(default)]
    pub retransmissions: u64,
}

/// Counts the packets of a selection.
#[derive(Debug)]
pub(super) struct Counter {
    selection: Selection,
    /// The end of the payload that was captured, as a sequence number, by source and destination.
    captured: BTreeMap<[SocketAddr; 2], u32>,
}

/// The packets of a run, before, during and after its messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Phases {
    /// Until the first message: connections are opened, and subscribed.
    pub opening: Traffic,
    /// From the first message to the last arrival.
    pub messages: Traffic,
    /// The end of the connections.
    pub closing: Traffic,
}

impl Traffic {
    /// Bytes of all layers.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.ethernet + self.vlan + self.ip + self.transport + self.application
    }
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.acknowledgements += other.acknowledgements;
        self.connection_packets += other.connection_packets;
        self.ethernet += other.ethernet;
        self.vlan += other.vlan;
        self.ip += other.ip;
        self.transport += other.transport;
        self.application += other.application;
        self.retransmissions += other.retransmissions;
    }
}

impl Phases {
    /// All packets.
    #[must_use]
    pub fn total(&self) -> Traffic {
        let mut total = self.opening;
        total += self.messages;
        total += self.closing;
        total
    }

    /// Adds a packet to the phase of its time: messages pass from the first to the second time.
    pub fn add(&mut self, at: Instant, [first, last]: [Instant; 2], packet: Traffic) {
        let phase = match at {
            at if at < first => &mut self.opening,
            at if at <= last => &mut self.messages,
            _ => &mut self.closing,
        };
        *phase += packet;
    }
}

impl Counter {
    pub(super) fn new(selection: Selection) -> Self {
        Self { selection, captured: BTreeMap::new() }
    }

    /// The layers of a captured packet; `None` for one that is not counted. `has_tag` if the kernel
    /// has removed a VLAN tag from the frame.
    pub(super) fn count(&mut self, packet: &CapturedPacket<'_>, has_tag: bool) -> Option<Traffic> {
        match (self.selection, packet.ether_type) {
            (Selection::Connections(address), IPV4 | IPV6) => self.segment(address, packet.bytes),
            (Selection::SampledValues, SAMPLED_VALUES) => Some(Traffic {
                packets: 1,
                ethernet: ETHERNET,
                vlan: if has_tag { VLAN } else { 0 },
                application: packet.bytes.len() as u64,
                ..Traffic::default()
            }),
            _ => None,
        }
    }

    /// The layers of a TCP segment with this address at one of its ends.
    fn segment(&mut self, address: SocketAddr, bytes: &[u8]) -> Option<Traffic> {
        let ip = IpPacket::parse(bytes).ok()?;
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { return None };
        let header = tcp.header().ok()?;
        let [source, destination] = match ip.addresses() {
            Addresses::V4 { source, destination } => [source.into(), destination.into()],
            Addresses::V6 { source, destination } => [source.into(), destination.into()],
        };
        let ends = [
            SocketAddr::new(source, header.source_port),
            SocketAddr::new(destination, header.destination_port),
        ];
        ends.contains(&address).then_some(())?;
        let (payload, all) = (tcp.payload().len(), tcp.header_len() + tcp.payload().len());
        let has = |flag: Flags| header.flags.has(flag);
        let changes = [Flags::SYN, Flags::FIN, Flags::RST].into_iter().any(has);
        if has(Flags::SYN) {
            self.captured.remove(&ends);
        } else if payload > 0 && self.is_retransmission(ends, header.seq, payload as u32) {
            return Some(Traffic { retransmissions: 1, ..Traffic::default() });
        }
        Some(Traffic {
            packets: 1,
            acknowledgements: u64::from(payload == 0 && !changes),
            connection_packets: u64::from(changes),
            ethernet: ETHERNET,
            ip: (bytes.len() - all) as u64,
            transport: tcp.header_len() as u64,
            application: payload as u64,
            ..Traffic::default()
        })
    }

    /// Whether the payload was captured before, by serial number arithmetic (RFC 1982).
    fn is_retransmission(&mut self, ends: [SocketAddr; 2], start: u32, payload: u32) -> bool {
        let end = start.wrapping_add(payload);
        let captured = self.captured.entry(ends).or_insert(start);
        let is_new = end.wrapping_sub(*captured).cast_signed() > 0;
        if is_new {
            *captured = end;
        }
        !is_new
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    const BROKER: ([u8; 4], u16) = ([10, 1, 0, 1], 1883);

    /// An IPv4 packet with 20 B of header, and a TCP segment with 32 B, from the broker.
    fn packet(flags: u8, payload: usize) -> Vec<u8> {
        let length = (52 + payload) as u16;
        let mut bytes =
            vec![0x45, 0, (length >> 8) as u8, length as u8, 0, 0, 0x40, 0, 64, 6, 0, 0];
        bytes.extend(BROKER.0);
        bytes.extend([10, 1, 0, 2]);
        bytes.extend(BROKER.1.to_be_bytes());
        bytes.extend([0x9c, 0x40, 0, 0, 0, 1, 0, 0, 0, 1, 0x80, flags, 1, 0, 0, 0, 0, 0]);
        // No-operation twice, and the timestamps option.
        bytes.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 1]);
        bytes.extend(vec![7; payload]);
        bytes
    }

    fn counted(bytes: &[u8], ether_type: u16, selection: Selection) -> Option<Traffic> {
        count(&mut Counter::new(selection), bytes, ether_type)
    }

    fn count(counter: &mut Counter, bytes: &[u8], ether_type: u16) -> Option<Traffic> {
        let packet = CapturedPacket { at: Instant::ZERO, outgoing: false, ether_type, bytes };
        counter.count(&packet, true)
    }

    #[test]
    fn retransmissions_are_counted_apart() {
        let mut counter = Counter::new(Selection::Connections(BROKER.into()));
        let mut counted = |bytes: &[u8]| {
            let found = count(&mut counter, bytes, IPV4).unwrap();
            (found.packets, found.application, found.retransmissions)
        };
        // A keep-alive repeats a sequence number without payload. A segment with more data than was
        // captured is new.
        let (first, longer) = (packet(0x18, 100), packet(0x18, 150));
        assert_eq!(counted(&first), (1, 100, 0));
        assert_eq!(counted(&first), (0, 0, 1));
        assert_eq!(counted(&packet(0x10, 0)), (1, 0, 0));
        assert_eq!(counted(&longer), (1, 150, 0));
        // Another connection with the same ports.
        assert_eq!(counted(&packet(0x12, 0)), (1, 0, 0));
        assert_eq!(counted(&first), (1, 100, 0));
    }

    #[test]
    fn each_byte_of_a_segment_belongs_to_one_layer() {
        let connections = Selection::Connections(BROKER.into());
        let found = counted(&packet(0x18, 311), IPV4, connections).unwrap();
        assert_eq!(
            (found.ethernet, found.ip, found.transport, found.application),
            (14, 20, 32, 311)
        );
        assert_eq!((found.packets, found.acknowledgements, found.bytes()), (1, 0, 377));
        let acknowledgement = counted(&packet(0x10, 0), IPV4, connections).unwrap();
        assert_eq!((acknowledgement.acknowledgements, acknowledgement.connection_packets), (1, 0));
        let opening = counted(&packet(0x12, 0), IPV4, connections).unwrap();
        assert_eq!((opening.acknowledgements, opening.connection_packets), (0, 1));
    }

    #[test]
    fn other_packets_are_not_counted() {
        let other = Selection::Connections(([10, 1, 0, 1], 5672).into());
        assert_eq!(counted(&packet(0x18, 10), IPV4, other), None);
        assert_eq!(counted(&packet(0x18, 10), IPV4, Selection::SampledValues), None);
        assert_eq!(counted(&[1, 2, 3], IPV4, other), None, "no IP packet");
    }

    #[test]
    fn a_frame_of_sampled_values_has_its_tag() {
        let found = counted(&[0; 84], SAMPLED_VALUES, Selection::SampledValues).unwrap();
        assert_eq!(
            (found.ethernet, found.vlan, found.application, found.bytes()),
            (14, 4, 84, 102)
        );
    }

    #[test]
    fn packets_belong_to_the_phase_of_their_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let one = Traffic { packets: 1, ..Traffic::default() };
        let mut phases = Phases::default();
        for millis in [1, 10, 15, 20, 21] {
            phases.add(at(millis), [at(10), at(20)], one);
        }
        let counts =
            [phases.opening, phases.messages, phases.closing].map(|traffic| traffic.packets);
        assert_eq!((counts, phases.total().packets), ([1, 3, 1], 5));
    }
}
