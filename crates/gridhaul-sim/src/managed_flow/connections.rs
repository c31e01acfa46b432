//! The simulated connections of a member, as its manager uses them.

use gridhaul_core::load::{
    ConnectionCounters, ConnectionTransport, EndState, IdleRules, LocalPorts, NoLocalPort,
};
use gridhaul_core::tcp::{Connection, Flags, Segment, State};
use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::idle_watch::IdleWatch;
use crate::stacks::Stacks;

/// A connection that is not closed at both ends.
#[derive(Debug, Clone)]
pub(crate) struct LiveConnection {
    pub ends: [Connection; 2],
    isns: [u32; 2],
    /// Bytes that the applications of both ends have written.
    written: [u64; 2],
    /// When the application of the server accepts the connection; [`Instant::NEVER`] before the
    /// server has established it.
    pub accepted_at: Instant,
    holds_port: bool,
    /// `None` if idle connections are neither forgotten nor watched.
    pub(super) watch: Option<Box<IdleWatch>>,
}

impl LiveConnection {
    /// Whether a segment that has arrived at an end belongs to this connection.
    pub(super) fn owns(&self, side: usize, segment: &Segment) -> bool {
        let (peer_isn, isn) = (self.isns[1 - side], self.isns[side]);
        if segment.flags.has(Flags::SYN) {
            return segment.seq == peer_isn;
        }
        // The answer to a SYN without a connection has no sequence number of its own (RFC 9293,
        // section 3.10.7.1).
        if segment.flags.has(Flags::RST.with(Flags::ACK)) && segment.seq == 0 {
            return segment.ack == isn.wrapping_add(1);
        }
        // Sequence numbers lie between SYN and the number after FIN. Of more than 2 GB, only the
        // last numbers can be told from those of other connections.
        let numbers = self.written[1 - side] + SYN_AND_FIN;
        let behind = peer_isn.wrapping_add(numbers as u32).wrapping_sub(segment.seq);
        u64::from(behind) <= numbers.min(1 << 31)
    }

    /// The next segment of an end to transmit.
    pub(crate) fn poll_transmit(&mut self, now: Instant, end: FlowEnd) -> Option<Segment> {
        let connection = &mut self.ends[end as usize];
        match &mut self.watch {
            Some(watch) => watch.poll_transmit(now, end, connection),
            None => connection.poll_transmit(now),
        }
    }

    /// Does what the timers of an idle connection require.
    pub(super) fn watch_idle(&mut self, now: Instant, counters: &mut ConnectionCounters) {
        if let Some(watch) = &mut self.watch {
            watch.advance(now, &mut self.ends[0], counters);
        }
    }

    /// Whether the application of the server may accept the connection.
    pub(super) fn is_established_at_server(&self) -> bool {
        self.ends[1].is_open_early()
            || !matches!(self.ends[1].state(), State::Listen | State::SynReceived | State::Closed)
    }

    /// Whether a segment to the server completes a handshake. A server with data of Fast Open has
    /// established the connection before.
    pub(super) fn would_establish_server(&self, segment: &Segment) -> bool {
        self.ends[1].state() == State::SynReceived
            && self.accepted_at == Instant::NEVER
            && !segment.flags.has(Flags::SYN)
            && !segment.flags.has(Flags::RST)
    }

    /// Whether no further segment of the connection is of interest. A SYN of an attempt that the
    /// device has given up may still arrive.
    pub(super) fn has_ended(&self) -> bool {
        let [client, server] = self.ends.each_ref().map(Connection::state);
        matches!(client, State::TimeWait | State::Closed) && server == State::Closed
    }

    /// The port of a closed connection becomes free, or waits.
    pub(super) fn free_port(&mut self, now: Instant, ports: &mut LocalPorts) {
        match self.ends[0].state() {
            State::TimeWait if self.holds_port => {
                ports.keep_in_time_wait(now);
                self.holds_port = false;
            }
            State::Closed => self.release_port(ports),
            _ => {}
        }
    }

