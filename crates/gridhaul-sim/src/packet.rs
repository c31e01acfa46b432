//! What travels over the links.

use gridhaul_core::link::LinkPayload;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

/// A packet on its way. It is kept small: every link copies it once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// The end to which it travels: twice the number of the flow, plus one for the `to` end.
    pub to: u32,
    /// Place in the list of routes of the link that comes next.
    pub next: u32,
    /// When its end sent it.
    pub sent: Instant,
    /// What it carries.
    pub body: Body,
}

/// What a packet carries.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Body {
    Tcp(Segment),
    Datagram(Datagram),
}

/// A message without reliability.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Datagram {
    /// Payload in bytes.
    pub bytes: u32,
    /// Headers in bytes.
    pub header: u8,
    /// Which one of its row of flows it is, from 0.
    pub number: u32,
    /// When the application had it ready.
    pub ready: Instant,
}

impl Packet {
    /// A packet to be overwritten.
    pub(crate) fn blank() -> Self {
        Self { to: 0, next: 0, sent: Instant::ZERO, body: Body::Tcp(Segment::default()) }
    }

    /// The segment that it carries, or a blank one in the place of a datagram.
    #[inline]
    pub(crate) fn segment_mut(&mut self) -> &mut Segment {
        if !matches!(self.body, Body::Tcp(_)) {
            self.body = Body::Tcp(Segment::default());
        }
        match &mut self.body {
            Body::Tcp(segment) => segment,
            Body::Datagram(_) => unreachable!("a segment has just been put there"),
        }
    }

    /// Number of its flow.
    #[inline]
    pub(crate) const fn flow(&self) -> u32 {
        self.to / 2
    }

    /// Whether it travels from the `to` end to the `from` end.
    #[inline]
    pub(crate) const fn returning(&self) -> bool {
        self.to.is_multiple_of(2)
    }
}

impl LinkPayload for Packet {
    /// Both ends of each flow send a flow of their own.
    fn flow(&self) -> u64 {
        u64::from(self.to)
    }
}

impl Body {
    /// Size on the wire with headers.
    #[inline]
    pub(crate) const fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Datagram(datagram) => datagram.bytes + datagram.header as u32,
        }
    }
}
