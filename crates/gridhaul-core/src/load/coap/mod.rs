//! Confirmable messages of CoAP (RFC 7252, section 4.2), with DTLS or without.
//!
//! A [`CoapMember`] is both ends of a member of a flow, without I/O: the device that sends messages
//! (`from`), and the server that answers them (`to`). The caller passes messages to
//! [`push`](CoapMember::push) and datagrams to [`handle_datagram`](CoapMember::handle_datagram),
//! then calls [`advance`](CoapMember::advance), which is also due at each
//! [`next_deadline`](CoapMember::next_deadline), and sends what
//! [`poll_transmit`](CoapMember::poll_transmit) returns.

mod client;
mod counters;
mod dtls;
mod received;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_scenario::scenario::{DtlsSession, FlowEnd};
use gridhaul_scenario::units::Instant;

use self::client::{Client, Timeout};
use self::dtls::{Flight, Handshakes};
use self::received::{Copy, RecentMessages};
use super::{Arrival, MessageEvent};
use crate::random::RandomStream;

pub use counters::CoapCounters;
pub use rules::CoapRules;

/// A datagram between both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoapDatagram {
    /// Number of the DTLS session, from 1; 0 without DTLS.
    pub session: u16,
    /// Its content.
    pub content: CoapContent,
}

/// The content of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoapContent {
    /// A flight of a DTLS handshake, by its number from 0.
    Flight(u8),
    /// A message, by its message ID.
    Request(u16),
    /// The response to the message with this ID.
    Response(u16),
}

/// A datagram to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoapTransmission {
    /// The end that sends it.
    pub end: FlowEnd,
    /// The datagram.
    pub datagram: CoapDatagram,
    /// Payload of UDP in bytes.
    pub bytes: u32,
}

/// A message of which the first copy has arrived at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveredMessage {
    /// When it was ready.
    pub ready: Instant,
    /// Its size in bytes.
    pub bytes: u64,
}

/// Both ends of a member of a flow with confirmable messages.
#[derive(Debug, Clone)]
pub struct CoapMember {
    rules: Arc<CoapRules>,
    client: Client,
    recent: RecentMessages,
    /// `None` without DTLS.
    handshakes: Option<Handshakes>,
    outgoing: VecDeque<CoapTransmission>,
}

impl CoapMember {
    /// Both ends of a member before its first message. `random` determines the timeouts.
    #[must_use]
    pub fn new(rules: Arc<CoapRules>, random: RandomStream) -> Self {
        let handshakes = rules.dtls.is_some().then(Handshakes::default);
        let (client, recent) = (Client::new(random), RecentMessages::default());
        Self { rules, client, recent, handshakes, outgoing: VecDeque::new() }
    }

    /// Headers of UDP and IP in bytes.
    #[must_use]
    pub fn headers(&self) -> u8 {
        self.rules.headers
    }

    /// Whether datagrams are protected by DTLS.
    #[must_use]
    pub fn has_dtls(&self) -> bool {
        self.rules.has_dtls()
    }

    /// A message is ready. [`Self::advance`] must follow.
    pub fn push(&mut self, message: Arrival) {
        self.client.waiting.push_back(message);
    }

    /// A datagram has arrived at an end. Returns the message that it delivers. [`Self::advance`]
    /// must follow.
    pub fn handle_datagram(
        &mut self,
        now: Instant,
        end: FlowEnd,
        datagram: CoapDatagram,
        counters: &mut CoapCounters,
    ) -> Option<DeliveredMessage> {
        let CoapDatagram { session, content } = datagram;
        match (content, end) {
            (CoapContent::Flight(number), _) => {
                self.handle_flight(now, end, Flight { session, number }, counters);
                None
            }
            (CoapContent::Request(id), FlowEnd::To) => {
                self.handle_request(now, session, id, counters)
            }
            (CoapContent::Response(id), FlowEnd::From) => {
                self.handle_response(now, session, id, counters);
                None
            }
            // An end never sends such a datagram to itself.
            (CoapContent::Request(_) | CoapContent::Response(_), _) => None,
        }
    }

    fn handle_flight(
        &mut self,
        now: Instant,
        end: FlowEnd,
        flight: Flight,
        counters: &mut CoapCounters,
    ) {
        let (Some(handshakes), Some(rules)) = (&mut self.handshakes, &self.rules.dtls) else {
            return;
        };
        let answer = handshakes.handle_flight(now, end, flight, (rules, counters));
        if let Some(number) = answer {
            self.send_flight(end, Flight { number, ..flight }, counters);
        }
    }

    fn send_flight(&mut self, end: FlowEnd, flight: Flight, counters: &mut CoapCounters) {
        let Some(rules) = &self.rules.dtls else { return };
        let bytes = rules.flights[usize::from(flight.number)];
        counters.on_flight_sent(bytes);
        let content = CoapContent::Flight(flight.number);
        let datagram = CoapDatagram { session: flight.session, content };
        self.outgoing.push_back(CoapTransmission { end, datagram, bytes });
    }