    pub(super) fn release_port(&mut self, ports: &mut LocalPorts) {
        if std::mem::take(&mut self.holds_port) {
            ports.release();
        }
    }

    pub(super) fn next_deadline(&self, now: Instant) -> Instant {
        let ends =
            self.ends.iter().map(Connection::next_deadline).fold(Instant::NEVER, Instant::min);
        let ends = match &self.watch {
            Some(watch) => ends.min(watch.next_deadline(&self.ends[0])),
            None => ends,
        };
        if self.accepted_at > now { ends.min(self.accepted_at) } else { ends }
    }
}

/// Sequence numbers of SYN and FIN.
const SYN_AND_FIN: u64 = 2;

/// The newest connection, and the means to open another.
#[derive(Debug)]
pub(super) struct CurrentConnection<'a> {
    pub now: Instant,
    pub live: &'a mut Vec<LiveConnection>,
    pub stacks: &'a Stacks,
    pub isns: &'a mut [u32; 2],
    pub ports: &'a mut LocalPorts,
    pub idle: Option<&'a IdleRules>,
    pub fast_open: bool,
}

impl CurrentConnection<'_> {
    fn end_mut(&mut self, end: FlowEnd) -> Option<&mut Connection> {
        self.live.last_mut().map(|live| &mut live.ends[end as usize])
    }

    fn is_accepted(&self, live: &LiveConnection, end: FlowEnd) -> bool {
        end == FlowEnd::From || live.accepted_at <= self.now
    }
}

impl ConnectionTransport for CurrentConnection<'_> {
    fn open(&mut self, now: Instant) -> Result<(), NoLocalPort> {
        if !self.ports.take(now) {
            return Err(NoLocalPort);
        }
        let (from, to) = self.stacks.clone();
        let isns = *self.isns;
        let watch = self.idle.map(|rules| Box::new(IdleWatch::new(rules, from.header)));
        let mut ends = [Connection::connect(from, isns[0]), Connection::listen(to, isns[1])];
        if self.fast_open {
            ends.iter_mut().for_each(Connection::offer_fast_open);
        }
        let (written, accepted_at, holds_port) = ([0; 2], Instant::NEVER, true);
        self.live.push(LiveConnection { ends, isns, written, accepted_at, holds_port, watch });
        // An acknowledgement of FIN may have the number after FIN.
        *self.isns = isns.map(|isn| isn.wrapping_add(SYN_AND_FIN as u32 + 1));
        Ok(())
    }

    fn state(&self, _now: Instant, end: FlowEnd) -> EndState {
        let Some(live) = self.live.last() else { return EndState::Failed };
        let connection = &live.ends[end as usize];
        match connection.state() {
            // The server may have been reset before its application accepted the connection.
            State::Closed if !connection.receiver().finished() => EndState::Failed,
            _ if !self.is_accepted(live, end) => EndState::Opening,
            _ if connection.receiver().finished() => EndState::PeerClosed,
            _ if connection.is_open_early() => EndState::Open,
            State::Listen | State::SynSent | State::SynReceived => EndState::Opening,
            _ => EndState::Open,
        }
    }

    fn delivered(&self, end: FlowEnd) -> u64 {
        let accepted = self.live.last().filter(|live| self.is_accepted(live, end));
        accepted.map_or(0, |live| live.ends[end as usize].receiver().delivered())
    }

    fn write(&mut self, end: FlowEnd, bytes: u64) {
        let side = end as usize;
        if let Some(live) = self.live.last_mut() {
            live.ends[side].write(bytes);
            live.written[side] += bytes;
            self.isns[side] = self.isns[side].wrapping_add(bytes as u32);
        }
    }

    fn close(&mut self, end: FlowEnd) {
        if let Some(connection) = self.end_mut(end) {
            connection.close();
        }
    }

    fn abort(&mut self, _now: Instant, end: FlowEnd) {
        if let Some(connection) = self.end_mut(end) {
            connection.reset();
        }
    }
}
