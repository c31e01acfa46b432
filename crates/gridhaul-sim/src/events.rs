//! The event queue, with integer time. At equal times events of links come first; further ties are
//! resolved in order of scheduling.
//!
//! Ties are frequent: a segment that a delayed acknowledgement has released arrives exactly when
//! the next delayed-ACK timer expires. The segment was in flight before the timer was set, so it is
//! handled first, and the acknowledgement covers it.

use gridhaul_scenario::units::Instant;

use crate::end_id::EndId;
use crate::heap::{Heap, NOTHING};

/// The target of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A direction of a link, or a medium with contention.
    Link(u32),
    /// An end of a flow.
    End(EndId),
    /// The application of a flow.
    App(u32),
    /// The measurements: the warm-up ends, or a sample is due.
    Sampling,
    /// A recorded trace.
    Trace(u32),
    /// A proxy instance, which serves one connection.
    Proxy(u32),
}

/// A queue in which every target has at most one valid entry.
///
/// Timers move later far more often than earlier, so an entry stays in place when its target moves
/// to a later time, and the target schedules itself again when the entry expires. An entry that an
/// earlier one has superseded is recognised by its time and dropped.
///
/// An entry is time, sequence number and target in one integer. Links have a separate heap, because
/// they are few and have most events.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    links: Links,
    others: Heap,
    sequence: u64,
    /// Time of the valid entry of each target, by kind.
    scheduled: [Vec<Instant>; 4],
    traces: u32,
}

/// The entries of links.
#[derive(Debug, Clone)]
enum Links {
    /// One entry for each link; a linear search is faster than a heap for a few links.
    Few([u128; FEW]),
    Many(Heap),
}

/// Most links for which no heap is used.
const FEW: usize = 4;

impl Links {
    #[inline]
    fn first(&mut self) -> u128 {
        match self {
            Self::Few([a, b, c, d]) => (*a).min(*b).min((*c).min(*d)),
            Self::Many(heap) => heap.first(),
        }
    }

    /// Adds an entry.
    #[inline]
    fn push(&mut self, link: usize, entry: u128) {
        match self {
            Self::Few(entries) => {
                debug_assert_eq!(entries[link % FEW], NOTHING, "a deadline has moved earlier");
                entries[link % FEW] = entry;
            }
            Self::Many(heap) => heap.push(entry),
        }
    }

    /// Removes the first entry, which belongs to this link.
    #[inline]
    fn take_first(&mut self, link: usize) {
        match self {
            Self::Few(entries) => entries[link % FEW] = NOTHING,
            Self::Many(heap) => heap.take_first(),
        }
    }
}

/// A place in the order of scheduling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservedPlace(u64);

const TARGET_BITS: u32 = 28;
const INDEX_BITS: u32 = 26;

impl Events {
    /// A queue for these numbers of links, flows, traces and proxy instances.
    pub(crate) fn new(links: usize, flows: usize, traces: usize, instances: usize) -> Self {
        let maximum = links.max(2 * flows).max(1 + traces + instances);
        assert!(maximum < 1 << INDEX_BITS, "too many links, flows or proxies");
        let never = |count| vec![Instant::NEVER; count];
        Self {
            links: Links::Many(Heap::default()),
            others: Heap::default(),
            sequence: 0,
            scheduled: [
                never(links),
                never(2 * flows),
                never(flows),
                never(1 + traces + instances),
            ],
            traces: traces as u32,
        }
    }

    /// The same queue for links whose deadlines never move earlier, so that no entry is superseded
    /// and a few links need no heap.
    pub(crate) fn with_monotonic_links(mut self) -> Self {
        if self.scheduled[LINK].len() <= FEW {
            self.links = Links::Few([NOTHING; FEW]);
        }
        self
    }

