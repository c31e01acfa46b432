//! A split connection (RFC 3135, section 2.4): the proxy terminates the connection of each side,
//! and forwards data that arrives over one connection over the other.
//!
//! Trade-offs are listed in `docs/limitations/split.md`.

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use super::coupling::{Coupling, CouplingMode, proxy_params};
use super::{BufferStatus, Outgoing, Proxy, Side, Statistics};
use crate::tcp::{Connection, Segment, StackParams, State};

/// Two connections with a buffer between them.
///
/// When SYN arrives from the client, the proxy accepts the client's connection and opens the
/// server's at once. If the server refuses the connection, resets it or does not answer for 100 s
/// (RFC 1122, section 4.2.3.5), the client's connection is reset, and vice versa. Each direction
/// may be closed while the other continues. Segments that belong to no connection, as after a
/// restart of the proxy, are answered by resets.
#[derive(Debug, Clone)]
pub struct Split {
    coupling: Coupling,
    /// Parameters and initial sequence number of the server's connection, until it is opened.
    pending_server: Option<(Arc<StackParams>, u32)>,
}

impl Split {
    /// A proxy that waits for SYN. It buffers up to `buffer` bytes of each direction; `isns` are
    /// its own initial sequence numbers toward the client and the server.
    #[must_use]
    pub fn new(params: Arc<StackParams>, buffer: Bytes, isns: [u32; 2]) -> Self {
        let params = proxy_params(params, buffer);
        let connections = isns.map(|isn| Connection::listen(params.clone(), isn));
        let shifts = [params.window_shift(); 2];
        let pending_server = Some((params, isns[Side::Server.index()]));
        Self { coupling: Coupling::new(connections, CouplingMode::Split, shifts), pending_server }
    }

    /// A proxy in a connection that exists from the start, without handshake: it impersonates the
    /// server toward the client and vice versa, with their initial sequence numbers `isns`. `next`
    /// are the parameters of the next hops on both sides, which determine their first windows.
    #[must_use]
    pub fn established(
        params: Arc<StackParams>,
        buffer: Bytes,
        isns: [u32; 2],
        next: [&StackParams; 2],
    ) -> Self {
        let params = proxy_params(params, buffer);
        let connections = Side::BOTH.map(|side| {
            let (own, peer) = (isns[side.other().index()], isns[side.index()]);
            Connection::established(params.clone(), own, next[side.index()], peer)
        });
        let shifts = [params.window_shift(); 2];
        let coupling = Coupling::new(connections, CouplingMode::Split, shifts);
        Self { coupling, pending_server: None }
    }

    /// The connection toward a side.
    #[must_use]
    pub fn connection(&self, side: Side) -> &Connection {
        self.coupling.connection(side)
    }
}

impl Proxy for Split {
    fn boxed_clone(&self) -> Box<dyn Proxy> {
        Box::new(self.clone())
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.coupling.handle_segment(now, from, segment);
        if self.coupling.connection(Side::Client).state() != State::Listen
            && let Some((params, isn)) = self.pending_server.take()
        {
            self.coupling.replace(Side::Server, Connection::connect(params, isn));
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        self.coupling.poll_transmit(now)
    }

    fn transmit(&mut self, now: Instant, send: &mut dyn FnMut(&Outgoing)) -> (Instant, u64) {
        self.coupling.transmit(now, send)
    }

    fn next_deadline(&self) -> Instant {
        self.coupling.next_deadline()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.coupling.handle_timeout(now);
        if self.coupling.exceeds_r2(now) {
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

    fn is_over(&self) -> bool {
        self.pending_server.is_none() && self.coupling.is_over()
    }

    fn reset(&mut self) {
        self.coupling.abort();
    }

    /// The hosts continue only if their sequence numbers are translated, but a reset loses no
    /// acknowledged byte.
    fn drain(&mut self, _now: Instant) {
        self.coupling.drain();
    }

    fn is_end_to_end(&self) -> bool {
        self.pending_server.is_none() && self.coupling.is_end_to_end()
    }

    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.coupling.set_window_shift(toward, shift);
    }

    fn add_connection_counters(&self, statistics: &mut Statistics) {
        self.coupling.count(statistics);
    }
}
