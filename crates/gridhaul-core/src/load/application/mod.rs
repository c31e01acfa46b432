//! Applications: execute the demand of a load over a transport.
//!
//! The caller drives an [`Application`]: it calls [`handle_timeout`](Application::handle_timeout)
//! when the connection is to be opened and at each [`next_deadline`](Application::next_deadline),
//! [`poll_write`](Application::poll_write) while the connection may accept data, and
//! [`poll_delivered`](Application::poll_delivered) until it returns `None` when data were
//! delivered. Messages are written to a [`Carrier`], which also records when they became ready.
//! Messages in flight are stored in [`InFlightMessages`], which applications share.

mod carrier;
mod dialogue;
mod exchange;
mod greedy;
mod iec_104;
mod in_flight;
mod in_transit;
mod messages;
mod open_loop;
#[cfg(test)]
mod tests;
mod transfer;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use self::dialogue::Dialogue;
use self::exchange::ExchangePeers;
use self::greedy::GreedySender;
use self::iec_104::Iec104Stations;
use self::messages::MessagePeers;
use self::open_loop::OpenLoop;
use super::{Arrival, Demand, Publication, PublicationId};

pub use carrier::{Carrier, Delivered, Message};
pub use in_flight::{InFlightMessages, Outbox};
pub use transfer::Transfer;

/// The application of a connection, at both of its ends.
#[derive(Debug, Clone)]
pub struct Application<C = ()> {
    class: C,
    behaviour: Behaviour,
}

/// The kinds of applications. Those with more state than a source of messages are boxed, because
/// each of a million meters has the size of the largest.
#[derive(Debug, Clone)]
enum Behaviour {
    /// Writes an endless stream.
    Bulk,
    Transfer(Box<Transfer>),
    OpenLoop(OpenLoop),
    Greedy(GreedySender),
    /// Writes messages of a recorded trace.
    Recorded(Outbox),
    Dialogue(Box<Dialogue>),
    Exchange(Box<ExchangePeers>),
    Iec104(Box<Iec104Stations>),
    Messages(Box<MessagePeers>),
}

impl<C: Copy> Application<C> {
    /// Executes a demand from `start` on, with messages of this class.
    #[must_use]
    pub fn new(demand: Demand, start: Instant, class: C) -> Self {
        let behaviour = match demand {
            Demand::Endless => Behaviour::Bulk,
            Demand::Limited(bytes) => Behaviour::Transfer(Box::new(Transfer::new(bytes, start))),
            Demand::Open(source) => {
                Behaviour::OpenLoop(OpenLoop { source, outbox: Outbox::default() })
            }
            Demand::Greedy(load) => {
                Behaviour::Greedy(GreedySender { load: Box::new(load), outbox: Outbox::default() })
            }
            Demand::Recorded => Behaviour::Recorded(Outbox::default()),
            Demand::Dialogue(load) => Behaviour::Dialogue(Box::new(Dialogue::new(load))),
            Demand::Exchange(load) => Behaviour::Exchange(Box::new(ExchangePeers::new(*load))),
            Demand::Iec104(load) => Behaviour::Iec104(Box::new(Iec104Stations::new(*load))),
            Demand::Messages(load) => Behaviour::Messages(Box::new(MessagePeers::new(*load))),
        };
        Self { class, behaviour }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; [`Instant::NEVER`] without a deadline.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        match &self.behaviour {
            Behaviour::Bulk | Behaviour::Transfer(_) | Behaviour::Recorded(_) => Instant::NEVER,
            Behaviour::OpenLoop(open_loop) => open_loop.source.next_time(),
            Behaviour::Greedy(greedy) => greedy.load.periods.until(),
            Behaviour::Dialogue(dialogue) => dialogue.next_deadline(),
            Behaviour::Exchange(exchange) => exchange.next_deadline(),
            Behaviour::Iec104(stations) => stations.next_deadline(),
            Behaviour::Messages(peers) => peers.next_deadline(),
        }
    }

