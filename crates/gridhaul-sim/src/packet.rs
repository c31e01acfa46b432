//! Packets on the links.

use gridhaul_core::link::{EcnCodePoint, LinkPayload};
use gridhaul_core::load::CoapDatagram;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use crate::end_id::EndId;

/// A packet in transit. Its size is kept small because every link copies it once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// The destination.
    pub to: EndId,
    /// Index of the next link in the list of routes.
    pub next: u32,
    /// When the sending end transmitted the packet.
    pub sent: Instant,
    pub body: Body,
}

/// The content of a packet.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    Tcp(Segment),
    Datagram(Datagram),
    /// A probe of a hybrid router.
    Probe(ProbePacket),
    /// A report of a node that a segment exceeds the MTU of a link.
    PacketTooBig(PacketTooBigReport),
}

/// The report that a segment exceeds the MTU of a link, on its way to the sender of the segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketTooBigReport {
    /// Sequence number of the segment.
    pub seq: u32,
    /// MTU of the link.
    pub mtu: u32,
    /// Size with headers.
    pub bytes: u32,
}

/// A probe of a hybrid router on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbePacket {
    /// Number of the probe.
    pub id: u32,
    /// Size with headers.
    pub bytes: u32,
}

/// A message that is sent as a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Payload in bytes.
    pub bytes: u32,
    /// Headers in bytes.
    pub header: u8,
    /// Whether the payload was altered on the way.
    pub is_altered: bool,
    /// Sequence number among the datagrams of the row of flows, from 0.
    pub number: u32,
    /// When the application had the message ready.
    pub ready: Instant,
    /// The part that the packet carries; `None` for the complete datagram.
    pub fragment: Option<Fragment>,
    /// The content of a datagram of a flow with confirmable messages; `None` for other flows.
    pub coap: Option<CoapDatagram>,
}

/// A fragment of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// IP header in bytes, with the fragment header of IPv6.
    pub header: u8,
    /// Where the fragment starts, in units of 8 B.
    pub start: u16,
    /// Bytes of the UDP header and the payload in the fragment.
    pub bytes: u32,
}

impl Packet {
    /// A placeholder that the caller overwrites.
    pub(crate) fn blank() -> Self {
        let to = EndId::of(0, FlowEnd::From);
        Self { to, next: 0, sent: Instant::ZERO, body: Body::Tcp(Segment::default()) }
    }

    /// The segment of the packet. Another content is replaced by an empty segment.
    #[inline]
    pub(crate) fn segment_mut(&mut self) -> &mut Segment {
        if !matches!(self.body, Body::Tcp(_)) {
            self.body = Body::Tcp(Segment::default());
        }
        match &mut self.body {
            Body::Tcp(segment) => segment,
            Body::Datagram(_) | Body::Probe(_) | Body::PacketTooBig(_) => {
                unreachable!("the body has just been set to a segment")
            }
        }
    }

    /// Number of the flow.
    #[inline]
    pub(crate) const fn flow(&self) -> u32 {
        self.to.flow()
    }

    /// Whether the packet travels from the `to` end to the `from` end.
    #[inline]
    pub(crate) const fn is_reverse(&self) -> bool {
        self.to.is_from()
    }
}

impl LinkPayload for Packet {
    /// The two directions of a flow count as two flows.
    fn flow(&self) -> u64 {
        u64::from(self.to.index())
    }

    fn ecn(&self) -> EcnCodePoint {
        match &self.body {
            Body::Tcp(segment) => segment.ecn,
            Body::Datagram(_) | Body::Probe(_) | Body::PacketTooBig(_) => EcnCodePoint::NotEct,
        }
    }

    fn mark(&mut self) {
        if let Body::Tcp(segment) = &mut self.body {
            segment.ecn = EcnCodePoint::Ce;
        }
    }

    fn has_payload(&self) -> bool {
        match &self.body {
            Body::Tcp(segment) => segment.len > 0,
            Body::Datagram(_) | Body::Probe(_) | Body::PacketTooBig(_) => true,
        }
    }
}

impl Body {
    /// Size on the link with headers.
    #[inline]
    pub(crate) const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Datagram(datagram) => match &datagram.fragment {
                None => datagram.bytes + datagram.header as u32,
                Some(fragment) => fragment.bytes + fragment.header as u32,
            },
            Self::Probe(probe) => probe.bytes,
            Self::PacketTooBig(report) => report.bytes,
        }
    }
}
