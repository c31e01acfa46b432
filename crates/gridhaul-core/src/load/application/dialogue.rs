//! Request-response dialogues (`request_response`): derives the next message from the data
//! delivered at each end.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{Carrier, Delivered, other, write};
use crate::load::{Arrival, RequestResponse};

/// Both ends of a dialogue. Either a message is in flight, or one is to be written.
#[derive(Debug, Clone)]
pub(super) struct Dialogue {
    load: RequestResponse,
    /// The next message, and the end that writes it.
    next: Option<(FlowEnd, Arrival)>,
    /// Delivered bytes at the `from` and at the `to` end at which the message in flight is
    /// complete; [`u64::MAX`] at an end without one.
    complete_at: [u64; 2],
}

impl Dialogue {
    pub(super) const fn new(load: RequestResponse) -> Self {
        let first = load.first_request();
        Self { load, next: Some((FlowEnd::From, first)), complete_at: [u64::MAX; 2] }
    }

    /// When the next message is written; [`Instant::NEVER`] while one is in flight.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next.map_or(Instant::NEVER, |(_, arrival)| arrival.at)
    }

    /// Delivered bytes at an end at which the message in flight is complete.
    #[inline]
    pub(super) const fn watch(&self, end: FlowEnd) -> u64 {
        self.complete_at[end as usize]
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
        self.complete_at[other(end) as usize] = write(carrier, end, arrival, (class, None));
    }

    /// More data were delivered at an end. Returns the response if it is complete now.
    pub(super) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &impl Carrier,
    ) -> Option<Delivered> {
        let complete_at = &mut self.complete_at[end as usize];
        if carrier.delivered(end) < *complete_at {
            return None;
        }
        let id = std::mem::replace(complete_at, u64::MAX);
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
