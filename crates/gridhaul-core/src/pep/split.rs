//! A split connection (RFC 3135, section 2.4): the proxy ends the connection of each side, and
//! what arrives over one goes out over the other.
//!
//! Trade-offs are listed in `docs/limitations/split.md`.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use super::coupling::{Coupling, Manner, unit_params};
use super::{BufferStatus, Outgoing, Proxy, Side, Statistics};
use crate::tcp::{Connection, Segment, StackParams, State};

/// Two connections with a buffer between them.
///
/// The left one is accepted at once, and the right one is opened at once when SYN comes from the
/// left. If the right side refuses, resets or does not answer for 100 s (RFC 1122, section
/// 4.2.3.5), the left one is reset, and the reverse. Each side may close while the other goes on.
/// Segments that belong to no connection, as after a restart of the proxy, are answered by resets.
#[derive(Debug, Clone)]
pub struct Split {
    coupling: Coupling,
    /// For the right end, when SYN comes: its initial sequence number.
    dial: Option<(Arc<StackParams>, u32)>,
}

impl Split {
    /// A proxy that waits for SYN. It keeps up to `buffer` of each direction; `isns` are its own
    /// initial sequence numbers towards the left and the right.
    #[must_use]
    pub fn new(params: Arc<StackParams>, buffer: Bytes, isns: [u32; 2]) -> Self {
        let params = unit_params(params, buffer);
        let ends = isns.map(|isn| Connection::listen(params.clone(), isn));
        let dial = Some((params, isns[Side::Server.index()]));
        Self { coupling: Coupling::new(ends, Manner::Apart, [0; 2]), dial }
    }

    /// A proxy in a connection that exists from the start, without handshake: it stands in for
    /// the right host towards the left and the reverse, with their initial sequence numbers
    /// `isns`. `next` are the stacks of the next hops on both sides: what they offer at the start.
    #[must_use]
    pub fn established(
        params: Arc<StackParams>,
        buffer: Bytes,
        isns: [u32; 2],
        next: [&StackParams; 2],
    ) -> Self {
        let params = unit_params(params, buffer);
        let ends = Side::BOTH.map(|side| {
            let (own, peer) = (isns[side.other().index()], isns[side.index()]);
            Connection::established(params.clone(), own, next[side.index()], peer)
        });
        Self { coupling: Coupling::new(ends, Manner::Apart, [0; 2]), dial: None }
    }

    /// The end that faces a side.
    #[must_use]
    pub fn end(&self, side: Side) -> &Connection {
        self.coupling.end(side)
    }
}

impl Proxy for Split {
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.coupling.handle_segment(now, from, segment);
        if self.coupling.end(Side::Client).state() != State::Listen
            && let Some((params, isn)) = self.dial.take()
        {
            self.coupling.replace(Side::Server, Connection::connect(params, isn));
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.coupling.poll_transmit(now)
    }

    fn next_deadline(&self) -> Instant {
        self.coupling.next_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.coupling.handle_timeout(now);
        if self.coupling.is_deserted(now) {
            self.coupling.abort();
        }
    }

    fn buffer_status(&self, from: Side) -> BufferStatus {
        self.coupling.buffer_status(from)
    }

    fn bytes_at_risk(&self) -> u64 {
        self.coupling.bytes_at_risk()
    }

    fn lost(&self) -> u64 {
        self.coupling.lost()
    }

    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        self.coupling.accepts(from, segment)
    }

    fn is_finished(&self) -> bool {
        self.coupling.is_finished()
    }

    fn reset(&mut self) {
        self.coupling.abort();
    }

    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.coupling.set_window_shift(toward, shift);
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            released: Side::BOTH.map(|from| self.buffer_status(from).released),
            at_risk: self.bytes_at_risk(),
            lost: self.lost(),
            ..Statistics::default()
        };
        self.coupling.count(&mut statistics);
        statistics
    }
}