    /// Schedules an event of `target` at `at`, unless it has an earlier one.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, target: Target, at: Instant) {
        let (kind, index) = self.split(target);
        if at < self.scheduled[kind][index] {
            self.insert(kind, index, at);
        }
    }

    /// [`schedule`](Self::schedule) for a link, the most frequent target.
    #[inline]
    pub(crate) fn schedule_link(&mut self, link: u32, at: Instant) {
        let scheduled = &mut self.scheduled[LINK][link as usize];
        if at < *scheduled {
            *scheduled = at;
            let entry = self.entry(LINK, link as usize, at);
            self.links.push(link as usize, entry);
        }
    }

    /// A separate function, because timers seldom move earlier.
    #[inline(never)]
    fn insert(&mut self, kind: usize, index: usize, at: Instant) {
        self.scheduled[kind][index] = at;
        let entry = self.entry(kind, index, at);
        if kind == LINK { self.links.push(index, entry) } else { self.others.push(entry) }
    }

    #[inline]
    fn entry(&mut self, kind: usize, index: usize, at: Instant) -> u128 {
        self.sequence += 1;
        entry(kind, index, at, self.sequence)
    }

    /// Reserves the next place in the order of scheduling: the time of the event is not known yet.
    pub(crate) const fn reserve(&mut self) -> ReservedPlace {
        self.sequence += 1;
        ReservedPlace(self.sequence)
    }

    /// Schedules an event at a reserved place, unless its target has an earlier one.
    pub(crate) fn schedule_at(&mut self, target: Target, at: Instant, place: ReservedPlace) {
        let (kind, index) = self.split(target);
        if at < self.scheduled[kind][index] {
            self.scheduled[kind][index] = at;
            self.others.push(entry(kind, index, at, place.0));
        }
    }

    /// When the next event is due; [`Instant::NEVER`] without events.
    pub(crate) fn next_time(&mut self) -> Instant {
        loop {
            let (link, other) = (self.links.first(), self.others.first());
            if link == NOTHING && other == NOTHING {
                return Instant::NEVER;
            }
            // Superseded entries are dropped.
            if time(other) < time(link) {
                let (kind, place) = Self::place_of(other);
                if self.scheduled[kind][place] == time(other) {
                    return time(other);
                }
                self.others.take_first();
            } else {
                let index = index(link) as usize;
                if self.scheduled[LINK][index] == time(link) {
                    return time(link);
                }
                self.links.take_first(index);
            }
        }
    }

    /// Number of entries so far, which is about the number of events.
    pub(crate) const fn entries(&self) -> u64 {
        self.sequence
    }

    /// The time and target of the next event, if it is not later than `end`.
    #[inline]
    pub(crate) fn pop(&mut self, end: Instant) -> Option<(Instant, Target)> {
        loop {
            let (link, other) = (self.links.first(), self.others.first());
            if time(other) < time(link) {
                if time(other) > end {
                    return None;
                }
                self.others.take_first();
                if let Some(target) = self.other(other) {
                    return Some((time(other), target));
                }
                continue;
            }
            let (at, index) = (time(link), index(link));
            if link == NOTHING || at > end {
                return None;
            }
            self.links.take_first(index as usize);
            let scheduled = &mut self.scheduled[LINK][index as usize];
            if *scheduled == at {
                *scheduled = Instant::NEVER;
                return Some((at, Target::Link(index)));
            }
        }
    }

    /// Kind and index of the target of an entry that belongs to no link.
    const fn place_of(entry: u128) -> (usize, usize) {
        ((entry as u64 >> INDEX_BITS) as usize & 3, index(entry) as usize)
    }

    /// The target of an entry that belongs to no link, unless the entry was superseded.
    #[inline(never)]
    fn other(&mut self, entry: u128) -> Option<Target> {
        let index = index(entry);
        let (kind, target) = match (entry as u64 >> INDEX_BITS) as usize & 3 {
            END => (END, Target::End(EndId::from_index(index))),
            APP => (APP, Target::App(index)),
            _ if index == 0 => (SAMPLING, Target::Sampling),
            _ if index <= self.traces => (SAMPLING, Target::Trace(index - 1)),
            _ => (SAMPLING, Target::Proxy(index - 1 - self.traces)),
        };
        let scheduled = &mut self.scheduled[kind][index as usize];
        let valid = *scheduled == time(entry);
        if valid {
            *scheduled = Instant::NEVER;
        }
        valid.then_some(target)
    }

    #[inline]
    const fn split(&self, target: Target) -> (usize, usize) {
        match target {
            Target::Link(index) => (LINK, index as usize),
            Target::End(end) => (END, end.index() as usize),
            Target::App(index) => (APP, index as usize),
            Target::Sampling => (SAMPLING, 0),
            // The two bits of the kind allow four kinds, so traces and proxies share one with the
            // measurements.
            Target::Trace(index) => (SAMPLING, 1 + index as usize),
            Target::Proxy(index) => (SAMPLING, (1 + self.traces + index) as usize),
        }
    }
}

