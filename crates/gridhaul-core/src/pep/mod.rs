//! Proxies that enhance performance (RFC 3135): what stands on the way of a connection and does
//! more than forward packets.
//!
//! `aggregate` is a collector of many connections. The others serve one connection each, stand
//! anywhere on its way, and are a [`Proxy`]: both ends' segments come in, segments to both ends go
//! out. They hold no payload: whoever carries it keeps the bytes of a segment that was taken in
//! until they are released ([`Held::released`]), and finds those of an outgoing one by its sequence
//! numbers.

mod ack;
pub mod aggregate;
mod coupling;
mod level;
mod pass;
mod reflect;
mod snoop;
mod split;
#[cfg(test)]
mod tests;

use std::fmt;

use gridhaul_scenario::units::Instant;

use crate::tcp::Segment;

pub use ack::AckThin;
pub use level::Level;
pub use pass::Pass;
pub use reflect::Reflect;
pub use snoop::Snoop;
pub use split::Split;

/// One of the two ends of a connection, as seen from a proxy on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// The end that opens the connection.
    Left,
    /// The end that is asked.
    Right,
}

impl Side {
    /// Both, the left one first.
    pub const BOTH: [Self; 2] = [Self::Left, Self::Right];

    /// The other one.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }

    /// 0 for the left one, 1 for the right one.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A segment that leaves a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// Where it goes.
    pub to: Side,
    /// What goes.
    pub segment: Segment,
    /// Whether it is the segment that has just come in and is only let through; else the proxy has
    /// made it, or sends what it has kept.
    pub passed: bool,
}

/// A proxy on the way of one connection.
///
/// Call order: after every `handle_*`, [`poll_transmit`](Self::poll_transmit) until `None`; then
/// [`next_deadline`](Self::next_deadline) says when [`handle_timeout`](Self::handle_timeout) is
/// wanted. Times never go back.
pub trait Proxy: fmt::Debug {
    /// A segment from one of the ends, or from the next proxy on its side.
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment);

    /// What is to be sent now, if anything.
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing>;

    /// When something is to be done without a segment.
    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// Time has come to a deadline.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// What is kept here of the payload that `from` has sent.
    fn held(&self, _from: Side) -> Held {
        Held::default()
    }

    /// Payload of both directions of which the only copy is here.
    fn only_copy(&self) -> u64 {
        self.held(Side::Left).only_copy + self.held(Side::Right).only_copy
    }

    /// Sequence number of the byte of `from` that [`Self::held`] counts as the first: `None` where
    /// it is the one behind SYN.
    fn first(&self, _from: Side) -> Option<u32> {
        None
    }
}

/// Payload in a proxy, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// In the buffer, copies too.
    pub bytes: u64,
    /// Acknowledged to its sender and not acknowledged by the next hop: lost with this proxy (RFC
    /// 3135, section 4.1.2, fate sharing).
    pub only_copy: u64,
    /// Received in order from the beginning, and handed on. The acknowledgement may come later.
    pub received: u64,
    /// Acknowledged to its sender from the beginning.
    pub taken: u64,
    /// Acknowledged by the next hop from the beginning.
    pub released: u64,
}
