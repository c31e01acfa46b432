//! One endpoint of a TCP connection (RFC 9293): both halves and the state between SYN and
//! TIME-WAIT.

mod closing;
mod confirmation;
mod congestion_notification;
mod fast_open;
mod features;
mod input;
mod opening;
mod output;
mod path_mtu;
mod proxy_interface;
mod sending_half;

use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use crate::tcp::bit_set::BitSet;
use crate::tcp::event::{LinkEvent, LinkReport};
use crate::tcp::params::StackParams;
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{Flags, OneWayDelay, Segment, expand};
use crate::tcp::sender::{SendRange, Sender};

use self::closing::RareState;
use self::features::Feature;
pub use self::output::PendingSegment;
use self::output::clock_option;
use self::sending_half::SendingHalf;

/// The state of a connection (RFC 9293, 3.3.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waiting for SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Closed locally; FIN is not acknowledged.
    FinWait1,
    /// Closed locally; FIN is acknowledged.
    FinWait2,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both endpoints simultaneously.
    Closing,
    /// Closed by the peer first; the local FIN is not acknowledged.
    LastAck,
    /// Waiting for delayed segments to expire.
    TimeWait,
    /// No connection.
    Closed,
}

impl State {
    /// The name, as in RFC 9293.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Listen => "LISTEN",
            Self::SynSent => "SYN-SENT",
            Self::SynReceived => "SYN-RECEIVED",
            Self::Established => "ESTABLISHED",
            Self::FinWait1 => "FIN-WAIT-1",
            Self::FinWait2 => "FIN-WAIT-2",
            Self::CloseWait => "CLOSE-WAIT",
            Self::Closing => "CLOSING",
            Self::LastAck => "LAST-ACK",
            Self::TimeWait => "TIME-WAIT",
            Self::Closed => "CLOSED",
        }
    }
}

/// One endpoint of a connection.
#[derive(Debug, Clone)]
pub struct Connection {
    params: Arc<StackParams>,
    sending: SendingHalf,
    receiver: Receiver,
    /// Position of the last acknowledgement sent (RFC 7323, section 4.3: Last.ACK.sent).
    last_ack: u64,
    isn: u32,
    peer_isn: u32,
    /// Timestamp to echo (RFC 7323, section 4.3); with MEDX, the one-way delay to report.
    echo: u32,
    state: State,
    features: BitSet<Feature>,
    rare: Option<Box<RareState>>,
}

impl Connection {
    /// An endpoint that opens the connection (active open). `isn` is its initial sequence number.
    #[must_use]
    pub fn connect(params: Arc<StackParams>, isn: u32) -> Self {
        Self::new(params, isn, State::SynSent)
    }

    /// An endpoint that waits for a connection (passive open).
    #[must_use]
    pub fn listen(params: Arc<StackParams>, isn: u32) -> Self {
        Self::new(params, isn, State::Listen)
    }

    /// An endpoint of a connection that is established from the start, without a handshake.
    #[must_use]
    pub fn established(
        params: Arc<StackParams>,
        isn: u32,
        peer: &StackParams,
        peer_isn: u32,
    ) -> Self {
        let mut connection = Self::new(params, isn, State::Established);
        connection.peer_isn = peer_isn;
        connection
            .sending
            .activate(&connection.params, isn)
            .skip_handshake(peer.receive_window, peer_isn);
        connection.receiver.handle_syn();
        connection.last_ack = connection.receiver.next();
        let clock = peer.has_clock_option().then(|| clock_option(peer));
        connection.negotiate_options(clock, peer.sack);
        let has_ecn = connection.params.ecn && peer.ecn;
        connection.features.set(Feature::Ecn, has_ecn);
        connection
    }

    fn new(params: Arc<StackParams>, isn: u32, state: State) -> Self {
        let mut features = BitSet::default();
        features.set(Feature::Timestamps, params.has_clock_option());
        features.set(Feature::Sack, params.sack);
        let echo = if params.one_way_delay { OneWayDelay::UNKNOWN } else { 0 };
        Self {
            sending: SendingHalf::new(&params, isn),
            receiver: Receiver::new(&params),
            last_ack: 0,
            isn,
            peer_isn: 0,
            echo,
            state,
            features,
            rare: None,
            params,
        }
    }

    /// The local application will not write: once the connection is open, the sending half keeps
    /// only the state that acknowledgements need. This saves memory and has no other effect, except
    /// that an application that writes after all starts with a new congestion window and no
    /// round-trip estimate.
    pub fn receive_only(&mut self) {
        self.features.set(Feature::ReceiveOnly, true);
        if matches!(self.state, State::Listen | State::Established) {
            self.sending.release_idle();
        }
    }

    /// Sends and handles acknowledgements without the shorter code for common segments from now on,
    /// for comparisons: the result is the same.
    pub fn leave_common_path(&mut self) {
        self.sending.leave_common_path();
    }

