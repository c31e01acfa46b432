//! A request, its response, a pause (`request_response`): turns what each end has received into the next
//! message.

use gridhaul_scenario::scenario::FlowEnd;
use gridhaul_scenario::units::Instant;

use super::{Carrier, Delivered, other, write};
use crate::load::{Arrival, RequestResponse};

/// Both ends of a dialogue. Either a message is under way, or one is to be written.
#[derive(Debug)]
pub(super) struct Dialogue {
    load: RequestResponse,
    /// The message that is written next, and at which end.
    next: Option<(FlowEnd, Arrival)>,
    /// Bytes delivered at the `from` and at the `to` end with which the message under way is whole there;
    /// [`u64::MAX`] at an end to which none is.
    whole: [u64; 2],
}

impl Dialogue {
    pub(super) const fn new(load: RequestResponse) -> Self {
        let first = load.first_request();
        Self { load, next: Some((FlowEnd::From, first)), whole: [u64::MAX; 2] }
    }

    /// When the next message is written; [`Instant::NEVER`] while one is under way.
    pub(super) fn next_deadline(&self) -> Instant {
        self.next.map_or(Instant::NEVER, |(_, arrival)| arrival.at)
    }

    /// Bytes delivered at an end with which the message under way is whole there.
    #[inline]
    pub(super) const fn watch(&self, end: FlowEnd) -> u64 {
        self.whole[end as usize]
    }

    /// When the request was ready that has no whole response yet; `None` in a pause.
    pub(super) fn unanswered(&self) -> Option<Instant> {
        let is_pause = matches!(self.next, Some((FlowEnd::From, _)));
        (!is_pause).then(|| self.load.asked())
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
        self.whole[other(end) as usize] = write(carrier, end, arrival, (class, None));
    }

    /// More was delivered at an end. Returns the response that is whole there now.
    pub(super) fn poll_delivered(
        &mut self,
        now: Instant,
        end: FlowEnd,
        carrier: &impl Carrier,
    ) -> Option<Delivered> {
        let whole = &mut self.whole[end as usize];
        if carrier.delivered(end) < *whole {
            return None;
        }
        let id = std::mem::replace(whole, u64::MAX);
        let asked = self.load.asked();
        // The load is notified of the whole message in one piece.
        let next = match end {
            FlowEnd::To => self.load.handle_request_bytes(now, u64::MAX / 2),
            FlowEnd::From => self.load.handle_response_bytes(now, u64::MAX / 2),
        };
        self.next = next.map(|arrival| (end, arrival));
        matches!(end, FlowEnd::From).then_some(Delivered { id, at: asked })
    }
}
