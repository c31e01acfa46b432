//! Applications: carry out what a load demands, over whatever transports it.
//!
//! The caller drives an [`Application`]: [`handle_timeout`](Application::handle_timeout) when the connection
//! is to be opened and at each [`next_deadline`](Application::next_deadline),
//! [`poll_write`](Application::poll_write) while the connection may take more, and
//! [`poll_delivered`](Application::poll_delivered) until it returns `None` when data was delivered. Messages
//! go to a [`Carrier`], which notes at the same time that they are ready. Those under way are kept in
//! [`UnderWay`], which applications share.

mod carrier;
mod dialogue;
mod greedy;
mod open_loop;
#[cfg(test)]
mod tests;
mod transfer;
mod under_way;

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use self::dialogue::Dialogue;
use self::greedy::GreedySender;
use self::open_loop::OpenLoop;
use super::{Arrival, Demand};

pub use carrier::{Carrier, Delivered, Message};
pub use transfer::Transfer;
pub use under_way::{Outbox, UnderWay};

/// The application of a connection, at both of its ends.
#[derive(Debug)]
pub struct Application<C = ()> {
    class: C,
    behaviour: Behaviour,
}

/// One kind of application. Most are boxed: a million meters have the size of the largest each.
#[derive(Debug)]
enum Behaviour {
    /// Writes without end.
    Bulk,
    Transfer(Box<Transfer>),
    OpenLoop(OpenLoop),
    Greedy(GreedySender),
    /// Writes messages when a recording has them.
    Recorded(Outbox),
    Dialogue(Box<Dialogue>),
}

