//! The end of a connection: close by both ends, and failure.

use std::collections::VecDeque;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{ConnectionCounters, ConnectionManager, ConnectionTransport, EndState, Phase};

impl ConnectionManager {
    /// The device has closed: the connection ends when the server has closed as well.
    pub(super) fn advance_closing(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
    ) {
        match transport.state(now, FlowEnd::From) {
            EndState::PeerClosed => self.enter(Phase::Closed),
            EndState::Failed => self.fail(now, transport),
            EndState::Opening | EndState::Open => {}
        }
    }

    /// The server sends tickets after the handshake, and closes after the device.
    pub(super) fn advance_server(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        let state = transport.state(now, FlowEnd::To);
        let arrived = transport.delivered(FlowEnd::To);
        let is_accepted = matches!(state, EndState::Open | EndState::PeerClosed);
        if is_accepted && self.connection.tickets_after.take_if(|after| *after <= arrived).is_some()
        {
            let tickets = self.rules.tls.as_ref().map_or(0, |tls| u64::from(tls.tickets));
            self.write(FlowEnd::To, tickets, transport);
            counters.on_handshake_bytes(tickets);
        }
        if state == EndState::PeerClosed && !self.connection.server_closed {
            self.connection.server_closed = true;
            self.close(FlowEnd::To, transport);
        }
    }

    /// Closes an end, with an alert of TLS.
    pub(super) fn close(&mut self, end: FlowEnd, transport: &mut impl ConnectionTransport) {
        let alert = self.rules.close_bytes();
        if alert > 0 {
            self.write(end, alert, transport);
        }
        transport.close(end);
    }

    /// An application aborts the connection, if there is one. The device notices an abort by the
    /// server when RST arrives.
    pub(super) fn abort_if_requested(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        let [device, server] = std::mem::take(&mut self.aborts);
        if server && self.is_ready() {
            transport.abort(now, FlowEnd::To);
        }
        if device && self.is_ready() {
            self.lose(now, transport, counters);
        }
    }

    /// A connection that carried messages has ended, or the device aborts it.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        transport: &mut impl ConnectionTransport,
        counters: &mut ConnectionCounters,
    ) {
        let in_transit = &self.connection.in_transit;
        counters.on_lost(in_transit.iter().map(VecDeque::len).sum());
        self.fail(now, transport);
    }

    /// The connection is lost: its messages that have not arrived wait for the next one, unless
    /// applications with a session transmit them again.
    pub(super) fn fail(&mut self, now: Instant, transport: &mut impl ConnectionTransport) {
        transport.abort(now, FlowEnd::From);
        if self.rules.has_session {
            self.waiting = Default::default();
            self.written = [self.delivered[1], self.delivered[0]];
            self.pause(now);
            return;
        }
        for (in_transit, waiting) in self.connection.in_transit.iter_mut().zip(&mut self.waiting) {
            while let Some(message) = in_transit.pop_back() {
                waiting.push_front(message.bytes);
            }
        }
        self.pause(now);
    }
}
