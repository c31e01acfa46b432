//! What is kept: segments that have gone over the last hop and are not acknowledged from there.

use std::collections::VecDeque;
use std::ops::Range;

use gridhaul_scenario::units::Instant;

use crate::tcp::Segment;

/// A kept segment. Positions are 64-bit stream positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub start: u64,
    pub end: u64,
    pub segment: Segment,
    /// It has gone over the hop; else it waits.
    pub gone: bool,
    /// Its place among all segments that went over the hop, when it first went and when it last
    /// went, and how many were out then.
    pub first: u64,
    pub latest: u64,
    pub out: u64,
    pub sent_at: Instant,
    /// It was sent from here.
    pub copied: bool,
    /// Its sender has sent it again, or so late that others had gone before: it knows of the loss.
    pub repeated: bool,
    pub sacked: bool,
}

impl Entry {
    /// Whether it was sent once: what is heard of it then says when it was sent (Karn).
    pub(super) const fn is_plain(&self) -> bool {
        !self.copied && !self.repeated
    }
    /// Cuts off what lies before `una`. Returns the bytes of payload that went.
    fn trim(&mut self, una: u64) -> u64 {
        let cut = una.saturating_sub(self.start) as u32;
        self.start += u64::from(cut);
        self.segment.seq = self.segment.seq.wrapping_add(cut);
        self.segment.len -= cut;
        u64::from(cut)
    }

    /// The same without what lies before `una`, which must be before its end.
    pub(super) fn trimmed(mut self, una: u64) -> Self {
        self.trim(una);
        self
    }

    /// Position after its payload, FIN not counted: that needs no room (RFC 9293, 3.10.7.4).
    pub(super) const fn payload_end(&self) -> u64 {
        self.start + self.segment.len as u64
    }
}

/// Kept segments in order of the stream, apart from each other.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    entries: VecDeque<Entry>,
    limit: u64,
    /// Bytes on the wire, as `cost` counts them.
    used: u64,
    payload: u64,
    /// How many have gone: those at the front. How many of them are selectively acknowledged.
    gone: usize,
    sacked: usize,
}

/// What becomes of a segment that goes over the hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is kept, and goes at once or waits.
    New { gone: bool },
    /// It was kept already, and has gone or waits.
    Known { gone: bool },
    /// It is not kept: there is no room, or it is cut otherwise than what is kept.
    None,
}

/// IP and TCP headers without options. What is kept counts at least so much, so that there is a
/// limit to the number of tiny segments.
const HEADER: u64 = 40;

fn cost(segment: &Segment) -> u64 {
    u64::from(segment.len) + u64::from(segment.header).max(HEADER)
}

impl Cache {
    pub(super) const fn new(limit: u64) -> Self {
        Self { entries: VecDeque::new(), limit, used: 0, payload: 0, gone: 0, sacked: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        (self.used, self.payload) = (0, 0);
        (self.gone, self.sacked) = (0, 0);
    }

    /// Bytes of payload.
    pub(super) const fn payload(&self) -> u64 {
        self.payload
    }
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// How many have gone and are not acknowledged in any way.
    pub(super) const fn out(&self) -> usize {
        self.gone - self.sacked
    }
    /// Whether some wait.
    pub(super) fn is_waiting(&self) -> bool {
        self.gone < self.entries.len()
    }
    /// The first that waits; it counts as gone from now on.
    pub(super) fn next_waiting(&mut self) -> Option<&mut Entry> {
        let next = self.entries.get_mut(self.gone)?;
        self.gone += 1;
        next.gone = true;
        Some(next)
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut()
    }

    /// The entry that holds this position.
    pub(super) fn at(&self, position: u64) -> Option<&Entry> {
        self.entries.get(self.index_after(position)).filter(|entry| entry.start <= position)
    }

    /// Puts a segment in. What is kept of the same stretch was sent again by its sender; the newer
    /// one takes its place if it is cut in the same way.
    pub(super) fn insert(&mut self, entry: Entry) -> Place {
        let from = self.index_after(entry.start);
        let to = from + self.entries.range(from..).take_while(|old| old.start < entry.end).count();
        if from == to {
            let cost = cost(&entry.segment);
            if self.used + cost > self.limit {
                return Place::None;
            }
            self.used += cost;
            self.payload += u64::from(entry.segment.len);
            // Among those that have gone it goes at once: whoever sends it knows that it is late.
            let gone = from < self.gone;
            self.gone += usize::from(gone);
            self.entries.insert(from, Entry { gone, repeated: gone, ..entry });
            return Place::New { gone };
        }
        let mut place = Place::None;
        for old in self.entries.range_mut(from..to) {
            old.repeated = true;
            let after = self.used - cost(&old.segment) + cost(&entry.segment);
            // The length is compared as well: a FIN takes the room of a byte in the sequence.
            let same = (old.start, old.end, old.segment.len)
                == (entry.start, entry.end, entry.segment.len);
            if same && after <= self.limit {
                self.used = after;
                old.segment = entry.segment;
                (old.latest, old.sent_at) = (entry.latest, entry.sent_at);
                place = Place::Known { gone: old.gone };
            }
        }
        place
    }

    /// Removes what lies before `una`, in order; `each` sees what goes as a whole.
    pub(super) fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&Entry)) {
        while let Some(entry) = self.entries.front()
            && entry.end <= una
        {
            self.used -= cost(&entry.segment);
            self.payload -= u64::from(entry.segment.len);
            self.gone -= usize::from(entry.gone);
            self.sacked -= usize::from(entry.sacked);
            each(entry);
            self.entries.pop_front();
        }
        if let Some(entry) = self.entries.front_mut() {
            let cut = entry.trim(una);
            self.used -= cut;
            self.payload -= cut;
        }
    }

    /// Marks what lies within a selectively acknowledged range; `each` sees what is newly so.
    pub(super) fn sack(&mut self, range: &Range<u64>, mut each: impl FnMut(&Entry)) {
        let from = self.entries.partition_point(|entry| entry.start < range.start);
        for entry in self.entries.range_mut(from..) {
            if entry.end > range.end {
                break;
            }
            if entry.gone && !entry.sacked {
                entry.sacked = true;
                self.sacked += 1;
                each(entry);
            }
        }
    }

    /// Index of the first entry that ends behind `position`.
    fn index_after(&self, position: u64) -> usize {
        self.entries.partition_point(|entry| entry.end <= position)
    }
}
