//! Messages as fast as the transport takes them, in bursts (`on_off` without a rate).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::under_way::{Outbox, UnderWay};
use super::{Carrier, message, write};
use crate::load::{Arrival, Greedy};

/// A greedy load and its messages under way.
#[derive(Debug)]
pub(super) struct GreedySender {
    /// Boxed: a million applications have the size of the largest kind.
    pub load: Box<Greedy>,
    pub outbox: Outbox,
}

impl GreedySender {
    /// A burst begins or ends. A burst that finds the connection closed has a message ready all the same,
    /// which waits in the send buffer; the others come when the connection takes them.
    pub(super) fn handle_timeout<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) {
        self.load.bursts.advance(now);
        if self.load.bursts.active() && !carrier.is_open() {
            let arrival = Arrival { at: now, bytes: self.load.bytes };
            let end = write(carrier, FlowEnd::From, arrival, (class, None));
            self.outbox.push(now, end, under_way);
        }
    }

    /// Writes a message if a burst is under way and the transport takes one. Returns whether it did.
    #[inline]
    pub(super) fn poll_write<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) -> bool {
        if !self.load.bursts.active() {
            return false;
        }
        let arrival = Arrival { at: now, bytes: self.load.bytes };
        let message = message(carrier, FlowEnd::From, arrival, (class, None));
        let end = message.id;
        self.load.refused = !carrier.try_write(FlowEnd::From, message, self.load.refused);
        if self.load.refused {
            return false;
        }
        self.outbox.push(now, end, under_way);
        true
    }
}
