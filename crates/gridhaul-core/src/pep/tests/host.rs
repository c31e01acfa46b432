//! An end of the connection, with its application.

use std::sync::Arc;

use bytes::Bytes;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Packet, payload};
use crate::pep::{Payload, Side};
use crate::tcp::{Connection, Flags, Segment, Sender, StackParams, State, expand};

/// When an application closes its side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Close {
    /// As soon as everything is written.
    AtOnce,
    /// When the other end has closed.
    AfterPeer,
    /// Not at all.
    Never,
}

/// What an application does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Application {
    /// Bytes that it writes at the beginning.
    pub write: u64,
    pub close: Close,
    /// Takes so many bytes every so often; `None`: everything at once.
    pub reads: Option<(u64, Duration)>,
}

impl Application {
    pub(super) const fn new(write: u64, close: Close) -> Self {
        Self { write, close, reads: None }
    }
}

/// An end of the connection.
pub(super) struct Host {
    pub side: Side,
    pub connection: Connection,
    pub plan: Application,
    /// Window of the segment that came last.
    pub window_seen: Option<u32>,
    isn: u32,
    closed: bool,
    /// What has arrived of the other end's stream, some beyond gaps.
    received: Payload,
    checked: u64,
    /// What had arrived when it forgot the connection.
    had: u64,
    read: u64,
    next_read: Instant,
}

impl Host {
    /// An end that opens the connection (left) or is asked (right).
    pub(super) fn opening(
        side: Side,
        params: Arc<StackParams>,
        isn: u32,
        plan: Application,
    ) -> Self {
        let connection = match side {
            Side::Client => Connection::connect(params, isn),
            Side::Server => Connection::listen(params, isn),
        };
        Self::new(side, connection, isn, plan)
    }

    /// An end of a connection without handshake.
    pub(super) fn established(
        side: Side,
        params: Arc<StackParams>,
        peer: &StackParams,
        isns: [u32; 2],
        plan: Application,
    ) -> Self {
        let (isn, peer_isn) = (isns[side.index()], isns[side.other().index()]);
        let connection = Connection::established(params, isn, peer, peer_isn);
        Self::new(side, connection, isn, plan)
    }

    fn new(side: Side, mut connection: Connection, isn: u32, plan: Application) -> Self {
        let mut next_read = Instant::NEVER;
        if let Some((_, interval)) = plan.reads {
            connection.read_on_demand();
            next_read = Instant::ZERO + interval;
        }
        connection.write(plan.write);
        let closed = plan.close == Close::AtOnce;
        if closed {
            connection.close();
        }
        // What has arrived in order is checked and released after each segment.
        let received = Payload::new(connection.params().receive_window as usize);
        let (window_seen, checked, had, read) = (None, 0, 0, 0);
        Self {
            side,
            connection,
            plan,
            window_seen,
            isn,
            closed,
            received,
            checked,
            had,
            read,
            next_read,
        }
    }

    /// The host has forgotten the connection: whatever comes is refused.
    pub(super) fn forget(&mut self) {
        let params = Arc::new(self.connection.params().clone());
        self.had = self.delivered();
        self.connection = Connection::listen(params, self.isn);
        self.next_read = Instant::NEVER;
        self.closed = true;
    }

    /// Bytes of its own stream that are acknowledged to it.
    pub(super) fn acknowledged(&self) -> u64 {
        let (_, una) = self.connection.sent_and_acknowledged();
        una.saturating_sub(1).min(self.plan.write)
    }

    /// Bytes of the other end's stream that have arrived in order.
    pub(super) fn delivered(&self) -> u64 {
        self.connection.receiver().delivered().max(self.had)
    }

    /// Whether it was told by FIN that it has everything.
    pub(super) fn finished(&self) -> bool {
        self.connection.receiver().finished()
    }

    /// Whether its own close is acknowledged.
    pub(super) fn close_acknowledged(&self) -> bool {
        self.closed && self.connection.sender().is_some_and(Sender::fin_acknowledged)
    }

    pub(super) fn is_reset(&self) -> bool {
        self.connection.state() == State::Closed && !(self.finished() && self.close_acknowledged())
    }

    pub(super) fn handle(&mut self, now: Instant, packet: &Packet) {
        self.window_seen = Some(packet.segment.window);
        if let Some(taken) = self.connection.incoming(&packet.segment) {
            let len = (taken.end - taken.start) as usize;
            self.received.insert(taken.start as u32, &packet.bytes.slice(..len));
        }
        self.connection.handle_segment(now, &packet.segment);
        self.act();
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
        if let Some((bytes, interval)) = self.plan.reads
            && self.next_read <= now
        {
            let take = bytes.min(self.delivered() - self.read);
            self.read += take;
            self.connection.read(take);
            self.next_read = now + interval;
        }
    }

    /// What has arrived must be what the other end has sent.
    pub(super) fn check(&mut self, sent: u64) {
        let delivered = self.delivered();
        assert!(delivered <= sent, "{:?} has {delivered} of {sent} bytes", self.side);
        for at in self.checked..delivered {
            let expected = payload(self.side.other(), at);
            let found =
                self.received.read(at as u32, 1).and_then(|mut slices| slices.next()?.first());
            assert_eq!(found, Some(&expected), "{:?}: byte {at} of the stream", self.side);
        }
        self.checked = delivered;
        self.received.release_to(delivered as u32);
        if self.finished() {
            assert_eq!(delivered, sent, "{:?} was told that this is all", self.side);
        }
    }

    fn act(&mut self) {
        if self.plan.close == Close::AfterPeer && self.finished() && !self.closed {
            self.closed = true;
            self.connection.close();
        }
    }

    fn bytes_of(&self, segment: &Segment) -> Bytes {
        if segment.len == 0 || segment.flags.has(Flags::SYN) {
            return Bytes::new();
        }
        let (_, una) = self.connection.sent_and_acknowledged();
        let start = expand(segment.seq, self.isn, una).expect("a stream does not begin before 0");
        (start - 1..start - 1 + u64::from(segment.len))
            .map(|offset| payload(self.side, offset))
            .collect()
    }
}
