//! Content of a frame: a TCP segment, a report about the MTU of a path, or anything else.

use std::net::{IpAddr, SocketAddr};

use gridhaul_core::wire::{
    Addresses, EtherType, EthernetFrame, EthernetHeader, IpPacket, TcpPacket, Transport,
};

use super::Frame;
use super::key::Endpoints;
use super::path_mtu::PacketTooBig;

/// Content of a frame.
#[derive(Debug)]
pub(super) enum Content<'a> {
    /// A TCP segment.
    Tcp(TcpFrame<'a>),
    /// A fragment of an IP packet with TCP.
    TcpFragment,
    /// A packet with the protocol number of TCP whose headers contradict its length. A receiver
    /// drops it.
    MalformedTcp,
    /// A router has dropped a packet that was too big for its next link.
    PacketTooBig(EthernetHeader, PacketTooBig),
    /// Anything else.
    Other,
}

/// A TCP segment in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct TcpFrame<'a> {
    /// Header of the frame with all VLAN tags.
    pub(super) ethernet: EthernetHeader,
    /// The packet from the IP header on, without the padding of the frame.
    pub(super) packet: &'a [u8],
    pub(super) ip: IpPacket<'a>,
    pub(super) tcp: TcpPacket<'a>,
}

/// Protocol numbers of IP (RFC 9293, RFC 792, RFC 4443).
const TCP: u8 = 6;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

impl<'a> Content<'a> {
    /// Parses a frame.
    pub(super) fn of(frame: &Frame<'a>) -> Self {
        let Ok(EthernetFrame { header: mut ethernet, payload }) = EthernetFrame::parse(frame.bytes)
        else {
            return Self::Other;
        };
        if let Some(outer) = frame.tag {
            let [inner, None] = ethernet.tags else { return Self::Other };
            ethernet.tags = [Some(outer), inner];
        }
        if !matches!(ethernet.ether_type, EtherType::IPV4 | EtherType::IPV6) {
            return Self::Other;
        }
        let Ok(ip) = IpPacket::parse(payload) else {
            // Places of the protocol (IPv4, RFC 791) and of the next header (IPv6, RFC 8200).
            let at = if ethernet.ether_type == EtherType::IPV4 { 9 } else { 6 };
            let is_tcp = payload.get(at) == Some(&TCP);
            return if is_tcp { Self::MalformedTcp } else { Self::Other };
        };
        if ip.is_fragment() {
            // The fragment header of IPv6 begins with the protocol (RFC 8200, section 4.5).
            let is_tcp = ip.protocol() == TCP
                || ethernet.ether_type == EtherType::IPV6 && ip.payload().first() == Some(&TCP);
            return if is_tcp { Self::TcpFragment } else { Self::Other };
        }
        match ip.transport() {
            Ok(Transport::Tcp(tcp)) => {
                let packet = &payload[..ip.header_len() + ip.payload().len()];
                Self::Tcp(TcpFrame { ethernet, packet, ip, tcp })
            }
            Ok(Transport::Other(ICMP | ICMPV6)) => match PacketTooBig::parse(&ip) {
                Some(report) => Self::PacketTooBig(ethernet, report),
                None => Self::Other,
            },
            Err(_) if ip.protocol() == TCP => Self::MalformedTcp,
            _ => Self::Other,
        }
    }
}

impl TcpFrame<'_> {
    /// Addresses and ports.
    pub(super) fn ends(&self) -> Endpoints {
        let (source, destination): (IpAddr, IpAddr) = match self.ip.addresses() {
            Addresses::V4 { source, destination } => (source.into(), destination.into()),
            Addresses::V6 { source, destination } => (source.into(), destination.into()),
        };
        let segment = self.ip.payload();
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        Endpoints {
            source: SocketAddr::new(source, port(0)),
            destination: SocketAddr::new(destination, port(2)),
        }
    }

    /// Whether the IP header has options or extension headers, which written packets do not have.
    pub(super) fn has_ip_options(&self) -> bool {
        self.ip.header_len() != self.ip.header().header_len()
    }
}
