//! Messages that were handed to connections and have not been delivered: a list for each application, all of
//! them in the same columns. A meter whose messages wait for an overloaded link has a few; a block of
//! memory for each meter would cost more than they do.

use std::num::NonZeroU32;

use gridhaul_scenario::units::Instant;

use super::Delivered;

/// The messages under way of all applications that share it. A place in the columns belongs to the list of
/// some [`Outbox`], or to that of the places that are free.
#[derive(Debug, Default)]
pub struct InFlightMessages {
    /// Stream position after the last byte of each message, counted from 0.
    end: Vec<u64>,
    ready: Vec<Instant>,
    /// The place that follows in the same list.
    next: Vec<Option<Place>>,
    free: Option<Place>,
}

/// A place in the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(NonZeroU32);

/// The messages of one application that are under way, in the order of the stream. Every call gets the same
/// [`InFlightMessages`].
#[derive(Debug, Default)]
pub struct Outbox {
    first: Option<Place>,
    last: Option<Place>,
}

impl Outbox {
    /// A message that was `ready` has been handed over, and was written up to `end`.
    #[inline]
    pub(super) fn push(&mut self, ready: Instant, end: u64, in_flight: &mut InFlightMessages) {
        let place = in_flight.take_place(end, ready);
        match self.last {
            Some(last) => in_flight.next[last.index()] = Some(place),
            None => self.first = Some(place),
        }
        self.last = Some(place);
    }

    /// Takes the first message, if it is whole with so many bytes delivered.
    #[inline]
    pub fn pop(&mut self, delivered: u64, in_flight: &mut InFlightMessages) -> Option<Delivered> {
        let first = self.first.filter(|first| in_flight.end[first.index()] <= delivered)?;
        self.first = in_flight.give_back(first);
        if self.first.is_none() {
            self.last = None;
        }
        let index = first.index();
        Some(Delivered { id: in_flight.end[index], at: in_flight.ready[index] })
    }

    /// Stream positions after the last bytes of the messages under way, in bytes counted from 0.
    pub fn ends(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = u64> {
        self.places(in_flight).map(|place| in_flight.end[place.index()])
    }

    /// When the messages under way were ready.
    pub fn ready(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Instant> {
        self.places(in_flight).map(|place| in_flight.ready[place.index()])
    }

    fn places(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Place> {
        std::iter::successors(self.first, |place| in_flight.next[place.index()])
    }

    /// Bytes delivered with which the first message under way is whole; [`u64::MAX`] where there is none.
    #[inline]
    #[must_use]
    pub fn watch(&self, in_flight: &InFlightMessages) -> u64 {
        self.first.map_or(u64::MAX, |first| in_flight.end[first.index()])
    }
}

impl InFlightMessages {
    #[inline]
    fn take_place(&mut self, end: u64, ready: Instant) -> Place {
        let Some(place) = self.free else {
            self.end.push(end);
            self.ready.push(ready);
            self.next.push(None);
            return Place::behind(self.next.len());
        };
        let index = place.index();
        self.free = self.next[index].take();
        (self.end[index], self.ready[index]) = (end, ready);
        place
    }

    /// Frees a place; returns the one that followed it.
    #[inline]
    fn give_back(&mut self, place: Place) -> Option<Place> {
        let followed_by = std::mem::replace(&mut self.next[place.index()], self.free);
        self.free = Some(place);
        followed_by
    }
}

impl Place {
    /// The last of so many places.
    fn behind(count: usize) -> Self {
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        Self(count.expect("four billion messages under way would not fit into memory"))
    }

    #[inline]
    const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn at(secs: f64) -> Instant {
        Instant::from_secs_f64(secs)
    }

    #[test]
    fn messages_come_out_as_they_went_in() {
        let (mut outbox, mut in_flight) = (Outbox::default(), InFlightMessages::default());
        for (secs, end) in [(1.0, 10), (2.0, 15), (3.0, 16)] {
            outbox.push(at(secs), end, &mut in_flight);
        }
        assert_eq!((outbox.watch(&in_flight), outbox.pop(9, &mut in_flight)), (10, None));
        assert_eq!(outbox.ends(&in_flight).collect::<Vec<_>>(), [10, 15, 16]);
        assert_eq!(outbox.ready(&in_flight).collect::<Vec<_>>(), [at(1.0), at(2.0), at(3.0)]);
        let out: Vec<_> = std::iter::from_fn(|| outbox.pop(15, &mut in_flight)).collect();
        assert_eq!(out, [Delivered { id: 10, at: at(1.0) }, Delivered { id: 15, at: at(2.0) }]);
        outbox.push(at(4.0), 20, &mut in_flight);
        assert_eq!(outbox.pop(16, &mut in_flight), Some(Delivered { id: 16, at: at(3.0) }));
        assert_eq!(outbox.watch(&in_flight), 20);
        assert_eq!(outbox.pop(20, &mut in_flight), Some(Delivered { id: 20, at: at(4.0) }));
        assert_eq!(outbox.watch(&in_flight), u64::MAX);
    }

    proptest! {
        /// Flows that share the columns do not mix, and places are used again.
        #[test]
        fn each_flow_has_a_queue(
            steps in prop::collection::vec((0_usize..3, prop::option::of(0_u64..9)), 0..200),
        ) {
            let mut in_flight = InFlightMessages::default();
            let flow = || (Outbox::default(), VecDeque::<(u64, Instant)>::new(), 0);
            let mut flows = [flow(), flow(), flow()];
            let mut most = 0;
            for (step, (flow, bytes)) in steps.into_iter().enumerate() {
                let (outbox, expected, written) = &mut flows[flow];
                if let Some(bytes) = bytes {
                    let ready = Instant::from_nanos(step as u64);
                    *written += bytes;
                    outbox.push(ready, *written, &mut in_flight);
                    expected.push_back((*written, ready));
                } else {
                    let first = expected.pop_front().map(|(id, at)| Delivered { id, at });
                    prop_assert_eq!(outbox.pop(u64::MAX, &mut in_flight), first);
                }
                let ends: Vec<u64> = expected.iter().map(|(end, _)| *end).collect();
                prop_assert_eq!(outbox.ends(&in_flight).collect::<Vec<_>>(), ends);
                most = most.max(flows.iter().map(|(_, expected, _)| expected.len()).sum());
            }
            prop_assert_eq!(in_flight.end.len(), most);
        }
    }
}
