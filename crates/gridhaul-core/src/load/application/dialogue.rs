//! Request-response dialogues (`request_response`): derives the next message from the data
//! delivered at each end.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::in_transit::InTransit;
use super::{Carrier, Delivered, write};
use crate::load::{Arrival, RequestResponse};

/// Both ends of a dialogue. Either a message is in flight, or one is to be written.
#[derive(Debug, Clone)]
pub(super) struct Dialogue {
    load: RequestResponse,
    /// The next message, and the end that writes it.
    next: Option<(FlowEnd, Arrival)>,
    in_transit: InTransit<()>,
}

impl Dialogue {
    pub(super) const fn new(load: RequestResponse) -> Self {
        let first = load.first_request();
        Self { load, next: Some((FlowEnd::From, first)), in_transit: InTransit::new() }
    }

    /// When the next message is written; [`Instant::NEVER`] while one is in flight.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next.map_or(Instant::NEVER, |(_, arrival)| arrival.at)
    }

    /// Delivered bytes at an end at which the message in flight is complete.
    #[inline]
    pub(super) fn watch(&self, end: FlowEnd) -> u64 {
        self.in_transit.watch(end)
    }

    /// When the request without complete response was ready; `None` during a pause.
    pub(super) fn unanswered(&self) -> Option<Instant> {
        let is_pause = matches!(self.next, Some((FlowEnd::From, _)));
        (!is_pause).then(|| self.load.requested_at())
    }

    pub(super) fn handle_timeout<A: Carrier>(
        &mut self,
        now: Instant,
        class: A::Class,
        carrier: &mut A,
    ) {
        let Some((end, arrival)) = self.next.take_if(|(_, arrival)| arrival.at <= now) else {
            return;
        };
        write(carrier, end, arrival, (class, None));
        self.in_transit.push(end, (), carrier);
    }

    /// More data were delivered at an end. Returns the response if it is complete now.
    pub(super) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &impl Carrier,
    ) -> Option<Delivered> {
        let (id, ()) = self.in_transit.take(end, carrier)?;
        let requested_at = self.load.requested_at();
        // The load gets the whole message at once.
        let next = match end {
            FlowEnd::To => self.load.handle_request_bytes(now, u64::MAX / 2),
            FlowEnd::From => self.load.handle_response_bytes(now, u64::MAX / 2),
        };
        self.next = next.map(|arrival| (end, arrival));
        matches!(end, FlowEnd::From).then_some(Delivered { id, at: requested_at })
    }
}
