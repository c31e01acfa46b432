//! An endpoint of the connection, with its application.

use std::sync::Arc;

use bytes::Bytes;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Packet, payload};
use crate::pep::{Payload, Side};
use crate::tcp::{Connection, Flags, Segment, Sender, StackParams, State, expand};

/// When an application closes its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    /// After writing all data.
    AtOnce,
    /// After FIN of the peer.
    AfterPeer,
    /// Never.
    Never,
}

/// Behaviour of an application.
#[derive(Debug, Clone, Copy)]
pub(super) struct Application {
    /// Bytes that are written at the beginning.
    pub write: u64,
    pub close: Close,
    /// Number of bytes read per interval; `None`: all data is read at once.
    pub reads: Option<(u64, Duration)>,
}

impl Application {
    pub(super) const fn new(write: u64, close: Close) -> Self {
        Self { write, close, reads: None }
    }
}

/// An endpoint of the connection.
pub(super) struct Host {
    pub side: Side,
    pub connection: Connection,
    pub application: Application,
    /// Window of the last segment that arrived.
    pub window_seen: Option<u32>,
    isn: u32,
    closed: bool,
    /// Received data of the peer's stream, possibly with gaps.
    received: Payload,
    checked: u64,
    /// Bytes that had arrived when the host lost the state of the connection.
    delivered_before: u64,
    read: u64,
    next_read: Instant,
}

impl Host {
    /// A host that opens the connection (client) or accepts it (server).
    pub(super) fn opening(
        side: Side,
        params: Arc<StackParams>,
        isn: u32,
        application: Application,
    ) -> Self {
        let connection = match side {
            Side::Client => Connection::connect(params, isn),
            Side::Server => Connection::listen(params, isn),
        };
        Self::new(side, connection, isn, application)
    }

    /// A host of a connection without handshake.
    pub(super) fn established(
        side: Side,
        params: Arc<StackParams>,
        peer: &StackParams,
        isns: [u32; 2],
        application: Application,
    ) -> Self {
        let (isn, peer_isn) = (isns[side.index()], isns[side.other().index()]);
        let connection = Connection::established(params, isn, peer, peer_isn);
        Self::new(side, connection, isn, application)
    }

    fn new(side: Side, mut connection: Connection, isn: u32, application: Application) -> Self {
        let mut next_read = Instant::NEVER;
        if let Some((_, interval)) = application.reads {
            connection.read_on_demand();
            next_read = Instant::ZERO + interval;
        }
        connection.write(application.write);
        let closed = application.close == Close::AtOnce;
        if closed {
            connection.close();
        }
        // Data that has arrived in order is checked and released after each segment.
        let received = Payload::new(connection.params().receive_window as usize);
        let (window_seen, checked, delivered_before, read) = (None, 0, 0, 0);
        Self {
            side,
            connection,
            application,
            window_seen,
            isn,
            closed,
            received,
            checked,
            delivered_before,
            read,
            next_read,
        }
    }

    /// Loses the state of the connection, so that all further segments are answered by resets.
    pub(super) fn forget(&mut self) {
        let params = Arc::new(self.connection.params().clone());
        self.delivered_before = self.delivered();
        self.connection = Connection::listen(params, self.isn);
        self.next_read = Instant::NEVER;
        self.closed = true;
    }

    /// Bytes of the host's own stream that are acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        let (_, una) = self.connection.sent_and_acknowledged();
        una.saturating_sub(1).min(self.application.write)
    }

    /// Bytes of the peer's stream that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        self.connection.receiver().delivered().max(self.delivered_before)
    }

    /// Whether FIN of the peer has arrived in order.
    pub(super) fn finished(&self) -> bool {
        self.connection.receiver().finished()
    }

    /// Whether the FIN of this host is acknowledged.
    pub(super) fn close_acknowledged(&self) -> bool {
        self.closed && self.connection.sender().is_some_and(Sender::fin_acknowledged)
    }

    pub(super) fn is_reset(&self) -> bool {
        self.connection.state() == State::Closed && !(self.finished() && self.close_acknowledged())
    }

    pub(super) fn handle(&mut self, now: Instant, packet: &Packet) {
        self.window_seen = Some(packet.segment.window);
        if let Some(accepted) = self.connection.incoming(&packet.segment) {
            let len = (accepted.end - accepted.start) as usize;
            self.received.insert(accepted.start as u32, &packet.bytes.slice(..len));
        }
        self.connection.handle_segment(now, &packet.segment);
        self.close_after_peer();
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<Packet> {
        let segment = self.connection.poll_transmit(now)?;
        Some(Packet { segment, bytes: self.bytes_of(&segment) })
    }

    pub(super) fn next_deadline(&self) -> Instant {
        if self.connection.state() == State::Closed {
            return Instant::NEVER;
        }
        self.connection.next_deadline().min(self.next_read)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        if let Some((bytes, interval)) = self.application.reads
            && self.next_read <= now
        {
            let take = bytes.min(self.delivered() - self.read);
            self.read += take;
            self.connection.read(take);
            self.next_read = now + interval;
        }
    }

    /// Checks that the received data equals the data that the peer has sent.
    pub(super) fn check(&mut self, sent: u64) {
        let delivered = self.delivered();
        assert!(delivered <= sent, "{:?} has received {delivered} of {sent} bytes", self.side);
        for at in self.checked..delivered {
            let expected = payload(self.side.other(), at);
            let found =
                self.received.read(at as u32, 1).and_then(|mut slices| slices.next()?.first());
            assert_eq!(found, Some(&expected), "{:?}: byte {at} of the stream", self.side);
        }
        self.checked = delivered;
        self.received.release_to(delivered as u32);
        if self.finished() {
            assert_eq!(delivered, sent, "{:?} has received FIN", self.side);
        }
    }

    fn close_after_peer(&mut self) {
        if self.application.close == Close::AfterPeer && self.finished() && !self.closed {
            self.closed = true;
            self.connection.close();
        }
    }

    fn bytes_of(&self, segment: &Segment) -> Bytes {
        if segment.len == 0 || segment.flags.has(Flags::SYN) {
            return Bytes::new();
        }
        let (_, una) = self.connection.sent_and_acknowledged();
        let start =
            expand(segment.seq, self.isn, una).expect("the sequence number precedes the stream");
        (start - 1..start - 1 + u64::from(segment.len))
            .map(|offset| payload(self.side, offset))
            .collect()
    }
}
