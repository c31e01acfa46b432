//! The manager of the successive connections of one member of a flow.

mod carrier;
mod closing;
mod early_data;
mod fast_open;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_scenario::scenario::{ConnectionPolicy, FlowEnd, TlsResumption};
use gridhaul_scenario::units::{Duration, Instant};

use super::counters::ConnectionCounters;
use super::reconnection::Reconnection;
use super::rules::ConnectionRules;
use crate::random::RandomStream;

pub use carrier::ManagedCarrier;

/// No local port is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoLocalPort;

/// State of an end of a connection, as its application observes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndState {
    /// The handshake is in progress, or the server has not accepted the connection.
    Opening,
    /// The application may write.
    Open,
    /// The other end has closed, and all of its data has arrived.
    PeerClosed,
    /// Refused, reset or timed out.
    Failed,
}

/// The connections of a member. Calls without a connection refer to the newest one.
pub trait ConnectionTransport {
    /// Opens a new connection.
    ///
    /// # Errors
    /// No local port is free.
    fn open(&mut self, now: Instant) -> Result<(), NoLocalPort>;
    /// State of an end.
    fn state(&self, now: Instant, end: FlowEnd) -> EndState;
    /// Bytes of the other end that have arrived in order at this end.
    fn delivered(&self, end: FlowEnd) -> u64;
    /// Writes bytes at an end.
    fn write(&mut self, end: FlowEnd, bytes: u64);
    /// Closes an end for writing: FIN follows the data.
    fn close(&mut self, end: FlowEnd);
    /// An end aborts the connection. The other end notices when RST arrives.
    fn abort(&mut self, now: Instant, end: FlowEnd);
}

/// Manages the connections of one member, at both ends.
#[derive(Debug, Clone)]
pub struct ConnectionManager {
    rules: Arc<ConnectionRules>,
    reconnection: Reconnection,
    phase: Phase,
    /// When the device acts without an event of its connection.
    deadline: Instant,
    /// Whether a connection is wanted even without a message.
    is_started: bool,
    has_ticket: bool,
    /// Whether the device has a cookie of TCP Fast Open.
    has_cookie: bool,
    attempt_began: Instant,
    /// When the connection last carried a message.
    used_at: Instant,
    /// Payload that the application of each end has written so far.
    written: [u64; 2],
    /// Sizes of messages of each end that no connection carries yet.
    waiting: [VecDeque<u64>; 2],
    /// Payload that each end has received completely.
    delivered: [u64; 2],
    /// Number of connections that have become ready.
    ready: u64,
    /// Whether applications with a session need a connection.
    is_required: bool,
    /// Whether the application of each end aborts the connection.
    aborts: [bool; 2],
    connection: CurrentConnection,
}

/// State of the current connection.
#[derive(Debug, Clone, Default)]
struct CurrentConnection {
    /// Bytes that each end has written.
    written: [u64; 2],
    /// Bytes that each end has written up to the end of its latest flight of TLS.
    flights_until: [u64; 2],
    /// Messages of each end in transit: size, and bytes on the connection up to its end.
    in_transit: [VecDeque<InTransit>; 2],
    /// Messages of each end that it has carried.
    carried: [u32; 2],
    /// The server sends tickets when it has received this many bytes.
    tickets_after: Option<u64>,
    server_closed: bool,
}

#[derive(Debug, Clone, Copy)]
struct InTransit {
    bytes: u64,
    until: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// No connection.
    Closed,
    /// An attempt has failed; the device waits.
    Pausing,
    /// TCP handshake.
    Opening,
    /// TLS handshake, of which this number of flights is sent.
    Securing { resumed: bool, sent: usize },
    /// The connection carries messages.
    Ready,
    /// The device has closed, and waits for the server.
    Closing,
}

impl ConnectionManager {
    /// A member without a connection. `random` is a stream of its own.
    #[must_use]
    pub fn new(rules: Arc<ConnectionRules>, random: RandomStream) -> Self {
        Self {
            reconnection: Reconnection::new(rules.reconnect, random),
            has_ticket: rules.resumption == TlsResumption::Always,
            has_cookie: false,
            rules,
            phase: Phase::Closed,
            deadline: Instant::NEVER,
            is_started: false,
            attempt_began: Instant::ZERO,
            used_at: Instant::ZERO,
            written: [0; 2],
            waiting: Default::default(),
            delivered: [0; 2],
            ready: 0,
            is_required: false,
            aborts: [false; 2],
            connection: CurrentConnection::default(),
        }
    }

    /// The flow starts: a persistent connection opens.
    pub fn start(&mut self) {
        self.is_started = true;
    }

    /// Whether the flow has started.
    #[must_use]
    pub const fn has_started(&self) -> bool {
        self.is_started
    }

