//! Performance-enhancing proxies (RFC 3135): nodes on the path of a connection that do more than
//! forward packets.
//!
//! [`aggregation`] forwards the messages of many connections over few upstream connections. The
//! other modes serve one connection each, run anywhere on its path, and implement [`Proxy`]:
//! segments of both endpoints come in, and segments to both endpoints go out. A proxy holds no
//! payload. Its caller keeps the payload that the proxy accepts ([`Proxy::accepts`]) in a
//! [`Payload`], reads the payload of an outgoing segment by its sequence numbers, and releases
//! payload when the proxy does ([`BufferStatus::released`]). The simulator keeps no payload at all.

mod aborted;
mod ack_filter;
mod ack_filter_trial;
pub mod aggregation;
mod coupling;
mod hop_timer;
mod mss_limit;
mod outgoing_queue;
mod pass_through;
mod payload;
mod reflect;
mod snoop;
mod split;
mod spoof;
#[cfg(test)]
mod tests;
mod time_average;
mod transparent;

use std::fmt;

use gridhaul_scenario::units::Instant;

use crate::tcp::Segment;

pub use ack_filter::AckFilter;
pub use ack_filter_trial::AckFilterTrial;
pub use mss_limit::MssLimit;
pub use pass_through::PassThrough;
pub use payload::Payload;
pub use reflect::Reflect;
pub use snoop::Snoop;
pub use split::Split;
pub use spoof::Spoof;
pub use time_average::TimeAverage;

/// One of the two directions in which segments leave a proxy, named after the endpoint it leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Toward the endpoint that opens the connection (active open, RFC 9293, section 3.3).
    Client,
    /// Toward the endpoint that accepts the connection (passive open).
    Server,
}

impl Side {
    /// Both sides, the client's first.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The opposite side.
    #[inline]
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }

    /// 0 for the client side, 1 for the server side.
    #[inline]
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// A segment that leaves a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outgoing {
    /// The side to which the segment is sent.
    pub to: Side,
    /// Header fields and payload length.
    pub segment: Segment,
    /// The source of header and payload.
    pub origin: Origin,
}

impl Outgoing {
    /// A segment of the proxy that is still to be written.
    fn unwritten() -> Self {
        Self { to: Side::Client, segment: Segment::default(), origin: Origin::Proxy }
    }

    /// The segment that is being handled, forwarded with the header of `segment`.
    pub(crate) fn forward(to: Side, segment: Segment, incoming: &Segment) -> Self {
        let is_same = segment == *incoming;
        let origin = if is_same { Origin::Forwarded } else { Origin::Rewritten };
        Self { to, segment, origin }
    }

    /// Whether this is the segment that is being handled, with the same or with another header.
    #[inline]
    #[must_use]
    pub fn is_forwarded(&self) -> bool {
        self.origin != Origin::Proxy
    }
}

/// How the caller builds the packet of an outgoing segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The packet that has just arrived, unchanged, with options that gridhaul does not parse.
    Forwarded,
    /// The packet that has just arrived with another header. Its payload is that of the packet, or
    /// the part of it that the sequence numbers of the segment cover.
    Rewritten,
    /// A new packet: the header is the proxy's, and the payload was stored by the caller.
    Proxy,
}

/// Counters of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Payload bytes that the next hop has acknowledged, by the side that has sent them.
    pub released: [u64; 2],
    /// Payload bytes that were acknowledged to their sender and not by the next hop
    /// ([`BufferStatus::bytes_at_risk`]).
    pub at_risk: u64,
    /// Payload bytes that were acknowledged and will not be delivered ([`Proxy::lost`]).
    pub lost: u64,
    /// Segments retransmitted toward each side.
    pub retransmissions: [u64; 2],
    /// Expirations of the retransmission timer toward each side.
    pub timeouts: [u64; 2],
}

/// A proxy on the path of one connection.
///
/// Call order: after every `handle_*`, [`poll_transmit`](Self::poll_transmit) until `None`, and
/// [`handle_timeout`](Self::handle_timeout) at [`next_deadline`](Self::next_deadline). Times never
/// decrease.
pub trait Proxy: fmt::Debug + Send + Sync {
    /// A proxy in the same state, for a run that is continued twice.
    fn boxed_clone(&self) -> Box<dyn Proxy>;

