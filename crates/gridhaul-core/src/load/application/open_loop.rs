//! Messages at times of their own, whatever the network does (`periodic`, `poisson`, `burst`, `on_off`
//! with a rate).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::under_way::{Outbox, UnderWay};
use super::{Carrier, write};
use crate::load::Source;

/// An open-loop source and its messages under way.
#[derive(Debug)]
pub(super) struct OpenLoop {
    pub source: Source,
    pub outbox: Outbox,
}

impl OpenLoop {
    /// Writes all messages that are ready by now.
    pub(super) fn handle_timeout<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
        under_way: &mut UnderWay,
    ) {
        while let Some(arrival) = self.source.next_message_by(now) {
            let end = write(carrier, FlowEnd::From, arrival, (class, None));
            self.outbox.push(arrival.at, end, under_way);
        }
    }
}
