//! What travels over the links.

use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    /// Number of the flow.
    pub flow: u32,
    /// Links of its route that it has entered.
    pub hop: u16,
    /// Whether it travels from the `to` end to the `from` end.
    pub returning: bool,
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
    /// When the application had it ready.
    pub ready: Instant,
}
