//! Data of one direction of a connection, and the headers of its packets.

use std::net::SocketAddr;

use bytes::Bytes;
use gridhaul_core::pep::Payload;
use gridhaul_core::wire::{Addresses, EthernetHeader, IpHeader};

use super::content::TcpFrame;

/// State of one direction.
#[derive(Debug)]
pub(super) struct Direction {
    /// Payload that the proxy has accepted.
    pub(super) store: Payload,
    /// Headers of the last packet from the host that sends the data.
    pub(super) headers: Option<LowerHeaders>,
    /// Largest packet that a router on the path to the receiver forwards.
    pub(super) path_mtu: u32,
    /// Added to a sequence number of the proxy for that of the host that sends the data: zero
    /// unless the proxy terminates the connections.
    pub(super) renumbering: u32,
    /// Identification of the last generated packet that may be fragmented.
    identification: u16,
}

/// Headers below TCP, which packets of the proxy have as well: MAC addresses, VLAN tags,
/// differentiated services, hop limit and flow label are those of the host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Template {
    pub(super) ethernet: EthernetHeader,
    pub(super) ip: IpHeader,
}

/// The fields of a [`Template`] but the addresses of IP, which are those of the connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct LowerHeaders {
    ethernet: EthernetHeader,
    traffic_class: u8,
    hop_limit: u8,
    dont_fragment: bool,
    flow_label: u32,
}

const _: () = assert!(size_of::<Option<LowerHeaders>>() <= 36);
const _: () = assert!(size_of::<Direction>() <= 96);

/// The two bits of the traffic class for ECN (RFC 3168, section 5).
const ECN: u8 = 0b11;

impl Direction {
    /// Stores at most `limit` bytes of payload.
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            store: Payload::new(limit),
            headers: None,
            path_mtu: u32::MAX,
            renumbering: 0,
            identification: 0,
        }
    }

    /// Discards the stored payload, and accepts any sequence number next.
    pub(super) fn clear(&mut self) {
        self.store = Payload::new(usize::MAX);
    }

    /// Stores the payload of a segment from `start` on, whose first byte has this sequence number.
    pub(super) fn insert(&mut self, seq: u32, payload: &[u8]) {
        self.store.insert(seq, &Bytes::copy_from_slice(payload));
    }

    /// IP header of the next generated packet. It is not ECN-capable: retransmissions must not be
    /// (RFC 3168, section 6.1.5), and a proxy that acknowledges data negotiates no ECN.
    pub(super) fn next_ip_header(&mut self, template: &IpHeader) -> IpHeader {
        // RFC 6864: the identification of a packet that cannot be fragmented has no
        // meaning; others need different numbers.
        self.identification = self.identification.wrapping_add(1);
        let identification = if template.dont_fragment { 0 } else { self.identification };
        IpHeader { traffic_class: template.traffic_class & !ECN, identification, ..*template }
    }
}

impl LowerHeaders {
    /// The headers of a packet.
    pub(super) fn of(frame: &TcpFrame<'_>) -> Self {
        let ethernet = frame.ethernet;
        let IpHeader { traffic_class, hop_limit, dont_fragment, flow_label, .. } =
            frame.ip.header();
        Self { ethernet, traffic_class, hop_limit, dont_fragment, flow_label }
    }

    /// The headers of packets between these hosts.
    pub(super) fn template(&self, [source, destination]: [SocketAddr; 2]) -> Template {
        let Self { ethernet, traffic_class, hop_limit, dont_fragment, flow_label } = *self;
        let addresses = Addresses::new(source.ip(), destination.ip());
        let ip = IpHeader::new(addresses.expect("both hosts have the same version of IP"));
        Template {
            ethernet,
            ip: IpHeader { traffic_class, hop_limit, dont_fragment, flow_label, ..ip },
        }
    }
}

impl Template {
    /// The headers of a packet.
    pub(super) fn of(frame: &TcpFrame<'_>) -> Self {
        Self { ethernet: frame.ethernet, ip: frame.ip.header() }
    }

    /// Headers of a packet in the opposite direction, before one was seen.
    pub(super) const fn reversed(&self) -> Self {
        let ethernet = EthernetHeader {
            destination: self.ethernet.source,
            source: self.ethernet.destination,
            ..self.ethernet
        };
        let ip = IpHeader::new(reversed(&self.ip.addresses));
        let traffic_class = self.ip.traffic_class;
        Self { ethernet, ip: IpHeader { traffic_class, ..ip } }
    }
}

const fn reversed(addresses: &Addresses) -> Addresses {
    use Addresses::{V4, V6};
    match *addresses {
        V4 { source, destination } => V4 { source: destination, destination: source },
        V6 { source, destination } => V6 { source: destination, destination: source },
    }
}