    /// Writes the messages that are ready by now. Call this method once when the connection is to
    /// be opened, which may be before the load starts, and then at each deadline.
    pub fn handle_timeout<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) {
        let class = self.class;
        match &mut self.behaviour {
            Behaviour::Bulk => carrier.write_stream(FlowEnd::From, u64::MAX),
            Behaviour::Transfer(transfer) => transfer.write(carrier),
            Behaviour::OpenLoop(open_loop) => {
                open_loop.handle_timeout(now, class, carrier, in_flight);
            }
            Behaviour::Greedy(greedy) => greedy.handle_timeout(now, class, carrier, in_flight),
            Behaviour::Recorded(_) => {}
            Behaviour::Dialogue(dialogue) => dialogue.handle_timeout(now, class, carrier),
            Behaviour::Exchange(exchange) => exchange.handle_timeout(now, carrier),
            Behaviour::Iec104(stations) => stations.handle_timeout(now, carrier),
            Behaviour::Messages(peers) => peers.handle_timeout(now, carrier),
        }
    }

    /// Writes a message of a recorded trace; other applications ignore it.
    pub fn handle_recorded<A: Carrier<Class = C>>(
        &mut self,
        arrival: Arrival,
        payload: Option<A::Payload>,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) {
        if let Behaviour::Recorded(outbox) = &mut self.behaviour {
            let end = write(carrier, FlowEnd::From, arrival, (self.class, payload));
            outbox.push(arrival.at, end, in_flight);
        }
    }

    /// Advances over on and off periods that have ended by now, for a caller that writes before it
    /// handles an overdue deadline.
    pub fn advance(&mut self, now: Instant) {
        if let Behaviour::Greedy(greedy) = &mut self.behaviour {
            greedy.load.periods.advance(now);
        }
    }

    /// Whether the application writes whenever the transport accepts a message.
    #[inline]
    #[must_use]
    pub fn is_in_burst(&self) -> bool {
        matches!(&self.behaviour, Behaviour::Greedy(greedy) if greedy.load.periods.active())
    }

    /// Writes a message during an on period if the transport accepts one. Returns whether a message
    /// was written; call this method until it returns false.
    #[inline]
    pub fn poll_write<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) -> bool {
        match &mut self.behaviour {
            Behaviour::Greedy(greedy) => greedy.poll_write(now, self.class, carrier, in_flight),
            _ => false,
        }
    }

    /// Data were delivered at an end: returns the next completely delivered message, in the order
    /// of the stream. May change the deadline of a dialogue.
    #[inline]
    pub fn poll_delivered<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) -> Option<Delivered> {
        match (&mut self.behaviour, end) {
            (Behaviour::Transfer(transfer), FlowEnd::To) => {
                // A transfer is a byte stream: it has a time of completion, but no messages.
                transfer.handle_delivered(now, carrier);
                None
            }
            (Behaviour::Dialogue(dialogue), _) => dialogue.poll_delivered(now, end, carrier),
            (Behaviour::Exchange(exchange), _) => exchange.poll_delivered(now, end, carrier),
            (Behaviour::Iec104(stations), _) => stations.poll_delivered(now, end, carrier),
            (Behaviour::Messages(peers), _) => peers.poll_delivered(now, end, carrier),
            (_, FlowEnd::To) => self.outbox_mut()?.pop(carrier.delivered(FlowEnd::To), in_flight),
            (_, FlowEnd::From) => None,
        }
    }

    /// Bytes delivered at the `to` end at which [`poll_delivered`](Self::poll_delivered) has to be
    /// called; [`u64::MAX`] if no message is in flight.
    #[inline]
    #[must_use]
    pub fn watch(&self, in_flight: &InFlightMessages) -> u64 {
        match &self.behaviour {
            Behaviour::Bulk => u64::MAX,
            Behaviour::Transfer(transfer) => transfer.watch(),
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => outbox.watch(in_flight),
            Behaviour::Dialogue(dialogue) => dialogue.watch(FlowEnd::To),
            Behaviour::Exchange(exchange) => exchange.watch(FlowEnd::To),
            Behaviour::Iec104(stations) => stations.watch(FlowEnd::To),
            Behaviour::Messages(peers) => peers.watch(FlowEnd::To),
        }
    }

    /// The same for the `from` end, where only loads with answers of the other end expect data.
    #[inline]
    #[must_use]
    pub fn watch_response(&self) -> Option<u64> {
        match &self.behaviour {
            Behaviour::Dialogue(dialogue) => Some(dialogue.watch(FlowEnd::From)),
            Behaviour::Exchange(exchange) => Some(exchange.watch(FlowEnd::From)),
            Behaviour::Iec104(stations) => Some(stations.watch(FlowEnd::From)),
            Behaviour::Messages(peers) => Some(peers.watch(FlowEnd::From)),
            _ => None,
        }
    }
}

impl<C> Application<C> {
    /// Whether the application sends messages, which have delays, and not a byte stream.
    #[must_use]
    pub const fn has_messages(&self) -> bool {
        !matches!(self.behaviour, Behaviour::Bulk | Behaviour::Transfer(_))
    }

    /// Whether messages are written as fast as the transport accepts them.
    #[must_use]
    pub const fn is_greedy(&self) -> bool {
        matches!(self.behaviour, Behaviour::Greedy(_))
    }