    /// The application writes `bytes`; [`u64::MAX`] for an unlimited transfer.
    pub fn write(&mut self, bytes: u64) {
        self.sending.activate(&self.params, self.isn).write(bytes);
    }
    /// Bytes that the application has written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.sending.sender().map_or(0, Sender::written)
    }
    /// The application closes its direction: FIN follows the data.
    pub fn close(&mut self) {
        self.sending.activate(&self.params, self.isn).close(&self.params);
    }
    /// From now on the application reads data only with [`Self::read`].
    pub fn read_on_demand(&mut self) {
        self.receiver.read_on_demand();
    }
    /// The application reads `bytes`.
    pub fn read(&mut self, bytes: u64) {
        self.receiver.consume(bytes, &self.params);
    }

    /// Whether the send buffer accepts a message of `bytes` from an application whose last write
    /// was `refused` or not: its first segment would be sent at once, except for pacing, or waits
    /// for more data to fill it. Linux also accepts some segments that wait for the window.
    #[must_use]
    pub fn accepts_write(&self, bytes: u64, refused: bool) -> bool {
        self.is_open()
            && self
                .sender()
                .is_some_and(|sender| sender.accepts_write(bytes, refused, &self.params))
    }

    /// Range of the peer's data, counted from byte 0, that a segment carries and this endpoint
    /// would accept: bytes beyond its window are excluded. `None` without new data.
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

    /// The parts of the payload of a segment that have not arrived yet, as ranges of the payload of
    /// the other end. A receiver keeps the data that arrived first (RFC 9293, section 3.10.7.4:
    /// segments are trimmed to the new data).
    #[must_use]
    pub fn missing_within(&self, segment: &Segment) -> Vec<Range<u64>> {
        let Some(data) = self.incoming(segment) else { return Vec::new() };
        // Position 0 is SYN.
        let missing = self.receiver.missing_within(&(data.start + 1..data.end + 1));
        missing.into_iter().map(|range| range.start - 1..range.end - 1).collect()
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
    /// The sending half; `None` at a receive-only endpoint ([`Self::receive_only`]).
    #[inline]
    #[must_use]
    pub fn sender(&self) -> Option<&Sender> {
        self.sending.sender()
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
    /// Stream position of a sequence number near the outstanding data.
    pub(crate) fn position_of(&self, seq: u32) -> u64 {
        let una = self.sending.una();
        expand(seq, self.isn, una).unwrap_or(una)
    }
    /// The receiving half.
    #[inline]
    #[must_use]
    pub const fn receiver(&self) -> &Receiver {
        &self.receiver
    }
    /// TCP parameters of the stack.
    #[must_use]
    pub fn params(&self) -> &StackParams {
        &self.params
    }

    /// Time of the next call of [`Self::handle_timeout`].
    #[inline(always)]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let deadline = self.sending.next_deadline().min(self.receiver.ack_deadline());
        match &self.rare {
            None => deadline,
            Some(rare) => deadline.min(rare.time_wait_until),
        }
    }

    /// Handles expired timers.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.params.mtu_probing {
            self.probe_after_timeout(now);
        }
        self.sending.handle_timeout(now, &self.params);
        if self.state == State::SynSent && self.has_exhausted_syn_retransmissions() {
            self.enter_closed();
        }
        if let Some(rare) = &mut self.rare
            && rare.time_wait_until <= now
        {
            self.state = State::Closed;
            rare.time_wait_until = Instant::NEVER;
        }
    }

    /// Handles the report of a link about a data segment that starts at `seq` and was sent at
    /// `sent_at`.
    pub fn handle_link_report(&mut self, seq: u32, len: u32, sent_at: Instant, event: LinkEvent) {
        let first = seq.wrapping_sub(self.isn);
        self.sending.handle_link_report(&LinkReport { first, len, sent_at, event });
    }

    /// Handles a segment from the peer. A function of its own, because its callers are large. The
    /// functions of the common path are always inlined into it: with calls instead, a packet takes
    /// about 1 % more instructions.
    #[inline(never)]
    pub fn handle_segment(&mut self, now: Instant, segment: &Segment) {
        if self.state == State::Established && !segment.flags.has(Flags::SYN) {
            self.handle_established(now, segment);
            return;
        }
        self.handle_in_other_states(now, segment);
    }

    /// The segment to send now, if any.
    #[inline(always)]
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        if !self.may_send() {
            return self.poll_in_other_states(now);
        }
        let range = self.poll_range(now)?;
        Some(self.segment(now, range))
    }

    /// Whether [`Self::poll_transmit`], which has just returned data, would now return nothing.
    /// False where that is not known.
    #[inline]
    #[must_use]
    pub fn has_filled_window(&self) -> bool {
        self.sending.sender().is_some_and(Sender::has_filled_window)
    }

    /// Whether [`Self::poll_transmit`], which has returned nothing since the last event, does so
    /// without effect until the [deadline](Self::next_deadline). False where that is not known.
    #[must_use]
    pub fn ignores_polls_until_deadline(&self) -> bool {
        self.state == State::Established && self.sender().is_none_or(Sender::ignores_further_polls)
    }

    /// Whether the connection is open for sending: then [`Self::poll_transmit`] is
    /// [`Self::poll_range`] and [`Self::segment`].
    #[inline]
    pub(crate) const fn may_send(&self) -> bool {
        matches!(self.state, State::Established) || self.is_open_for_sending()
    }

    /// Range of the next segment of an open connection, if one is to be sent now; an empty range
    /// for a pure acknowledgement.
    #[inline(always)]
    pub(crate) fn poll_range(&mut self, now: Instant) -> Option<SendRange> {
        // Linux acknowledges SYN-ACK before the application can write data.
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
#[cfg(test)]
mod loss_tests;
#[cfg(test)]
mod pair;
