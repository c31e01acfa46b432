//! The queue of the events of links.

use crate::heap::{Heap, NOTHING};

/// The entries of links.
#[derive(Debug, Clone)]
pub(super) enum LinkQueue {
    /// One entry for each link; a linear search is faster than a heap for a few links.
    Few([u128; FEW]),
    Many(Heap),
}

/// Most links for which no heap is used.
pub(super) const FEW: usize = 4;

impl LinkQueue {
    #[inline]
    pub(super) fn first(&mut self) -> u128 {
        match self {
            Self::Few([a, b, c, d]) => (*a).min(*b).min((*c).min(*d)),
            Self::Many(heap) => heap.first(),
        }
    }

    /// Adds an entry.
    #[inline]
    pub(super) fn push(&mut self, link: usize, entry: u128) {
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
    pub(super) fn take_first(&mut self, link: usize) {
        match self {
            Self::Few(entries) => entries[link % FEW] = NOTHING,
            Self::Many(heap) => heap.take_first(),
        }
    }
}