    /// When [`poll`](Self::poll) is due without an event of the connection; [`Instant::NEVER`]
    /// without a deadline.
    #[must_use]
    pub const fn next_deadline(&self) -> Instant {
        self.deadline
    }

    /// Payload that an end has received, in whole messages.
    #[must_use]
    pub const fn delivered(&self, end: FlowEnd) -> u64 {
        self.delivered[end as usize]
    }

    /// Whether the connection carries messages.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Whether the TCP handshake of the newest connection is in progress.
    #[must_use]
    pub const fn is_opening(&self) -> bool {
        matches!(self.phase, Phase::Opening)
    }

    /// Whether the manager needs the newest connection no longer: it has given it up, or both ends
    /// have closed it.
    #[must_use]
    pub const fn has_no_connection(&self) -> bool {
        matches!(self.phase, Phase::Closed | Phase::Pausing)
    }

    /// The clock, the connection or the application has advanced: does what is due at both ends.
    /// Call this method after each event.
    pub fn poll(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        loop {
            self.take_delivered(now, transport);
            self.abort_if_requested(now, transport, counters);
            let before = self.phase;
            match before {
                Phase::Closed => self.open_if_wanted(now, transport, counters),
                Phase::Pausing if self.deadline <= now => self.enter(Phase::Closed),
                Phase::Pausing => {}
                Phase::Opening => self.advance_opening(now, transport, counters),
                Phase::Securing { resumed, sent } => {
                    self.advance_handshake(now, (resumed, sent), transport, counters);
                }
                Phase::Ready => self.advance_ready(now, transport, counters),
                Phase::Closing => self.advance_closing(now, transport),
            }
            if !self.has_no_connection() {
                self.advance_server(now, transport, counters);
            }
            if self.phase == before {
                return;
            }
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.deadline = Instant::NEVER;
    }

    /// Notes the messages that have arrived completely.
    fn take_delivered(&mut self, now: Instant, transport: &impl ConnectionTransport) {
        if self.has_no_connection() {
            return;
        }
        for end in ENDS {
            let in_transit = &mut self.connection.in_transit[end.peer() as usize];
            let arrived = transport.delivered(end);
            while let Some(message) = in_transit.front().filter(|first| first.until <= arrived) {
                self.delivered[end as usize] += message.bytes;
                self.used_at = now;
                in_transit.pop_front();
            }
        }
    }

    fn open_if_wanted(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        let stays_open = self.rules.policy == ConnectionPolicy::Persistent && self.is_started;
        let is_required = self.is_required || !self.waiting.iter().all(VecDeque::is_empty);
        if !stays_open && !is_required {
            return;
        }
        self.attempt_began = now;
        self.connection = CurrentConnection::default();
        if transport.open(now).is_err() {
            counters.on_without_port();
            self.pause(now);
            return;
        }
        self.enter(Phase::Opening);
        if let Some(timeout) = self.reconnection.timeout() {
            self.deadline = now + timeout;
        }
        if self.has_cookie {
            self.write_with_syn(now, transport);
        }
    }

    fn advance_opening(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        if self.attempt_fails(now, transport, counters) {
            return;
        }
        if transport.state(now, FlowEnd::From) == EndState::Opening {
            self.answer_early(now, transport);
            return;
        }
        counters.tcp.on_opened(now.since(self.attempt_began));
        if self.rules.tls.is_none() {
            self.become_ready(now, counters);
            return;
        }
        let resumed = self.has_ticket;
        self.phase = Phase::Securing { resumed, sent: 0 };
    }

    /// Writes the next flight of the TLS handshake when the previous one has arrived.
    fn advance_handshake(
        &mut self,
        now: Instant,
        (resumed, sent): (bool, usize),
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        if self.attempt_fails(now, transport, counters) {
            return;
        }
        let rules = Arc::clone(&self.rules);
        let Some(tls) = &rules.tls else { return };
        let flights = tls.handshake(resumed);
        let writer = if sent.is_multiple_of(2) { FlowEnd::From } else { FlowEnd::To };
        let has_arrived = self.has_received_flight(writer, transport);
        if resumed && tls.early_data {
            self.write_early(now, sent, transport);
        }
        if let Some(&bytes) = flights.get(sent) {
            if has_arrived && transport.state(now, writer) != EndState::Opening {
                self.write(writer, u64::from(bytes), transport);
                self.connection.flights_until[writer as usize] =
                    self.connection.written[writer as usize];
                counters.on_handshake_bytes(u64::from(bytes));
                self.phase = Phase::Securing { resumed, sent: sent + 1 };
            }
            return;
        }
        // After its own last flight, the client need not wait.
        if writer == FlowEnd::From && !has_arrived {
            return;
        }
        counters.on_secured(resumed);
        self.has_ticket |= self.rules.resumption != TlsResumption::Never;
        let tickets = tls.tickets > 0;
        self.connection.tickets_after = tickets.then_some(self.connection.written[0]);
        self.become_ready(now, counters);
    }

    fn become_ready(&mut self, now: Instant, counters: &mut ConnectionCounters) {
        counters.on_ready(now.since(self.attempt_began));
        self.reconnection.on_ready();
        self.ready += 1;
        self.has_cookie |= self.rules.fast_open;
        self.used_at = now;
        self.enter(Phase::Ready);
    }

    fn advance_ready(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        if self.gives_up(now, transport) {
            self.lose(now, transport, counters);
            return;
        }
        for end in ENDS {
            self.write_waiting(now, end, u64::MAX, transport);
        }
        if self.has_served(now) {
            self.close(FlowEnd::From, transport);
            self.enter(Phase::Closing);
        }
    }

    /// Writes the messages of an end that wait, as far as they have no more bytes than `free`
    /// before encryption.
    fn write_waiting(
        &mut self,
        now: Instant,
        end: FlowEnd,
        free: u64,
        transport: &mut impl ConnectionTransport,
    ) {
        if transport.state(now, end) != EndState::Opening {
            self.carry_waiting(now, end, free, transport);
        }
    }

    /// The same on a connection that may be opening.
    fn carry_waiting(
        &mut self,
        now: Instant,
        end: FlowEnd,
        mut free: u64,
        transport: &mut impl ConnectionTransport,
    ) {
        let is_single =
            self.rules.policy == ConnectionPolicy::PerMessage && !self.rules.has_session;
        while !(is_single && self.connection.carried[end as usize] > 0)
            && let Some(&bytes) = self.waiting[end as usize].front()
        {
            if bytes > free {
                return;
            }
            free -= bytes;
            self.waiting[end as usize].pop_front();
            self.write(end, self.rules.stream_bytes(bytes), transport);
            let until = self.connection.written[end as usize];
            self.connection.in_transit[end as usize].push_back(InTransit { bytes, until });
            self.connection.carried[end as usize] += 1;
            self.used_at = now;
        }
    }

    /// Whether the device closes the connection now. Sets the deadline of an idle connection.
    fn has_served(&mut self, now: Instant) -> bool {
        let last = if self.rules.is_dialogue { FlowEnd::To } else { FlowEnd::From };
        match self.rules.policy {
            ConnectionPolicy::Persistent => false,
            ConnectionPolicy::PerMessage if self.rules.has_session => self.is_idle(),
            ConnectionPolicy::PerMessage => {
                let is_carried = self.connection.carried[last as usize] > 0;
                // A device without a response closes as soon as it has written its message.
                is_carried && (!self.rules.is_dialogue || self.is_idle())
            }
            ConnectionPolicy::IdleTimeout(timeout) => {
                let idle = self.is_idle();
                self.deadline = if idle { self.used_at + timeout } else { Instant::NEVER };
                self.deadline <= now
            }
        }
    }

    /// Whether no message is in transit. A response is in preparation as long as it is missing.
    fn is_idle(&self) -> bool {
        let connection = &self.connection;
        if self.is_required {
            return false;
        }
        let is_answered = !self.rules.is_dialogue || connection.carried[1] >= connection.carried[0];
        is_answered && connection.in_transit.iter().all(VecDeque::is_empty)
    }

    /// Ends an attempt that has failed, and counts it. Returns whether it has.
    fn attempt_fails(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) -> bool {
        let fails = self.gives_up(now, transport);
        if fails {
            counters.tcp.on_failed();
            self.fail(now, transport);
        }
        fails
    }

    /// Whether the attempt has taken too long, or the connection has ended.
    fn gives_up(&self, now: Instant, transport: &impl ConnectionTransport) -> bool {
        let is_attempt = matches!(self.phase, Phase::Opening | Phase::Securing { .. });
        is_attempt && self.deadline <= now
            || transport.state(now, FlowEnd::From) == EndState::Failed
    }

    fn has_received_flight(&self, end: FlowEnd, transport: &impl ConnectionTransport) -> bool {
        transport.delivered(end) >= self.connection.flights_until[end.peer() as usize]
    }

    fn write(&mut self, end: FlowEnd, bytes: u64, transport: &mut impl ConnectionTransport) {
        transport.write(end, bytes);
        self.connection.written[end as usize] += bytes;
    }

    fn pause(&mut self, now: Instant) {
        let pause: Duration = self.reconnection.on_failed();
        self.enter(Phase::Pausing);
        self.deadline = now + pause;
    }
}

const ENDS: [FlowEnd; 2] = [FlowEnd::From, FlowEnd::To];
