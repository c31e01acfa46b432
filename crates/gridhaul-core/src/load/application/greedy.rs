//! Messages as fast as the transport accepts them, during on periods (`on_off` without a rate).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_flight::{InFlightMessages, Outbox};
use super::{Carrier, message, write};
use crate::load::{Arrival, Greedy};

/// A greedy load and its messages in flight.
#[derive(Debug, Clone)]
pub(super) struct GreedySender {
    /// Boxed: each of a million applications has the size of the largest kind.
    pub load: Box<Greedy>,
    pub outbox: Outbox,
}

impl GreedySender {
    /// An on or off period begins. If the connection is not established at the start of an on
    /// period, one message is written to the send buffer; the others follow when the connection
    /// accepts them.
    pub(super) fn handle_timeout<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) {
        self.load.periods.advance(now);
        if self.load.periods.active() && !carrier.is_open() {
            let arrival = Arrival { at: now, bytes: self.load.bytes };
            let end = write(carrier, FlowEnd::From, arrival, (class, None));
            self.outbox.push(now, end, in_flight);
        }
    }

    /// Writes a message during an on period if the transport accepts one. Returns whether it did.
    #[inline]
    pub(super) fn poll_write<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
        in_flight: &mut InFlightMessages,
    ) -> bool {
        if !self.load.periods.active() {
            return false;
        }
        let arrival = Arrival { at: now, bytes: self.load.bytes };
        let message = message(carrier, FlowEnd::From, arrival, (class, None));
        let end = message.id;
        self.load.refused = !carrier.try_write(FlowEnd::From, message, self.load.refused);
        if self.load.refused {
            return false;
        }
        self.outbox.push(now, end, in_flight);
        true
    }
}
