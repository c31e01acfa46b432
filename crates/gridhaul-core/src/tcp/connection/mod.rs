//! One end of a TCP connection (RFC 9293): both halves and the state between SYN and TIME-WAIT.

mod between;
mod opening;
mod sending;

use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::params::{OptionBytes, Rules, StackParams};
use crate::tcp::receiver::Receiver;
use crate::tcp::segment::{ClockOption, Flags, OneWayDelay, SackBlocks, Segment, expand};
use crate::tcp::sender::{Sender, SendRange};

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

/// What an end needs when the connection is over.
#[derive(Debug, Clone)]
struct Ending {
    /// A reset that answers a segment without a connection.
    reset: Option<Segment>,
    time_wait_until: Instant,
}

/// Twice the maximum segment lifetime (RFC 9293, 3.4.2: MSL of 2 minutes; here the 30 s that
/// Linux waits, TCP_TIMEWAIT_LEN halved).
const TIME_WAIT: Duration = Duration::from_secs(60);

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

    /// The application writes `bytes` more; [`u64::MAX`] for ever. Returns the bytes written in all.
    pub fn write(&mut self, bytes: u64) -> u64 {
        self.sending.wake(&self.params).write(bytes)
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
        let bare =
            self.last_ack == 0 && self.params.rules == Rules::Linux && self.receiver.ack_due(now);
        if !bare && let Some(range) = self.sending.poll(now, &self.params) {
            self.on_send_range(range);
            return Some(range);
        }
        let due = bare || self.receiver.ack_due(now);
        due.then(|| SendRange { start: self.sending.next(), len: 0 })
    }

    #[inline(always)]
    fn handle_established(&mut self, now: Instant, segment: &Segment) {
        let next = self.receiver.next();
        let in_sequence = segment.seq == self.peer_isn.wrapping_add(next as u32);
        if !in_sequence && !self.is_acceptable(segment) {
            // RFC 9293, 3.10.7.4, first: what is outside the window is answered and dropped.
            if !segment.flags.has(Flags::RST) {
                self.receiver.request_ack();
            }
            return;
        }
        if segment.flags.has(Flags::RST) {
            self.on_reset(in_sequence);
            return;
        }
        if segment.flags.has(Flags::ACK) {
            if !self.sending.handle_ack(now, segment, self.isn, &self.params) {
                self.receiver.request_ack();
                return;
            }
            if self.sending.fin_position().is_some() {
                self.on_fin_progress(now);
            }
        }
        if segment.sequence_len() > 0 {
            self.handle_payload(now, segment);
        }
    }

    /// RFC 5961, section 3.2: a reset counts at exactly the expected number; elsewhere in the
    /// window it is challenged by an acknowledgement.
    #[cold]
    fn on_reset(&mut self, in_sequence: bool) {
        if in_sequence {
            self.end();
        } else {
            self.receiver.request_ack();
        }
    }

    /// The connection is over before its time: nothing is sent again, and no timer runs.
    #[cold]
    fn end(&mut self) {
        self.state = State::Closed;
        self.sending.stop();
        self.receiver.on_ack_sent(Instant::ZERO, &self.params);
    }

    /// The acceptability test of RFC 9293, 3.10.7.4, for a segment that does not begin at the next
    /// expected number. Old data is let through to be answered where it is handled.
    #[cold]
    fn is_acceptable(&self, segment: &Segment) -> bool {
        let next = self.receiver.next();
        let Some(start) = expand(segment.seq, self.peer_isn, next) else { return false };
        let limit = next + u64::from(self.receiver.window(&self.params));
        if segment.sequence_len() > 0 {
            // Data that begins at or before the expected number is cut to size later.
            start < limit.max(next + 1)
        } else {
            next <= start && start < limit
        }
    }

    #[inline]
    fn handle_payload(&mut self, now: Instant, segment: &Segment) {
        let near = self.receiver.next();
        let Some(start) = expand(segment.seq, self.peer_isn, near) else {
            self.receiver.request_ack();
            return;
        };
        let limit = near + u64::from(self.receiver.window(&self.params));
        let mut end = start + u64::from(segment.sequence_len());
        let mut fin = segment.flags.has(Flags::FIN);
        if end > limit {
            // RFC 9293, 3.10.7.4: what lies beyond the window is cut off. A FIN alone needs no room.
            let bare_fin = fin && segment.len == 0 && start == near;
            if start >= limit && !bare_fin {
                self.receiver.request_ack();
                return;
            }
            if !bare_fin {
                end = limit;
                fin = false;
            }
        }
        if let Some((value, _)) = segment.timestamps {
            self.note_clock(now, segment.clock, value, start);
        }
        if self.state == State::TimeWait {
            // RFC 9293, 3.10.7.4, eighth: a repeated FIN restarts the wait.
            self.time_wait(now);
        }
        self.receiver.handle_data(now, start, end, fin, &self.params);
        if self.receiver.finished() {
            self.on_peer_finished(now);
        }
    }

    /// What the next acknowledgement tells the sender of a segment that begins at `start`.
    #[inline]
    fn note_clock(&mut self, now: Instant, clock: ClockOption, value: u32, start: u64) {
        match clock {
            ClockOption::Timestamps => {
                // RFC 7323, section 4.3: echo the latest timestamp of a segment that covers the last
                // acknowledgement.
                let later = value.wrapping_sub(self.echo).cast_signed() >= 0;
                if later && start <= self.last_ack {
                    self.echo = value;
                }
            }
            // Paper `medx`, section 2: T_recv - T_snd of every segment, in microseconds.
            ClockOption::OneWayDelay => {
                self.echo = OneWayDelay::stamp(now).wrapping_sub(value);
            }
        }
    }

    fn on_peer_finished(&mut self, now: Instant) {
        self.state = match self.state {
            State::Established | State::SynReceived => State::CloseWait,
            State::FinWait1 if self.sending.fin_acknowledged() => self.time_wait(now),
            State::FinWait1 => State::Closing,
            State::FinWait2 => self.time_wait(now),
            other => other,
        };
    }

    fn on_fin_progress(&mut self, now: Instant) {
        if !self.sending.fin_acknowledged() {
            return;
        }
        self.state = match self.state {
            State::FinWait1 => State::FinWait2,
            State::Closing => self.time_wait(now),
            State::LastAck => State::Closed,
            other => other,
        };
    }

    fn time_wait(&mut self, now: Instant) -> State {
        self.ending().time_wait_until = now + TIME_WAIT;
        State::TimeWait
    }

    fn ending(&mut self) -> &mut Ending {
        self.ending.get_or_insert_with(|| {
            Box::new(Ending { reset: None, time_wait_until: Instant::NEVER })
        })
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

    /// FIN leaves: the state follows (RFC 9293, figure 5).
    #[inline]
    fn on_send_range(&mut self, range: SendRange) {
        let Some(fin) = self.sending.fin_position() else { return };
        if range.start + u64::from(range.len) > fin {
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
    }

    /// The segment with a range of the stream.
    #[inline(always)]
    pub(crate) fn segment(&mut self, now: Instant, range: SendRange) -> Segment {
        let params = &*self.params;
        let mut len = range.len;
        let mut flags = Flags::ACK;
        let mut syn = false;
        if range.start == 0 && len > 0 {
            syn = true;
            len -= 1;
            flags = if self.state == State::SynSent { Flags::SYN } else { Flags::SYN.with(flags) };
        } else if let Some(fin) = self.sending.fin_position()
            && len > 0
            && range.start + u64::from(len) > fin
        {
            len -= 1;
            flags = flags.with(Flags::FIN);
        }
        let clock = clock_option(params);
        let timestamps = self.timestamps.then(|| match clock {
            ClockOption::Timestamps => ((now.as_nanos() / 1_000_000) as u32, self.echo),
            ClockOption::OneWayDelay => (OneWayDelay::stamp(now), self.echo),
        });
        let sack = if self.sack && !syn {
            let most = match params.option_bytes {
                // RFC 2018, section 3: four blocks fit, three beside timestamps.
                OptionBytes::All => 4 - usize::from(self.timestamps),
                // `max_sack_blocks_`.
                OptionBytes::SackBlocks => 3,
            };
            self.receiver.sack_blocks(self.peer_isn, most)
        } else {
            SackBlocks::default()
        };
        let header = params.header as usize + options_len(&sack, timestamps.is_some(), params);
        let next = self.receiver.next();
        self.receiver.on_ack_sent(now, params);
        if !syn {
            self.receiver.round_offer();
        }
        self.last_ack = next;
        Segment {
            seq: self.isn.wrapping_add(range.start as u32),
            ack: self.peer_isn.wrapping_add(next as u32),
            len,
            window: self.receiver.offered_window(),
            timestamps,
            sack,
            sack_permitted: syn && self.sack,
            clock,
            flags,
            header: header.min(255) as u8,
        }
    }
}

/// The option with times that a stack offers, if it offers one.
#[inline]
const fn clock_option(params: &StackParams) -> ClockOption {
    if params.one_way_delay { ClockOption::OneWayDelay } else { ClockOption::Timestamps }
}

/// Bytes of options: 12 for timestamps with their padding (RFC 7323, appendix A), as many for
/// MEDX's delays, 4 + 8n for SACK blocks with their padding.
#[inline]
fn options_len(sack: &SackBlocks, timestamps: bool, params: &StackParams) -> usize {
    let blocks = sack.as_slice().len();
    match params.option_bytes {
        // ns-2 has no MEDX, so nothing of it is imitated.
        OptionBytes::SackBlocks => {
            usize::from(timestamps && params.one_way_delay) * 12 + 8 * blocks
        }
        OptionBytes::All => {
            let sack_len = if blocks > 0 { 4 + 8 * blocks } else { 0 };
            usize::from(timestamps) * 12 + sack_len
        }
    }
}
