//! One end of a TCP connection (RFC 9293): both halves and the state between SYN and TIME-WAIT.

mod between;
mod closing;
mod input;
mod opening;
mod output;
mod sending;

use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use crate::tcp::params::StackParams;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Flags, OneWayDelay, Segment, expand};
use crate::tcp::sender::{SendRange, Sender};

use self::closing::Ending;
pub use self::output::PendingSegment;
use self::output::clock_option;
use self::sending::Sending;

/// The state of a connection (RFC 9293, 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for SYN.
    Listen,
    /// Has sent SYN.
    SynSent,
    /// Has received SYN and answered it.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Closed from here; FIN is not acknowledged.
    FinWait1,
    /// Closed from here; FIN is acknowledged.
    FinWait2,
    /// Closed from the other end.
    CloseWait,
    /// Closed from both ends at once.
    Closing,
    /// Closed from the other end first; FIN is not acknowledged.
    LastAck,
    /// Waits for late segments.
    TimeWait,
    /// Over.
    Closed,
}

/// One end of a connection.
#[derive(Debug, Clone)]
pub struct Connection {
    params: Arc<StackParams>,
    sending: Sending,
    receiver: Receiver,
    /// Position that was acknowledged last (RFC 7323, section 4.3: Last.ACK.sent).
    last_ack: u64,
    isn: u32,
    peer_isn: u32,
    /// Timestamp to echo (RFC 7323, section 4.3); with MEDX, the delay to report.
    echo: u32,
    state: State,
    timestamps: bool,
    sack: bool,
    /// The application at this end never writes.
    receive_only: bool,
    ending: Option<Box<Ending>>,
}

impl Connection {
    /// An end that will open the connection. `isn` is its initial sequence number.
    #[must_use]
    pub fn connect(params: Arc<StackParams>, isn: u32) -> Self {
        Self::new(params, isn, State::SynSent)
    }

    /// An end that waits for the other to open the connection.
    #[must_use]
    pub fn listen(params: Arc<StackParams>, isn: u32) -> Self {
        Self::new(params, isn, State::Listen)
    }

    /// An end of a connection that exists from the start, without handshake.
    #[must_use]
    pub fn established(
        params: Arc<StackParams>,
        isn: u32,
        peer: &StackParams,
        peer_isn: u32,
    ) -> Self {
        let mut connection = Self::new(params, isn, State::Established);
        connection.peer_isn = peer_isn;
        connection.sending.wake(&connection.params).skip_handshake(peer.receive_window, peer_isn);
        connection.receiver.handle_syn();
        connection.last_ack = connection.receiver.next();
        let clock = peer.has_clock_option().then(|| clock_option(peer));
        connection.agree(clock, peer.sack);
        connection
    }

    fn new(params: Arc<StackParams>, isn: u32, state: State) -> Self {
        let (timestamps, sack) = (params.has_clock_option(), params.sack);
        let echo = if params.one_way_delay { OneWayDelay::UNKNOWN } else { 0 };
        Self {
            sending: Sending::new(&params),
            receiver: Receiver::new(&params),
            last_ack: 0,
            isn,
            peer_isn: 0,
            echo,
            state,
            timestamps,
            sack,
            receive_only: false,
            ending: None,
            params,
        }
    }

    /// The application at this end will not write: once the connection is open, the sending half
    /// keeps only what acknowledgements need. That is memory saved and nothing else; whoever writes
    /// all the same begins with a fresh window and no round-trip estimate.
    pub fn receive_only(&mut self) {
        self.receive_only = true;
        if matches!(self.state, State::Listen | State::Established) {
            self.sending.rest();
        }
    }