    /// Whether the application exchanges requests and responses, or steps of both ends.
    #[must_use]
    pub const fn is_dialogue(&self) -> bool {
        matches!(self.behaviour, Behaviour::Dialogue(_) | Behaviour::Exchange(_))
    }

    /// The next message that the `to` end forwards, as the broker of MQTT does.
    pub fn poll_publication(&mut self) -> Option<Publication> {
        if let Behaviour::Messages(peers) = &mut self.behaviour {
            peers.poll_arrival()
        } else {
            None
        }
    }

    /// A message that another flow has delivered is to be sent. `publisher` is the number of its
    /// publisher among those whose messages are forwarded here.
    pub fn forward(&mut self, now: Instant, publisher: usize, publication: Publication) {
        if let Behaviour::Messages(peers) = &mut self.behaviour {
            let id = PublicationId { publisher, ..publication.id };
            peers.push(now, Publication { id, ..publication });
        }
    }

    /// Payload of acknowledged messages that has arrived, without further copies; `None` for other
    /// loads.
    #[must_use]
    pub fn delivered_payload(&self) -> Option<u64> {
        match &self.behaviour {
            Behaviour::Messages(peers) => Some(peers.delivered()),
            Behaviour::Iec104(stations) => stations.delivered(),
            _ => None,
        }
    }

    /// The transfer, if the application is one.
    #[must_use]
    pub fn transfer(&self) -> Option<&Transfer> {
        if let Behaviour::Transfer(transfer) = &self.behaviour { Some(transfer) } else { None }
    }

    /// The transfer, for a caller that determines its completion itself.
    pub fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        if let Behaviour::Transfer(transfer) = &mut self.behaviour { Some(transfer) } else { None }
    }

    /// The messages in flight; `None` for a byte stream and for loads with answers of the other
    /// end.
    #[must_use]
    pub const fn outbox(&self) -> Option<&Outbox> {
        match &self.behaviour {
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => Some(outbox),
            Behaviour::Bulk
            | Behaviour::Transfer(_)
            | Behaviour::Dialogue(_)
            | Behaviour::Exchange(_)
            | Behaviour::Iec104(_)
            | Behaviour::Messages(_) => None,
        }
    }

    /// The messages in flight, for a caller that determines their delivery itself.
    pub const fn outbox_mut(&mut self) -> Option<&mut Outbox> {
        match &mut self.behaviour {
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => Some(outbox),
            Behaviour::Bulk
            | Behaviour::Transfer(_)
            | Behaviour::Dialogue(_)
            | Behaviour::Exchange(_)
            | Behaviour::Iec104(_)
            | Behaviour::Messages(_) => None,
        }
    }

    /// The next open-loop message, if it is ready by now, for a caller that sends datagrams.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrival> {
        match &mut self.behaviour {
            Behaviour::OpenLoop(open_loop) => open_loop.source.next_message_by(now),
            _ => None,
        }
    }

    /// Times at which the undelivered messages became ready; for a dialogue, the request without
    /// complete response; for exchanges, those that are not complete.
    pub fn undelivered(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Instant> {
        let request = match &self.behaviour {
            Behaviour::Dialogue(dialogue) => dialogue.unanswered(),
            _ => None,
        };
        let (exchange, stations, peers) = match &self.behaviour {
            Behaviour::Exchange(exchange) => (Some(exchange), None, None),
            Behaviour::Iec104(stations) => (None, Some(stations), None),
            Behaviour::Messages(peers) => (None, None, Some(peers)),
            _ => (None, None, None),
        };
        let messages = self.outbox().into_iter().flat_map(|outbox| outbox.ready(in_flight));
        let exchanges = exchange.into_iter().flat_map(|exchange| exchange.incomplete());
        let values = stations.into_iter().flat_map(|stations| stations.undelivered());
        let acknowledged = peers.into_iter().flat_map(|peers| peers.undelivered());
        messages.chain(request).chain(exchanges).chain(values).chain(acknowledged)
    }
}

/// The message of an arrival, with its identifier at this end.
fn message<A: Carrier>(
    carrier: &A,
    end: FlowEnd,
    arrival: Arrival,
    (class, payload): (A::Class, Option<A::Payload>),
) -> Message<A::Class, A::Payload> {
    let Arrival { at, bytes } = arrival;
    // The stream position after the last byte identifies a message at both ends, without a header.
    Message { id: carrier.written(end).saturating_add(bytes), class, at, bytes, payload }
}

/// Writes a message at an end. Returns its identifier, the stream position after its last byte.
fn write<A: Carrier>(
    carrier: &mut A,
    end: FlowEnd,
    arrival: Arrival,
    content: (A::Class, Option<A::Payload>),
) -> u64 {
    let message = message(carrier, end, arrival, content);
    let id = message.id;
    carrier.write(end, message);
    id
}
