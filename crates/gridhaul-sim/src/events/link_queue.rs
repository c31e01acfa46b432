//! The queue of the events of links.

use gridhaul_scenario::units::Instant;

use super::{entry, index_in, time};
use crate::heap::{Heap, NOTHING};

/// The entries of links: at most one valid entry of each.
#[derive(Debug, Clone)]
pub(super) enum LinkQueue {
    /// The entry of each link, where deadlines never move earlier; a linear search is faster than a
    /// heap for a few links.
    Two([u128; 2]),
    Four([u128; 4]),
    Many(ManyLinks),
}

/// The entries of any number of links.
#[derive(Debug, Clone)]
pub(super) struct ManyLinks {
    /// The valid entries, and those that an earlier one of the same link has superseded.
    heap: Heap,
    /// Time of the valid entry of each link.
    scheduled: Vec<Instant>,
}

impl LinkQueue {
    /// An empty queue for a number of links.
    pub(super) fn new(links: usize) -> Self {
        Self::Many(ManyLinks { heap: Heap::default(), scheduled: vec![Instant::NEVER; links] })
    }

    /// The same empty queue for links whose deadlines never move earlier.
    pub(super) fn of_monotonic(self) -> Self {
        match self {
            Self::Many(many) if many.scheduled.len() <= 2 => Self::Two([NOTHING; 2]),
            Self::Many(many) if many.scheduled.len() <= 4 => Self::Four([NOTHING; 4]),
            other => other,
        }
    }

    /// The first entry; [`NOTHING`] if there is none. It may be superseded.
    #[inline]
    pub(super) fn first(&mut self) -> u128 {
        match self {
            Self::Two([a, b]) => (*a).min(*b),
            Self::Four([a, b, c, d]) => (*a).min(*b).min((*c).min(*d)),
            Self::Many(many) => many.heap.first(),
        }
    }

    /// Schedules an event of a link, unless it has an earlier one. `sequence` is the number of the
    /// last entry of all.
    #[inline(always)]
    pub(super) fn schedule(&mut self, link: u32, at: Instant, sequence: &mut u64) {
        match self {
            Self::Two(entries) => place(&mut entries[link as usize % 2], link, at, sequence),
            Self::Four(entries) => place(&mut entries[link as usize % 4], link, at, sequence),
            Self::Many(many) => many.schedule(link, at, sequence),
        }
    }

    /// Removes the first entry. Returns whether it was valid.
    #[inline(always)]
    pub(super) fn take_first(&mut self, first: u128) -> bool {
        match self {
            Self::Two(entries) => entries[index_in(first) % 2] = NOTHING,
            Self::Four(entries) => entries[index_in(first) % 4] = NOTHING,
            Self::Many(many) => return many.take_first(first),
        }
        true
    }

    /// Whether the first entry is valid.
    pub(super) fn is_valid(&self, first: u128) -> bool {
        match self {
            Self::Two(_) | Self::Four(_) => true,
            Self::Many(many) => many.scheduled[index_in(first)] == time(first),
        }
    }
}

impl ManyLinks {
    #[inline(always)]
    fn schedule(&mut self, link: u32, at: Instant, sequence: &mut u64) {
        // A link without packets has no deadline, so often nothing is to be done.
        let scheduled = &mut self.scheduled[link as usize];
        if at < *scheduled {
            *scheduled = at;
            *sequence += 1;
            self.heap.push(entry(link as usize, at, *sequence));
        }
    }

    #[inline]
    fn take_first(&mut self, first: u128) -> bool {
        self.heap.take_first();
        let scheduled = &mut self.scheduled[index_in(first)];
        let is_valid = *scheduled == time(first);
        if is_valid {
            *scheduled = Instant::NEVER;
        }
        is_valid
    }
}

/// [`LinkQueue::schedule`] for the only entry of a link.
#[inline(always)]
fn place(own: &mut u128, link: u32, at: Instant, sequence: &mut u64) {
    // Without an entry, any time but `Instant::NEVER` is earlier.
    if at < time(*own) {
        debug_assert_eq!(*own, NOTHING, "a deadline has moved earlier");
        *sequence += 1;
        *own = entry(link as usize, at, *sequence);
    }
}