    /// Handles a segment from an endpoint, or from the next proxy on its side.
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment);

    /// The next segment to send now, if any.
    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing>;

    /// Passes all segments that are to be sent now to `send`: [`Self::poll_transmit`] until `None`,
    /// in one call. Returns the time of the next timeout and the bytes at risk after that.
    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&Outgoing)) -> (Instant, u64) {
        while let Some(outgoing) = self.poll_transmit(now) {
            send(&outgoing);
        }
        (self.next_deadline(), self.bytes_at_risk())
    }

    /// Time of the next timeout; [`Instant::NEVER`] if no timer runs.
    fn next_deadline(&self) -> Instant {
        Instant::NEVER
    }

    /// Handles all timers that have expired.
    fn handle_timeout(&mut self, _now: Instant) {}

    /// State of the buffer for the payload that `from` has sent.
    fn buffer_status(&self, _from: Side) -> BufferStatus {
        BufferStatus::default()
    }

    /// Payload bytes of both directions that were acknowledged to their sender and are not yet
    /// acknowledged by the next hop.
    fn bytes_at_risk(&self) -> u64 {
        self.buffer_status(Side::Client).bytes_at_risk
            + self.buffer_status(Side::Server).bytes_at_risk
    }

    /// Payload bytes that were acknowledged to their sender and will never be delivered, as far as
    /// this proxy has detected: the proxy has aborted the connection, or has found the bytes
    /// missing after the restart of another proxy.
    fn lost(&self) -> u64 {
        0
    }

    /// The payload of a segment that the proxy would store if the segment arrived now: sequence
    /// number of the first byte, and length. To be called before [`Self::handle_segment`]; the
    /// caller stores these bytes.
    fn accepts(&self, _from: Side, _segment: &Segment) -> Option<(u32, u32)> {
        None
    }

    /// Whether a new proxy would behave in the same way: no connection is open here, the buffer is
    /// empty, and no segment is waiting. The state may be discarded. To be called when
    /// [`poll_transmit`](Self::poll_transmit) has returned `None`.
    fn is_finished(&self) -> bool;

    /// Whether both directions are closed or reset: SYN of the client begins another connection.
    fn is_over(&self) -> bool {
        self.is_finished()
    }

    /// The hosts have stated the largest segments that they accept: to be called when SYN-ACK has
    /// arrived, before it is handled. Proxies that send no segments of their own ignore the call,
    /// and a proxy that has joined the connection keeps its segment size.
    fn limit_mss(&mut self, _limit: MssLimit) {}

    /// Resets the connection: RST is sent to both sides by a proxy that has their sequence numbers.
    /// Other proxies ignore the call.
    fn reset(&mut self) {}

    /// Prepares the end of the proxy, so that its caller can discard the state without a loss for
    /// the hosts. Segments that wait are sent, and data is acknowledged to its sender only after
    /// the next hop has acknowledged it. Once no bytes are at risk, the state may be discarded;
    /// only the hosts of [`Split`] cannot continue without it, unless [`Self::is_end_to_end`]. To
    /// be called again until then, with [`poll_transmit`](Self::poll_transmit) after each call.
    fn drain(&mut self, _now: Instant) {}

    /// Whether each host has received everything that was acknowledged to the other one, after
    /// [`drain`](Self::drain) of a proxy that terminates their connections. Both connections then
    /// carry the same streams: the hosts can continue with a caller that forwards their segments
    /// and translates sequence numbers and windows, while this proxy is discarded.
    fn is_end_to_end(&self) -> bool {
        false
    }

    /// Segments toward this side carry their windows in units of 2^`shift` bytes (RFC 7323, section
    /// 2.3). From now on windows are rounded down to whole units before they are offered, so that
    /// the peer reads exactly the window that the proxy has offered. Windows of SYN are never
    /// scaled; those of incoming segments are passed in bytes.
    fn set_window_shift(&mut self, _toward: Side, _shift: u8) {}

    /// Whether the proxy has found that it lowers the goodput: it forwards all segments unchanged
    /// from now on, and the caller may discard it.
    fn lowers_goodput(&self) -> bool {
        false
    }

    /// Counters so far.
    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            released: Side::BOTH.map(|from| self.buffer_status(from).released),
            at_risk: self.bytes_at_risk(),
            lost: self.lost(),
            ..Statistics::default()
        };
        self.add_connection_counters(&mut statistics);
        statistics
    }

    /// Adds the counters of connections that end at the proxy.
    fn add_connection_counters(&self, _statistics: &mut Statistics) {}

    /// Sequence number of the first byte of `from` that [`Self::buffer_status`] counts: `None` if
    /// this is the byte after SYN.
    fn first_sequence_number(&self, _from: Side) -> Option<u32> {
        None
    }
}

/// Memory of an idle connection: a relay has up to a million of them.
const _: () = {
    assert!(size_of::<Reflect>() <= 64);
    assert!(size_of::<coupling::Coupling>() <= 328);
    assert!(size_of::<spoof::StoringRelay>() <= 656);
    assert!(size_of::<Snoop>() <= 456);
    assert!(size_of::<AckFilter>() <= 184);
};

impl Clone for Box<dyn Proxy> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// State of the buffer for one direction, in bytes of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BufferStatus {
    /// Bytes in the buffer, copies of forwarded segments included.
    pub bytes: u64,
    /// Acknowledged to the sender and not acknowledged by the next hop: lost if this proxy fails
    /// (RFC 3135, section 4.1.2, fate sharing).
    pub bytes_at_risk: u64,
    /// Received in order since the beginning, and passed on for transmission. The acknowledgement
    /// may follow later.
    pub received: u64,
    /// Acknowledged to the sender since the beginning.
    pub acknowledged: u64,
    /// Acknowledged by the next hop since the beginning.
    pub released: u64,
}