    /// The application writes `bytes` more; [`u64::MAX`] for ever.
    pub fn write(&mut self, bytes: u64) {
        self.sending.wake(&self.params).write(bytes);
    }
    /// Bytes that the application has written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.sending.whole().map_or(0, Sender::written)
    }
    /// The application will write no more: FIN follows the data.
    pub fn close(&mut self) {
        self.sending.wake(&self.params).close();
    }
    /// From now on the application takes data only with [`Self::read`].
    pub fn read_on_demand(&mut self) {
        self.receiver.set_lazy();
    }
    /// The application takes `bytes`.
    pub fn read(&mut self, bytes: u64) {
        self.receiver.consume(bytes, &self.params);
    }

    /// Whether a message of `bytes` is taken from an application that was `refused` the last time or not: its
    /// first segment would leave at once, but for pacing, or waits for more to fill it. Linux takes some
    /// segments that wait for the window, too.
    #[must_use]
    pub fn takes(&self, bytes: u64, refused: bool) -> bool {
        self.is_open()
            && self.sender().is_some_and(|sender| sender.takes(bytes, refused, &self.params))
    }

    /// Which bytes of the other end's data, counted from 0, a segment brings that this end would
    /// take: what lies beyond its window is cut off. `None` where that is nothing new.
    #[must_use]
    pub fn incoming(&self, segment: &Segment) -> Option<Range<u64>> {
        if matches!(self.state, State::Listen | State::SynSent | State::Closed)
            || segment.flags.has(Flags::SYN)
        {
            return None;
        }
        let next = self.receiver.next();
        let start = expand(segment.seq, self.peer_isn, next)?;
        let limit = next + u64::from(self.receiver.window(&self.params));
        let end = (start + u64::from(segment.len)).min(limit);
        // Position 0 is SYN.
        (next < end && start.max(1) < end).then(|| start.max(1) - 1..end - 1)
    }

    /// State of the connection.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// Whether the handshake is complete and the application may still write here.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        matches!(self.state, State::Established | State::CloseWait)
    }
    /// The sending half; `None` at an end that only receives ([`Self::receive_only`]).
    #[inline]
    #[must_use]
    pub fn sender(&self) -> Option<&Sender> {
        self.sending.whole()
    }
    /// Position that is sent next, and the first unacknowledged one.
    #[must_use]
    pub fn sent_and_acknowledged(&self) -> (u64, u64) {
        (self.sending.next(), self.sending.una())
    }
    /// Sequence number of the first unacknowledged byte.
    #[must_use]
    pub fn first_unacknowledged(&self) -> u32 {
        self.isn.wrapping_add(self.sending.una() as u32)
    }
    /// The receiving half.
    #[inline]
    #[must_use]
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }
    /// The stack.
    #[must_use]
    pub fn params(&self) -> &StackParams {
        &self.params
    }

    /// When [`Self::handle_timeout`] is wanted.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let deadline = self.sending.next_deadline().min(self.receiver.ack_deadline());
        match &self.ending {
            None => deadline,
            Some(ending) => deadline.min(ending.time_wait_until),
        }
    }

    /// Time has come to a deadline.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.sending.handle_timeout(now, &self.params);
        if let Some(ending) = &mut self.ending
            && ending.time_wait_until <= now
        {
            self.state = State::Closed;
            ending.time_wait_until = Instant::NEVER;
        }
    }

    /// Handles a segment from the other end.
    #[inline]
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        if self.state == State::Established && !segment.flags.has(Flags::SYN) {
            self.handle_established(now, segment);
            return;
        }
        self.handle_in_other_states(now, segment);
    }

    /// What is to be sent now, if anything.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if !self.may_send() {
            return self.poll_in_other_states(now);
        }
        let range = self.poll_range(now)?;
        Some(self.segment(now, range))
    }

    /// Whether [`Self::poll_transmit`], which has just returned data, would now return nothing. False
    /// where that is not known.
    #[inline]
    #[must_use]
    pub fn has_filled_window(&self) -> bool {
        self.sending.whole().is_some_and(Sender::has_filled_window)
    }

    /// Whether the connection is open as far as sending goes: then [`Self::poll_transmit`] is
    /// [`Self::poll_range`] and [`Self::segment`].
    #[inline]
    pub(crate) const fn may_send(&self) -> bool {
        matches!(self.state, State::Established) || self.is_open_for_sending()
    }

    /// What the next segment of an open connection carries, if one is to go now; nothing, if it only
    /// acknowledges.
    #[inline(always)]
    pub(crate) fn poll_range(&mut self, now: Instant) -> Option<SendRange> {
        // Linux acknowledges the answer to SYN before the application writes anything.
        let bare = self.last_ack == 0
            && self.params.policy.bare_handshake_ack
            && self.receiver.ack_due(now);
        if !bare && let Some(range) = self.sending.poll(now, &self.params) {
            self.on_send_range(range);
            return Some(range);
        }
        let due = bare || self.receiver.ack_due(now);
        due.then(|| SendRange { start: self.sending.next(), len: 0 })
    }

    const fn is_open_for_sending(&self) -> bool {
        matches!(
            self.state,
            State::CloseWait
                | State::FinWait1
                | State::FinWait2
                | State::Closing
                | State::LastAck
                | State::TimeWait
        )
    }
}

#[cfg(test)]
mod common_path_tests;
