//! Open-loop messages, at times independent of the network (`periodic`, `poisson`, `burst`,
//! `on_off` with a rate).

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_flight::{Backlog, InFlightMessages, Outbox};
use super::{Carrier, write};
use crate::load::Source;

/// An open-loop source and its messages in flight.
#[derive(Debug, Clone)]
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
        in_flight: &mut InFlightMessages,
    ) {
        while self.source.next_time() <= now {
            let before = self.outbox.needs_backlog(in_flight).then(|| self.source.clone());
            let Some(arrival) = self.source.next_message() else { return };
            let end = write(carrier, FlowEnd::From, arrival, (class, None));
            match before {
                Some(source) => {
                    let backlog = Backlog::new(source, end.saturating_sub(arrival.bytes));
                    self.outbox.push_backlog(backlog, in_flight);
                }
                None => self.outbox.push(arrival.at, end, in_flight),
            }
        }
    }
}
