//! The queue of the events of links.

use crate::heap::{Heap, NOTHING};

/// The entries of links.
#[derive(Debug, Clone)]
pub(super) enum LinkQueue {
    /// One entry for each link; a linear search is faster than a heap for a few links.
    Two([u128; 2]),
    Four([u128; 4]),
    Many(Heap),
}

impl LinkQueue {
    /// An empty queue for a number of links whose deadlines never move earlier.
    pub(super) fn of_monotonic(links: usize) -> Self {
        match links {
            0..=2 => Self::Two([NOTHING; 2]),
            3..=4 => Self::Four([NOTHING; 4]),
            _ => Self::Many(Heap::default()),
        }
    }

    #[inline]
    pub(super) fn first(&mut self) -> u128 {
        match self {
            Self::Two([a, b]) => (*a).min(*b),
            Self::Four([a, b, c, d]) => (*a).min(*b).min((*c).min(*d)),
            Self::Many(heap) => heap.first(),
        }
    }

    /// Adds an entry.
    #[inline(always)]
    pub(super) fn push(&mut self, link: usize, entry: u128) {
        match self {
            Self::Two(entries) => place(&mut entries[link % 2], entry),
            Self::Four(entries) => place(&mut entries[link % 4], entry),
            Self::Many(heap) => heap.push(entry),
        }
    }

    /// Removes the first entry, which belongs to this link.
    #[inline]
    pub(super) fn take_first(&mut self, link: usize) {
        match self {
            Self::Two(entries) => entries[link % 2] = NOTHING,
            Self::Four(entries) => entries[link % 4] = NOTHING,
            Self::Many(heap) => heap.take_first(),
        }
    }
}

/// Writes the entry of a link that has none.
#[inline]
fn place(own: &mut u128, entry: u128) {
    debug_assert_eq!(*own, NOTHING, "a deadline has moved earlier");
    *own = entry;
}
