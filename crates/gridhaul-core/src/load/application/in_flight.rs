//! Messages in flight: passed to connections and not yet delivered. Each application has a linked
//! list, and all lists share the same columns, because a separate allocation for each meter would
//! cost more memory than its few messages.
//!
//! On an overloaded network, millions of messages wait. Those after the first ones of a list are
//! not stored: a copy of their source generates them again when those before are delivered.

use std::num::NonZeroU32;

use gridhaul_scenario::units::Instant;

use super::Delivered;
use crate::load::Source;

/// The messages in flight of all applications that share these columns. A slot belongs to the list
/// of one [`Outbox`] or to the list of free slots.
#[derive(Debug, Clone, Default)]
pub struct InFlightMessages {
    /// Stream position after the last byte of each message, counted from 0; the index of the
    /// backlog in the slot of a backlog.
    end: Vec<u64>,
    /// When each message became ready; [`Instant::NEVER`] in the slot of a backlog.
    ready: Vec<Instant>,
    /// The next slot of the same list.
    next: Vec<Option<Slot>>,
    free: Option<Slot>,
    backlogs: Vec<Option<Backlog>>,
    free_backlogs: Vec<u64>,
}

/// The messages at the end of a long list, in one slot. As an iterator, it generates them in the
/// order of the stream.
#[derive(Debug, Clone)]
pub(super) struct Backlog {
    /// The source before the first of them.
    source: Source,
    /// Stream position before the first of them.
    position: u64,
    count: u64,
}

/// Number of messages of a list that are stored before a backlog begins.
const STORED_MAX: usize = 8;

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
    /// If the list has a backlog, the message is the next one of its source.
    #[inline]
    pub(super) fn push(&mut self, ready: Instant, end: u64, in_flight: &mut InFlightMessages) {
        if let Some(backlog) = self.last.and_then(|last| in_flight.backlog_mut(last)) {
            backlog.count += 1;
            return;
        }
        let slot = in_flight.allocate_slot(end, ready);
        self.append(slot, in_flight);
    }

    /// Whether the next message begins a backlog ([`push_backlog`](Self::push_backlog)): the list
    /// is long and has none.
    pub(super) fn needs_backlog(&self, in_flight: &InFlightMessages) -> bool {
        let has_backlog = || self.last.is_some_and(|last| in_flight.is_backlog(last));
        !has_backlog() && self.slots(in_flight).nth(STORED_MAX - 1).is_some()
    }

    /// Appends a message as the first one of a backlog.
    #[cold]
    pub(super) fn push_backlog(&mut self, backlog: Backlog, in_flight: &mut InFlightMessages) {
        let index = in_flight.allocate_backlog(backlog);
        let slot = in_flight.allocate_slot(index, Instant::NEVER);
        self.append(slot, in_flight);
    }

    #[inline]
    fn append(&mut self, slot: Slot, in_flight: &mut InFlightMessages) {
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
        let message = in_flight.message(first);
        self.first = in_flight.free_slot(first);
        match self.first {
            None => self.last = None,
            Some(next) if in_flight.is_backlog(next) => self.store_next(next, in_flight),
            Some(_) => {}
        }
        Some(message)
    }

    /// The list has only this backlog left: stores its first message, so that the first slot of a
    /// list always has a message.
    #[cold]
    fn store_next(&mut self, backlog: Slot, in_flight: &mut InFlightMessages) {
        let Some(messages) = in_flight.backlog_mut(backlog) else { return };
        let next = messages.next();
        let is_empty = messages.count == 0;
        if is_empty {
            in_flight.free_backlog(backlog);
        }
        (self.first, self.last) = (None, None);
        if let Some(Delivered { id, at }) = next {
            let slot = in_flight.allocate_slot(id, at);
            self.append(slot, in_flight);
        }
        if !is_empty {
            self.append(backlog, in_flight);
        }
    }

    /// Stream positions after the last bytes of the messages in flight, in bytes counted from 0.
    pub fn ends(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = u64> {
        self.messages(in_flight).map(|message| message.id)
    }

    /// When the messages in flight became ready.
    pub fn ready(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Instant> {
        self.messages(in_flight).map(|message| message.at)
    }

    fn messages(&self, in_flight: &InFlightMessages) -> impl Iterator<Item = Delivered> {
        self.slots(in_flight).flat_map(|slot| {
            let backlog = in_flight.backlog(slot).cloned();
            let stored = backlog.is_none().then(|| in_flight.message(slot));
            stored.into_iter().chain(backlog.into_iter().flatten())
        })
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

impl Backlog {
    /// The backlog of the next message of this source, which is written from a stream position on.
    pub(super) const fn new(source: Source, position: u64) -> Self {
        Self { source, position, count: 1 }
    }
}

impl Iterator for Backlog {
    type Item = Delivered;

    fn next(&mut self) -> Option<Delivered> {
        self.count = self.count.checked_sub(1)?;
        let arrival = self.source.next_message()?;
        self.position = self.position.saturating_add(arrival.bytes);
        Some(Delivered { id: self.position, at: arrival.at })
    }
}

impl InFlightMessages {
    /// Number of slots, used or not.
    #[cfg(test)]
    pub(super) fn slots(&self) -> usize {
        self.next.len()
    }

    #[inline]
    fn message(&self, slot: Slot) -> Delivered {
        Delivered { id: self.end[slot.index()], at: self.ready[slot.index()] }
    }

    #[inline]
    fn is_backlog(&self, slot: Slot) -> bool {
        self.ready[slot.index()] == Instant::NEVER
    }

    fn backlog(&self, slot: Slot) -> Option<&Backlog> {
        if !self.is_backlog(slot) {
            return None;
        }
        self.backlogs.get(self.end[slot.index()] as usize)?.as_ref()
    }

    #[inline]
    fn backlog_mut(&mut self, slot: Slot) -> Option<&mut Backlog> {
        if !self.is_backlog(slot) {
            return None;
        }
        self.backlogs.get_mut(self.end[slot.index()] as usize)?.as_mut()
    }

    /// Returns the index of the backlog.
    fn allocate_backlog(&mut self, backlog: Backlog) -> u64 {
        let Some(index) = self.free_backlogs.pop() else {
            self.backlogs.push(Some(backlog));
            return self.backlogs.len() as u64 - 1;
        };
        self.backlogs[index as usize] = Some(backlog);
        index
    }

    fn free_backlog(&mut self, slot: Slot) {
        let index = self.end[slot.index()];
        self.backlogs[index as usize] = None;
        self.free_backlogs.push(index);
        self.free_slot(slot);
    }

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