const LINK: usize = 0;
const END: usize = 1;
const APP: usize = 2;
const SAMPLING: usize = 3;

#[inline]
const fn entry(kind: usize, index: usize, at: Instant, sequence: u64) -> u128 {
    let order = sequence << TARGET_BITS | (kind as u64) << INDEX_BITS | index as u64;
    (at.as_nanos() as u128) << 64 | order as u128
}

#[inline]
const fn time(entry: u128) -> Instant {
    Instant::from_nanos((entry >> 64) as u64)
}

#[inline]
const fn index(entry: u128) -> u32 {
    entry as u32 & ((1 << INDEX_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn at_equal_times_links_come_first_then_the_order_of_scheduling() {
        let mut events = Events::new(3, 2, 0, 0);
        let at = Instant::from_nanos(5);
        for target in [Target::App(1), Target::Link(2), Target::App(0), Target::Link(0)] {
            events.schedule(target, at);
        }
        let order: Vec<_> = std::iter::from_fn(|| events.pop(Instant::NEVER)).collect();
        let expected = [Target::Link(2), Target::Link(0), Target::App(1), Target::App(0)];
        assert_eq!(order, expected.map(|target| (at, target)));
    }

    #[test]
    fn an_earlier_time_replaces_a_later_one() {
        let mut events = Events::new(1, 0, 0, 0);
        for nanos in [9, 4, 7] {
            events.schedule(Target::Link(0), Instant::from_nanos(nanos));
        }
        assert_eq!(events.pop(Instant::NEVER), Some((Instant::from_nanos(4), Target::Link(0))));
        assert_eq!(events.pop(Instant::NEVER), None, "superseded entries are dropped");
    }

    proptest! {
        #[test]
        fn the_queue_for_few_links_agrees_with_the_heap(
            steps in prop::collection::vec((0_u32..8, 0_u64..50, any::<bool>()), 1..200),
        ) {
            let events = || Events::new(FEW, 8, 0, 0);
            let mut queues = [events().with_monotonic_links(), events()];
            let mut pending = [false; FEW];
            for (number, nanos, pops) in steps {
                let at = Instant::from_nanos(nanos);
                let target = match pending.get_mut(number as usize) {
                    Some(true) => continue,
                    Some(pending) => {
                        *pending = true;
                        Target::Link(number)
                    }
                    None => Target::End(EndId::from_index(number)),
                };
                let popped = queues.each_mut().map(|events| {
                    events.schedule(target, at);
                    if pops { events.pop(Instant::from_nanos(40)) } else { None }
                });
                if let Some((_, Target::Link(link))) = popped[0] {
                    pending[link as usize] = false;
                }
                prop_assert_eq!(popped[0], popped[1]);
                prop_assert_eq!(queues[0].entries(), queues[1].entries());
            }
        }

        #[test]
        fn events_are_popped_in_order(times in prop::collection::vec(0_u64..1000, 1..300)) {
            let mut events = Events::new(times.len(), 0, 0, 0);
            for (index, &nanos) in times.iter().enumerate() {
                events.schedule(Target::Link(index as u32), Instant::from_nanos(nanos));
            }
            let mut expected: Vec<_> = times.iter().copied().zip(0_u32..).collect();
            expected.sort_unstable();
            let got: Vec<_> = std::iter::from_fn(|| events.pop(Instant::NEVER))
                .map(|(at, target)| match target {
                    Target::Link(index) => (at.as_nanos(), index),
                    other => panic!("unexpected {other:?}"),
                })
                .collect();
            prop_assert_eq!(got, expected);
        }
    }
}
