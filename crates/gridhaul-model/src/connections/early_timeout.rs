//! Flights of new connections whose first acknowledgement arrives after the timer of their sender,
//! although nothing is lost.
//!
//! A new connection has measured one round trip, that of its handshake, whose packets are short. On
//! a slow link, a full segment takes much longer, and its sender transmits it again (RFC 6298,
//! section 5; RFC 8985, section 7).

use super::queues::{FlowLoad, Network};
use super::timers::Measured;

/// A flight whose sender retransmits segments that are not lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EarlyTimeout {
    pub timeout_s: f64,
    /// Time after which the first acknowledgement arrives.
    pub acknowledged_s: f64,
}

impl Network {
    /// The first flight of a new connection whose sender retransmits a segment before its
    /// acknowledgement can arrive.
    pub(super) fn early_timeout(&self, flow: &FlowLoad) -> Option<EarlyTimeout> {
        let flights = &flow.exchange.opened.flights;
        let [syn, answer, ..] = &flights[..] else { return None };
        if flow.exchange.opening <= 0.0 || answer.segments > 0 {
            return None;
        }
        let answer_s = self.flight_s(flow, answer);
        let ack_s = self.crossing_s(flow, true, &[syn.header]);
        let mut ends = [
            Measured::first(self.flight_s(flow, syn) + answer_s),
            Measured::first(answer_s + ack_s),
        ];
        for (index, flight) in flights.iter().enumerate().filter(|(_, flight)| flight.segments > 0)
        {
            let leading = flight.packets.len() - flight.segments;
            let first_s = self.crossing_s(flow, flight.is_forward, &flight.packets[..=leading]);
            // The first packet of an answer has the acknowledgement.
            let next = flights.get(index + 1).and_then(|next| next.packets.first());
            let next = next.copied().unwrap_or(flight.header);
            let acknowledged_s = first_s + self.crossing_s(flow, !flight.is_forward, &[next]);
            let end = &mut ends[usize::from(!flight.is_forward)];
            let timeout_s = flow.timer.timeout_s(*end, flight.segments);
            if acknowledged_s.is_finite() && timeout_s < acknowledged_s {
                return Some(EarlyTimeout { timeout_s, acknowledged_s });
            }
            *end = end.next(acknowledged_s);
        }
        None
    }
}
