//! Proxies that enhance performance (RFC 3135): what stands on the way of a connection and does
//! more than forward packets.
//!
//! `aggregator` is a collector of many connections. The others serve one connection each, stand
//! anywhere on its way, and are a [`Proxy`]: both ends' segments come in, segments to both ends go
//! out. They hold no payload. Their carrier keeps what a proxy accepts ([`Proxy::accepts`]) in a
//! [`Payload`], reads the bytes of an outgoing segment there by its sequence numbers, and releases
//! them when the proxy does ([`Held::released`]). The simulator carries no payload at all.

mod ack;
pub mod aggregate;
mod coupling;
mod level;
mod pass;
mod payload;
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
pub use payload::Payload;
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
    /// Where its header and its payload come from.
    pub origin: Origin,
}

impl Outgoing {
    /// A segment that goes on, of the one that has just come in.
    pub(crate) fn forward(to: Side, segment: Segment, incoming: &Segment) -> Self {
        let is_same = segment == *incoming;
        let origin = if is_same { Origin::Forwarded } else { Origin::Rewritten };
        Self { to, segment, origin }
    }

    /// Whether it is the segment that has just come in, with whatever header.
    #[inline]
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        self.origin != Origin::Proxy
    }
}

/// What a carrier sends for an outgoing segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The packet that has just come in, bit by bit, with options that no machine here knows.
    Forwarded,
    /// That packet with another header; the payload is that of the packet, or the part of it that
    /// the sequence numbers name.
    Rewritten,
    /// A new packet: the proxy has made the header, and the payload is what was kept.
    Proxy,
}

/// Counters of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Payload that the next hop has acknowledged, by the side that has sent it.
    pub released: [u64; 2],
    /// Payload that was acknowledged to its sender and not by the next hop ([`Held::bytes_at_risk`]).
    pub at_risk: u64,
    /// Payload that was acknowledged and will not be delivered ([`Proxy::lost`]).
    pub lost: u64,
    /// Segments that were retransmitted toward each side.
    pub retransmissions: [u64; 2],
    /// Expirations of the retransmission timer toward each side.
    pub timeouts: [u64; 2],
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
    fn bytes_at_risk(&self) -> u64 {
        self.held(Side::Left).bytes_at_risk + self.held(Side::Right).bytes_at_risk
    }

    /// Bytes that were acknowledged to their sender and will never be delivered, as far as this
    /// proxy has noticed: it gave the connection up, or found them missing after the restart of
    /// another proxy.
    fn lost(&self) -> u64 {
        0
    }

    /// The payload of a segment that the proxy would keep if it came in now: sequence number of the
    /// first byte, and length. To be asked before [`Self::handle_segment`]; the carrier keeps these
    /// bytes.
    fn accepts(&self, _from: Side, _segment: &Segment) -> Option<(u32, u32)> {
        None
    }

    /// Whether a fresh proxy would do as well in this place: no connection is open here, nothing is
    /// held, and nothing is to be sent. The state may be discarded. Ask when
    /// [`poll_transmit`](Self::poll_transmit) has returned `None`.
    fn is_finished(&self) -> bool;

    /// Ends the connection from outside, as if both ends had reset it: both sides are sent RST by
    /// a proxy that knows their sequence numbers. Others ignore it.
    fn reset(&mut self) {}

    /// Segments toward this side carry their windows in units of 2^`shift` bytes (RFC 7323, section
    /// 2.3). From now on windows are rounded down to whole units before they are offered, so that
    /// the peer reads what the proxy believes that it has offered. Windows of SYN are never scaled;
    /// those of incoming segments are handed over in bytes.
    fn set_window_shift(&mut self, _toward: Side, _shift: u8) {}

    /// Counters so far.
    fn statistics(&self) -> Statistics {
        Statistics {
            released: Side::BOTH.map(|from| self.held(from).released),
            at_risk: self.bytes_at_risk(),
            lost: self.lost(),
            ..Statistics::default()
        }
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
    pub bytes_at_risk: u64,
    /// Received in order from the beginning, and handed on. The acknowledgement may come later.
    pub received: u64,
    /// Acknowledged to its sender from the beginning.
    pub taken: u64,
    /// Acknowledged by the next hop from the beginning.
    pub released: u64,
}