impl<C: Copy> Application<C> {
    /// Carries out a demand from `start` on, with messages of this class.
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
        };
        Self { class, behaviour }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; [`Instant::NEVER`] where nothing is.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        match &self.behaviour {
            Behaviour::Bulk | Behaviour::Transfer(_) | Behaviour::Recorded(_) => Instant::NEVER,
            Behaviour::OpenLoop(open_loop) => open_loop.source.coming(),
            Behaviour::Greedy(greedy) => greedy.load.bursts.until(),
            Behaviour::Dialogue(dialogue) => dialogue.next_deadline(),
        }
    }

    /// Writes what is ready by now. Call it once when the connection is to be opened, which may be before
    /// the load begins, and then at each deadline.
    pub fn handle_timeout<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) {
        let class = self.class;
        match &mut self.behaviour {
            Behaviour::Bulk => carrier.write_stream(FlowEnd::From, u64::MAX),
            Behaviour::Transfer(transfer) => transfer.write(carrier),
            Behaviour::OpenLoop(open_loop) => {
                open_loop.handle_timeout(now, class, carrier, under_way);
            }
            Behaviour::Greedy(greedy) => greedy.handle_timeout(now, class, carrier, under_way),
            Behaviour::Recorded(_) => {}
            Behaviour::Dialogue(dialogue) => dialogue.handle_timeout(now, class, carrier),
        }
    }

    /// A recording has a message for the application; no other application takes one.
    pub fn handle_recorded<A: Carrier<Class = C>>(
        &mut self,
        arrival: Arrival,
        payload: Option<A::Payload>,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) {
        if let Behaviour::Recorded(outbox) = &mut self.behaviour {
            let end = write(carrier, FlowEnd::From, arrival, (self.class, payload));
            outbox.push(arrival.at, end, under_way);
        }
    }

    /// Takes bursts that have begun or ended by now, for a caller that writes before it handles a deadline
    /// that has passed.
    pub fn advance(&mut self, now: Instant) {
        if let Behaviour::Greedy(greedy) = &mut self.behaviour {
            greedy.load.bursts.advance(now);
        }
    }

    /// Whether the application writes whenever the transport takes a message.
    #[inline]
    #[must_use]
    pub fn is_in_burst(&self) -> bool {
        matches!(&self.behaviour, Behaviour::Greedy(greedy) if greedy.load.bursts.active())
    }

    /// Writes a message if a burst is under way and the transport takes one. Returns whether it did: call
    /// it until it does not.
    #[inline]
    pub fn poll_write<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) -> bool {
        match &mut self.behaviour {
            Behaviour::Greedy(greedy) => greedy.poll_write(now, self.class, carrier, under_way),
            _ => false,
        }
    }

    /// Data was delivered at an end: returns a message that is whole there, in the order of the stream. The
    /// deadline of a dialogue changes.
    #[inline]
    pub fn poll_delivered<A: Carrier<Class = C>>(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) -> Option<Delivered> {
        match (&mut self.behaviour, end) {
            (Behaviour::Transfer(transfer), FlowEnd::To) => {
                transfer.handle_delivered(now, carrier);
                None
            }
            (Behaviour::Dialogue(dialogue), _) => dialogue.poll_delivered(now, end, carrier),
            (_, FlowEnd::To) => self.outbox_mut()?.pop(carrier.delivered(FlowEnd::To), under_way),
            (_, FlowEnd::From) => None,
        }
    }

    /// Bytes delivered at the `to` end from which [`poll_delivered`](Self::poll_delivered) has work there;
    /// [`u64::MAX`] where nothing is awaited.
    #[inline]
    #[must_use]
    pub fn watch(&self, under_way: &UnderWay) -> u64 {
        match &self.behaviour {
            Behaviour::Bulk => u64::MAX,
            Behaviour::Transfer(transfer) => transfer.watch(),
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => outbox.watch(under_way),
            Behaviour::Dialogue(dialogue) => dialogue.watch(FlowEnd::To),
        }
    }

    /// The same for the `from` end, where only a dialogue awaits something: the response.
    #[inline]
    #[must_use]
    pub const fn watch_response(&self) -> Option<u64> {
        match &self.behaviour {
            Behaviour::Dialogue(dialogue) => Some(dialogue.watch(FlowEnd::From)),
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

    /// Whether messages are written as fast as the transport takes them.
    #[must_use]
    pub const fn is_greedy(&self) -> bool {
        matches!(self.behaviour, Behaviour::Greedy(_))
    }

    /// The transfer, if the application is one.
    #[must_use]
    pub fn transfer(&self) -> Option<&Transfer> {
        if let Behaviour::Transfer(transfer) = &self.behaviour { Some(transfer) } else { None }
    }

    /// The transfer, for a caller that finds out by other means that it is complete.
    pub fn transfer_mut(&mut self) -> Option<&mut Transfer> {
        if let Behaviour::Transfer(transfer) = &mut self.behaviour { Some(transfer) } else { None }
    }

    /// The messages under way; `None` for a byte stream and for a dialogue.
    #[must_use]
    pub const fn outbox(&self) -> Option<&Outbox> {
        match &self.behaviour {
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => Some(outbox),
            Behaviour::Bulk | Behaviour::Transfer(_) | Behaviour::Dialogue(_) => None,
        }
    }

    /// The messages under way, for a caller that finds out by other means that they are whole.
    pub const fn outbox_mut(&mut self) -> Option<&mut Outbox> {
        match &mut self.behaviour {
            Behaviour::OpenLoop(OpenLoop { outbox, .. })
            | Behaviour::Greedy(GreedySender { outbox, .. })
            | Behaviour::Recorded(outbox) => Some(outbox),
            Behaviour::Bulk | Behaviour::Transfer(_) | Behaviour::Dialogue(_) => None,
        }
    }

    /// The next arrival of an open loop, if it is ready by now, for a caller that sends datagrams.
    pub fn poll_arrival(&mut self, now: Instant) -> Option<Arrival> {
        match &mut self.behaviour {
            Behaviour::OpenLoop(open_loop) => open_loop.source.next_message_by(now),
            _ => None,
        }
    }

    /// When the messages were ready that have not been delivered whole; of a dialogue, the request without
    /// response.
    pub fn undelivered(&self, under_way: &UnderWay) -> impl Iterator<Item = Instant> {
        let request = match &self.behaviour {
            Behaviour::Dialogue(dialogue) => dialogue.unanswered(),
            _ => None,
        };
        let messages = self.outbox().into_iter().flat_map(|outbox| outbox.ready(under_way));
        messages.chain(request)
    }
}

/// The message of an arrival as the carrier gets it at this end.
fn message<A: Carrier>(
    carrier: &A,
    end: FlowEnd,
    arrival: Arrival,
    (class, payload): (A::Class, Option<A::Payload>),
) -> Message<A::Class, A::Payload> {
    let Arrival { at, bytes } = arrival;
    Message { id: carrier.written(end).saturating_add(bytes), class, at, bytes, payload }
}

/// Writes a message at an end. Returns its identifier, the position after its last byte.
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

const fn other(end: FlowEnd) -> FlowEnd {
    match end {
        FlowEnd::From => FlowEnd::To,
        FlowEnd::To => FlowEnd::From,
    }
}
