//! Messages in flight: passed to connections and not yet delivered. Each application has a linked
//! list, and all lists share the same columns, because a separate allocation for each meter would
//! cost more memory than its few messages.

use std::num::NonZeroU32;

use gridhaul_scenario::units::Instant;

use super::Delivered;

/// The messages in flight of all applications that share these columns. A slot belongs to the list
/// of one [`Outbox`] or to the list of free slots.
#[derive(Debug, Clone, Default)]
pub struct InFlightMessages {
    /// Stream position after the last byte of each message, counted from 0.
    end: Vec<u64>,
    ready: Vec<Instant>,
    /// The next slot of the same list.
    next: Vec<Option<Slot>>,
    free: Option<Slot>,
}

/// Index of a slot, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot(NonZeroU32);

/// The messages in flight of one application, in the order of the stream. All calls must use the
/// same [`InFlightMessages`].
#[derive(Debug, Clone, Default)]
pub struct Outbox {
    first: Option<Slot>,
    last: Option<Slot>,
}

impl Outbox {
    /// Appends a message that became ready at `ready` and was written up to stream position `end`.
    #[inline]
    pub(super) fn push(&mut self, ready: Instant, end: u64, in_flight: &mut InFlightMessages) {
        let slot = in_flight.allocate_slot(end, ready);
        match self.last {
            Some(last) => in_flight.next[last.index()] = Some(slot),
            None => self.first = Some(slot),
        }
        self.last = Some(slot);
    }

    /// Removes and returns the first message, if it is complete with this many bytes delivered.
    #[inline]
    pub fn pop(&mut self, delivered: u64, in_flight: &mut InFlightMessages) -> Option<Delivered> {
        let first = self.first.filter(|first| in_flight.end[first.index()] <= delivered)?;
        self.first = in_flight.free_slot(first);
        if self.first.is_none() {
            self.last = None;
        }
        let index = first.index();
        Some(Delivered { id: in_flight.end[index], at: in_flight.ready[index] })
    }

    /// Stream positions after the last bytes of the messages in flight, in bytes counted from 0.
    pub fn ends(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = u64> {
        self.slots(in_flight).map(|slot| in_flight.end[slot.index()])
    }

    /// When the messages in flight became ready.
    pub fn ready(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Instant> {
        self.slots(in_flight).map(|slot| in_flight.ready[slot.index()])
    }

    fn slots(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Slot> {
        std::iter::successors(self.first, |slot| in_flight.next[slot.index()])
    }

    /// Delivered bytes at which the first message in flight is complete; [`u64::MAX`] without
    /// messages.
    #[inline]
    #[must_use]
    pub fn watch(&self, in_flight: &InFlightMessages) -> u64 {
        self.first.map_or(u64::MAX, |first| in_flight.end[first.index()])
    }
}

impl InFlightMessages {
    #[inline]
    fn allocate_slot(&mut self, end: u64, ready: Instant) -> Slot {
        let Some(slot) = self.free else {
            self.end.push(end);
            self.ready.push(ready);
            self.next.push(None);
            return Slot::last_of(self.next.len());
        };
        let index = slot.index();
        self.free = self.next[index].take();
        (self.end[index], self.ready[index]) = (end, ready);
        slot
    }

    /// Frees a slot; returns the next slot of its list.
    #[inline]
    fn free_slot(&mut self, slot: Slot) -> Option<Slot> {
        let followed_by = std::mem::replace(&mut self.next[slot.index()], self.free);
        self.free = Some(slot);
        followed_by
    }
}

impl Slot {
    /// The last of this many slots.
    fn last_of(count: usize) -> Self {
        let count = u32::try_from(count).ok().and_then(NonZeroU32::new);
        Self(count.expect("four billion messages in flight would not fit into memory"))
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
    fn messages_leave_in_the_order_of_insertion() {
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
        /// The lists of several flows are independent, and freed slots are reused.
        #[test]
        fn each_flow_has_its_own_queue(
            steps in prop::collection::vec((0_usize..3, prop::option::of(0_u64..9)), 0..200),
        ) {
            let mut in_flight = InFlightMessages::default();
            let flow = || (Outbox::default(), VecDeque::<(u64, Instant)>::new(), 0);
            let mut flows = [flow(), flow(), flow()];
            let mut maximum = 0;
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
                maximum = maximum.max(flows.iter().map(|(_, expected, _)| expected.len()).sum());
            }
            prop_assert_eq!(in_flight.end.len(), maximum);
        }
    }
}