    /// A copy of a message has arrived at the server.
    fn handle_request(
        &mut self,
        now: Instant,
        session: u16,
        id: u16,
        counters: &mut CoapCounters,
    ) -> Option<DeliveredMessage> {
        // A server may discard records of the new epoch before the handshake is complete (RFC 6347,
        // section 4.1): the device retransmits its message.
        if self.handshakes.as_ref().is_some_and(|handshakes| !handshakes.serves(session)) {
            return None;
        }
        let copy = self.recent.receive(now, id, self.rules.coap.exchange_lifetime());
        // The message is unknown only if it has been on the way for longer than the lifetime.
        let (message, is_first) = match copy {
            Copy::First(message) => (message, true),
            Copy::Duplicate(message) => (message, false),
            Copy::Unknown => return None,
        };
        let datagram = CoapDatagram { session, content: CoapContent::Response(id) };
        let bytes = self.rules.response_bytes();
        self.outgoing.push_back(CoapTransmission { end: FlowEnd::To, datagram, bytes });
        if !is_first {
            counters.record(message.at, MessageEvent::Duplicate);
            return None;
        }
        if !self.client.on_delivered(id) {
            counters.record(message.at, MessageEvent::LateDelivery);
        }
        Some(DeliveredMessage { ready: message.at, bytes: message.bytes })
    }

    fn handle_response(
        &mut self,
        now: Instant,
        session: u16,
        id: u16,
        counters: &mut CoapCounters,
    ) {
        if self.handshakes.as_ref().is_some_and(|handshakes| !handshakes.is_ready(session)) {
            return;
        }
        if let Some(exchange) = self.client.on_response(id) {
            let took = now.since(exchange.began);
            counters.record(exchange.message.at, MessageEvent::Acknowledged(took));
            self.end_exchange();
        }
    }

    fn end_exchange(&mut self) {
        let rules = self.rules.dtls.as_ref();
        if let (Some(handshakes), Some(rules)) = (&mut self.handshakes, rules)
            && rules.session == DtlsSession::PerMessage
        {
            handshakes.close();
        }
    }

    /// Handles the timers that have expired, and begins with the next message. Returns the ready
    /// time of a message that is given up and of which no copy has arrived.
    pub fn advance(&mut self, now: Instant, counters: &mut CoapCounters) -> Option<Instant> {
        self.retransmit_flights(now, counters);
        let lost = self.handle_timeout(now, counters);
        if self.client.may_begin() {
            self.begin(now, counters);
        }
        lost
    }

    fn handle_timeout(&mut self, now: Instant, counters: &mut CoapCounters) -> Option<Instant> {
        match self.client.handle_timeout(now, self.rules.coap.max_retransmit) {
            Some(Timeout::Retransmit { id, message }) => {
                counters.record(message.at, MessageEvent::Retransmitted);
                self.send_request(id, message);
                None
            }
            Some(Timeout::GiveUp(exchange)) => {
                let is_delivered = exchange.is_delivered;
                counters.record(exchange.message.at, MessageEvent::GivenUp { is_delivered });
                self.end_exchange();
                (!exchange.is_delivered).then_some(exchange.message.at)
            }
            None => None,
        }
    }

    /// Begins with the next message, once there is a session.
    fn begin(&mut self, now: Instant, counters: &mut CoapCounters) {
        if let Some(flight) = self.handshakes.as_mut().and_then(|handshakes| handshakes.begin(now))
        {
            self.send_flight(FlowEnd::From, flight, counters);
        }
        if self.handshakes.as_ref().is_some_and(|handshakes| !handshakes.is_client_ready()) {
            return;
        }
        if let Some((id, message)) = self.client.begin(now, &self.rules.coap) {
            self.recent.add(now, id, message, self.rules.coap.exchange_lifetime());
            self.send_request(id, message);
        }
    }

    fn retransmit_flights(&mut self, now: Instant, counters: &mut CoapCounters) {
        let (Some(handshakes), Some(rules)) = (&mut self.handshakes, &self.rules.dtls) else {
            return;
        };
        let retransmitted = handshakes.handle_timeout(now, rules);
        for (end, flight) in [FlowEnd::From, FlowEnd::To].into_iter().zip(retransmitted) {
            if let Some(flight) = flight {
                counters.on_flight_retransmitted();
                self.send_flight(end, flight, counters);
            }
        }
    }

    fn send_request(&mut self, id: u16, message: Arrival) {
        let session = self.handshakes.as_ref().map_or(0, Handshakes::session);
        let datagram = CoapDatagram { session, content: CoapContent::Request(id) };
        let bytes = self.rules.request_bytes(message.bytes);
        self.outgoing.push_back(CoapTransmission { end: FlowEnd::From, datagram, bytes });
    }

    /// The next datagram to be sent.
    pub fn poll_transmit(&mut self) -> Option<CoapTransmission> {
        self.outgoing.pop_front()
    }

    /// When [`Self::advance`] is due without a message or datagram; [`Instant::NEVER`] without a
    /// deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let handshakes = self.handshakes.as_ref().map_or(Instant::NEVER, Handshakes::deadline);
        self.client.deadline().min(handshakes)
    }

    /// Ready times of the messages that have not arrived and are not given up.
    pub fn undelivered(&self) -> impl Iterator<Item = Instant> {
        self.client.undelivered()
    }
}
