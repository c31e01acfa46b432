//! Handshakes of DTLS: flights, each of which is one datagram, and their retransmission (RFC 6347,
//! section 4.2.4; RFC 9147, section 5.8).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::{Duration, Instant};

use super::counters::CoapCounters;
use super::rules::DtlsRules;

/// The handshakes of a member, at both ends.
#[derive(Debug, Clone, Default)]
pub(super) struct Handshakes {
    /// The client and the server.
    ends: [HandshakeEnd; 2],
    /// When the client began the handshake.
    began: Instant,
    /// Whether the client has a session, from the start of its handshake on.
    is_open: bool,
    /// Whether the client can send messages.
    is_ready: bool,
    /// Whether the server has received the last flight of the client.
    is_complete: bool,
}

/// A flight of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub session: u16,
    pub number: u8,
}

/// The state of a handshake at one end.
#[derive(Debug, Clone)]
struct HandshakeEnd {
    /// Session of the handshake; 0 before the first.
    session: u16,
    /// The last flight that was sent.
    sent: Option<u8>,
    is_retransmitted: bool,
    timeout: Duration,
    deadline: Instant,
}

/// First timeout (RFC 6347, section 4.2.4.1; RFC 9147, section 5.8.2).
const TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// Largest timeout (RFC 6347, section 4.2.4.1; RFC 9147, section 5.8.2).
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

impl Handshakes {
    /// Begins a handshake, unless there is a session. Returns its first flight.
    pub(super) fn begin(&mut self, now: Instant) -> Option<Flight> {
        if self.is_open {
            return None;
        }
        (self.is_open, self.is_ready, self.began) = (true, false, now);
        let client = &mut self.ends[FlowEnd::From as usize];
        let session = client.session.wrapping_add(1).max(1);
        *client = HandshakeEnd { session, ..HandshakeEnd::default() };
        client.send(now, 0, true);
        Some(Flight { session, number: 0 })
    }

    /// The client ends its session.
    pub(super) fn close(&mut self) {
        (self.is_open, self.is_ready) = (false, false);
        self.ends[FlowEnd::From as usize].deadline = Instant::NEVER;
    }

    /// The session of the client.
    pub(super) const fn session(&self) -> u16 {
        self.ends[FlowEnd::From as usize].session
    }

    pub(super) const fn is_client_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the client can read records of a session.
    pub(super) const fn is_ready(&self, session: u16) -> bool {
        self.is_ready && self.session() == session
    }

    /// Whether the server accepts messages of a session.
    pub(super) const fn serves(&self, session: u16) -> bool {
        self.is_complete && self.ends[FlowEnd::To as usize].session == session
    }

    /// A flight has arrived at an end. Returns the flight that this end sends in response.
    pub(super) fn handle_flight(
        &mut self,
        now: Instant,
        end: FlowEnd,
        flight: Flight,
        (rules, counters): (&DtlsRules, &mut CoapCounters),
    ) -> Option<u8> {
        let state = &mut self.ends[end as usize];
        if end == FlowEnd::To && flight.number == 0 && is_newer(flight.session, state.session) {
            *state = HandshakeEnd { session: flight.session, ..HandshakeEnd::default() };
            self.is_complete = false;
        }
        if flight.session != state.session || end == FlowEnd::From && !self.is_open {
            return None;
        }
        let expected = state.sent.map_or(0, |sent| sent + 1);
        if flight.number != expected {
            // The other end has not received the response to its flight: it is retransmitted
            // (RFC 6347, section 4.2.4).
            let response = state.sent.filter(|sent| *sent == flight.number + 1)?;
            state.restart(now, rules.has_timer(response));
            counters.on_flight_retransmitted();
            return Some(response);
        }
        let response = (flight.number < rules.last()).then(|| flight.number + 1);
        match response {
            Some(response) => state.send(now, response, rules.has_timer(response)),
            None => state.deadline = Instant::NEVER,
        }
        let ready_at = if rules.is_early { rules.last() - 2 } else { rules.last() };
        match end {
            FlowEnd::To => self.is_complete = response == Some(rules.last()),
            FlowEnd::From if flight.number == ready_at => {
                self.is_ready = true;
                counters.on_handshake(now.since(self.began));
            }
            FlowEnd::From => {}
        }
        response
    }

    /// Flights of the client and of the server that are to be retransmitted.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        rules: &DtlsRules,
    ) -> [Option<Flight>; 2] {
        self.ends.each_mut().map(|end| {
            let number = end.sent.filter(|_| end.deadline <= now)?;
            end.timeout = (end.timeout * 2).min(TIMEOUT_MAX);
            end.restart(now, rules.has_timer(number));
            Some(Flight { session: end.session, number })
        })
    }

    pub(super) fn deadline(&self) -> Instant {
        let [client, server] = &self.ends;
        client.deadline.min(server.deadline)
    }
}

impl HandshakeEnd {
    /// Sends the next flight. The timeout of a flight that was retransmitted remains in effect
    /// until one is not (RFC 6347, section 4.2.4.1).
    fn send(&mut self, now: Instant, flight: u8, has_timer: bool) {
        if !std::mem::replace(&mut self.is_retransmitted, false) {
            self.timeout = TIMEOUT_MIN;
        }
        self.sent = Some(flight);
        self.deadline = if has_timer { now + self.timeout } else { Instant::NEVER };
    }

    /// Retransmits the last flight.
    fn restart(&mut self, now: Instant, has_timer: bool) {
        self.is_retransmitted = true;
        self.deadline = if has_timer { now + self.timeout } else { Instant::NEVER };
    }
}

impl Default for HandshakeEnd {
    fn default() -> Self {
        Self {
            session: 0,
            sent: None,
            is_retransmitted: false,
            timeout: TIMEOUT_MIN,
            deadline: Instant::NEVER,
        }
    }
}

/// Whether a session began after another.
const fn is_newer(session: u16, than: u16) -> bool {
    session.wrapping_sub(than).cast_signed() > 0
}
