//! Which part of the head's log was handed over.

use std::collections::VecDeque;

/// Entries of the log whose records are on their way, in order.
#[derive(Debug)]
pub(super) struct Handover {
    /// Number of the first entry of the queue.
    first: u64,
    entries: VecDeque<Entry>,
    position: u64,
}

/// An entry, and the number of its records that were not handed over.
#[derive(Debug)]
struct Entry {
    end: u64,
    open: u32,
}

/// Refers to the entry of a record, until [`Handover::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EntryNumber(u64);

impl Handover {
    /// Everything before `position` was handed over.
    pub(super) const fn new(position: u64) -> Self {
        Self { first: 0, entries: VecDeque::new(), position }
    }

    /// The records of the next entry follow. The entry stays open until [`Self::end_entry`].
    pub(super) fn begin_entry(&mut self) {
        self.entries.push_back(Entry { end: self.position, open: 1 });
    }

    /// All records of the newest entry are known; the entry ends at this position of the log.
    pub(super) fn end_entry(&mut self, end: u64) {
        let newest = EntryNumber(self.first + self.entries.len() as u64 - 1);
        if let Some(entry) = self.entries.back_mut() {
            entry.end = end;
        }
        self.release(newest);
    }

    /// A record of the newest entry is to be handed over.
    pub(super) fn acquire(&mut self) -> EntryNumber {
        if let Some(entry) = self.entries.back_mut() {
            entry.open += 1;
        }
        EntryNumber(self.first + self.entries.len() as u64 - 1)
    }

    /// A record was handed over.
    pub(super) fn release(&mut self, EntryNumber(number): EntryNumber) {
        if let Some(entry) = self.entries.get_mut((number - self.first) as usize) {
            entry.open -= 1;
        }
        while let Some(entry) = self.entries.front().filter(|entry| entry.open == 0) {
            self.position = entry.end;
            self.first += 1;
            self.entries.pop_front();
        }
    }

    /// Position of the log before which all records were handed over.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_position_is_that_of_the_oldest_record_in_transit() {
        let mut handover = Handover::new(100);
        handover.begin_entry();
        let first = handover.acquire();
        let second = handover.acquire();
        handover.end_entry(200);
        handover.begin_entry();
        let third = handover.acquire();
        handover.end_entry(300);
        handover.release(third);
        handover.release(first);
        assert_eq!(handover.position(), 100, "one record of the first entry is in transit");
        handover.release(second);
        assert_eq!(handover.position(), 300);
        handover.begin_entry();
        handover.end_entry(400);
        assert_eq!(handover.position(), 400, "an entry without records");
    }
}
