//! Both ends of a connection for tests. The test carries the segments from one end to the other, so
//! that it can lose, change or hold back each of them.

use std::sync::Arc;

use gridhaul_scenario::scenario::Stack;
use gridhaul_scenario::units::{Duration, Instant};

use super::Connection;
use crate::tcp::{Segment, StackParams};

/// Initial sequence numbers.
pub(super) const CLIENT_ISN: u32 = 100;
pub(super) const SERVER_ISN: u32 = 900;

/// A client and a server without a network between them. Time passes only with deliveries and
/// expired timers, or if a test sets it.
#[derive(Debug)]
pub(super) struct Pair {
    pub client: Connection,
    pub server: Connection,
    pub now: Instant,
    /// Time from one end to the other.
    pub delay: Duration,
}

impl Pair {
    /// Ends before the handshake.
    pub(super) fn unopened(client: &Arc<StackParams>, server: &Arc<StackParams>) -> Self {
        let client = Connection::connect(Arc::clone(client), CLIENT_ISN);
        let server = Connection::listen(Arc::clone(server), SERVER_ISN);
        Self::new(client, server)
    }

    /// Ends with the same parameters and without a handshake.
    pub(super) fn established(params: &Arc<StackParams>) -> Self {
        let [client, server] = [(CLIENT_ISN, SERVER_ISN), (SERVER_ISN, CLIENT_ISN)]
            .map(|(isn, peer)| Connection::established(Arc::clone(params), isn, params, peer));
        Self::new(client, server)
    }

    const fn new(client: Connection, server: Connection) -> Self {
        Self { client, server, now: Instant::ZERO, delay: Duration::from_millis(10) }
    }

    /// The handshake. Returns what the client sends at its end.
    pub(super) fn open(&mut self) -> Vec<Segment> {
        let syn = self.client_segments();
        self.exchange(&syn)
    }

    /// All segments that the client sends now.
    pub(super) fn client_segments(&mut self) -> Vec<Segment> {
        segments(&mut self.client, self.now)
    }

    /// All segments that the server sends now.
    pub(super) fn server_segments(&mut self) -> Vec<Segment> {
        segments(&mut self.server, self.now)
    }

    /// The segments arrive at the server. Returns what it sends after each of them.
    pub(super) fn deliver_to_server(&mut self, segments: &[Segment]) -> Vec<Segment> {
        self.now += self.delay;
        answers(&mut self.server, self.now, segments)
    }

    /// The segments arrive at the client. Returns what it sends after each of them.
    pub(super) fn deliver_to_client(&mut self, segments: &[Segment]) -> Vec<Segment> {
        self.now += self.delay;
        answers(&mut self.client, self.now, segments)
    }

    /// The segments arrive at the server, and its answers at the client. Returns what the client
    /// sends then.
    pub(super) fn exchange(&mut self, segments: &[Segment]) -> Vec<Segment> {
        let answers = self.deliver_to_server(segments);
        self.deliver_to_client(&answers)
    }

    /// Waits for the next timer of the client.
    pub(super) fn expire_client_timer(&mut self) {
        self.now = self.client.next_deadline();
        self.client.handle_timeout(self.now);
    }
}

/// The time after this many milliseconds.
pub(super) fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

/// The parameters of a stack, for ends that share them.
pub(super) fn resolve(stack: &Stack) -> Arc<StackParams> {
    Arc::new(StackParams::resolve(stack))
}

fn segments(end: &mut Connection, now: Instant) -> Vec<Segment> {
    std::iter::from_fn(|| end.poll_transmit(now)).collect()
}

fn answers(end: &mut Connection, now: Instant, arrived: &[Segment]) -> Vec<Segment> {
    let mut sent = Vec::new();
    for segment in arrived {
        end.handle_segment(now, segment);
        sent.extend(segments(end, now));
    }
    sent
}
