//! The priority queue of events.

/// A 4-ary heap: it is flatter than a binary heap, and the children of a node fit into a cache
/// line.
///
/// The removal of the first entry is delayed until the next call. The same target usually schedules
/// its next event, and the new entry then replaces the root, which saves one of two walks through
/// the heap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heap {
    entries: Vec<u128>,
    /// Whether the root has been removed.
    vacant: bool,
}

/// Later than every entry.
pub(crate) const NOTHING: u128 = u128::MAX;

impl Heap {
    /// The least entry; [`NOTHING`] if there is none.
    #[inline]
    pub(crate) fn first(&mut self) -> u128 {
        if self.vacant {
            self.fill_root();
        }
        self.entries.first().copied().unwrap_or(NOTHING)
    }

    /// Removes the entry that [`first`](Self::first) has just returned.
    #[inline]
    pub(crate) const fn take_first(&mut self) {
        self.vacant = true;
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, entry: u128) {
        if self.vacant {
            self.vacant = false;
            self.sift_down(entry);
        } else {
            self.sift_up(entry);
        }
    }

    /// Inserts an entry from the bottom up.
    #[inline(never)]
    fn sift_up(&mut self, entry: u128) {
        let mut hole = self.entries.len();
        self.entries.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.entries[parent] <= entry {
                break;
            }
            self.entries[hole] = self.entries[parent];
            hole = parent;
        }
        self.entries[hole] = entry;
    }

    /// Moves the last entry to the vacant root.
    #[inline(never)]
    fn fill_root(&mut self) {
        self.vacant = false;
        if let Some(last) = self.entries.pop()
            && !self.entries.is_empty()
        {
            self.sift_down(last);
        }
    }

    /// Inserts an entry from the root down.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let len = self.entries.len();
        let mut hole = 0;
        loop {
            let first_child = 4 * hole + 1;
            if first_child >= len {
                break;
            }
            let (mut minimum, mut child) = (first_child, self.entries[first_child]);
            let others = &self.entries[first_child..len.min(first_child + 4)];
            for (index, &other) in others.iter().enumerate().skip(1) {
                if other < child {
                    (minimum, child) = (first_child + index, other);
                }
            }
            if entry <= child {
                break;
            }
            self.entries[hole] = child;
            hole = minimum;
        }
        self.entries[hole] = entry;
    }
}
