//! The cache of segments that the receiver has not acknowledged.

use std::collections::VecDeque;
use std::ops::Range;

use gridhaul_scenario::units::Instant;

use crate::pep::outgoing_queue::release_if_empty;
use crate::tcp::Segment;

/// A cached segment. Positions are 64-bit stream positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachedSegment {
    pub start: u64,
    pub end: u64,
    pub segment: Segment,
    /// Whether the segment was sent over the hop; otherwise it waits.
    pub sent: bool,
    /// Transmission numbers of its first and its latest transmission over the hop, and the number
    /// of outstanding segments at that time.
    pub first_transmission: u64,
    pub latest_transmission: u64,
    pub outstanding: u64,
    pub sent_at: Instant,
    /// The proxy has retransmitted it.
    pub retransmitted: bool,
    /// The sender has retransmitted it, or has sent it after later segments: the sender has
    /// detected the loss.
    pub retransmitted_by_sender: bool,
    pub sacked: bool,
}

impl CachedSegment {
    /// Whether it was sent once, so that its acknowledgement yields a round-trip time sample
    /// (Karn's algorithm).
    pub(super) const fn was_sent_once(&self) -> bool {
        !self.retransmitted && !self.retransmitted_by_sender
    }
    /// Removes the part before `una`. Returns the number of payload bytes removed.
    fn trim(&mut self, una: u64) -> u64 {
        let cut = una.saturating_sub(self.start) as u32;
        self.start += u64::from(cut);
        self.segment.seq = self.segment.seq.wrapping_add(cut);
        self.segment.len -= cut;
        u64::from(cut)
    }

    /// The segment without the part before `una`, which must be before its end.
    pub(super) fn trimmed(mut self, una: u64) -> Self {
        self.trim(una);
        self
    }

    /// Position after its payload. FIN is not counted, as it needs no window (RFC 9293, section
    /// 3.10.7.4).
    pub(super) const fn payload_end(&self) -> u64 {
        self.start + self.segment.len as u64
    }
}

/// Cached segments in stream order, without overlaps.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    entries: VecDeque<CachedSegment>,
    limit: u64,
    /// Bytes with headers, as computed by `cost`.
    used: u64,
    payload: u64,
    /// Number of segments that were sent, which are at the front, and of those among them that are
    /// selectively acknowledged.
    sent: usize,
    sacked: usize,
}

/// Result of inserting a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insertion {
    /// Cached now; sent at once, or waiting.
    New { sent: bool },
    /// Cached before; sent, or waiting.
    AlreadyCached { sent: bool },
    /// Not cached: no space is free, or the segment overlaps cached ones with other boundaries.
    NotCached,
}

/// Size of IP and TCP headers without options. Each segment counts at least this much, which limits
/// the number of tiny segments.
const HEADER: u64 = 40;

fn cost(segment: &Segment) -> u64 {
    u64::from(segment.len) + u64::from(segment.header).max(HEADER)
}

impl Cache {
    pub(super) const fn new(limit: u64) -> Self {
        Self { entries: VecDeque::new(), limit, used: 0, payload: 0, sent: 0, sacked: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.entries = VecDeque::new();
        (self.used, self.payload) = (0, 0);
        (self.sent, self.sacked) = (0, 0);
    }

    /// Number of cached payload bytes.
    pub(super) const fn payload(&self) -> u64 {
        self.payload
    }
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Number of segments that were sent and are not acknowledged, cumulatively or selectively.
    pub(super) const fn outstanding(&self) -> usize {
        self.sent - self.sacked
    }
    /// Whether segments wait.
    pub(super) fn is_waiting(&self) -> bool {
        self.sent < self.entries.len()
    }
    /// The first waiting segment, which counts as sent from now on.
    pub(super) fn next_waiting(&mut self) -> Option<&mut CachedSegment> {
        let next = self.entries.get_mut(self.sent)?;
        self.sent += 1;
        next.sent = true;
        Some(next)
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &CachedSegment> {
        self.entries.iter()
    }
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut CachedSegment> {
        self.entries.iter_mut()
    }

    /// The segment that contains this position.
    pub(super) fn at(&self, position: u64) -> Option<&CachedSegment> {
        self.entries.get(self.index_after(position)).filter(|entry| entry.start <= position)
    }

    /// Whether space is free for a segment.
    pub(super) fn has_space(&self, segment: &Segment) -> bool {
        self.used + cost(segment) <= self.limit
    }

    /// Inserts a segment. Cached segments in the same range were retransmitted by the sender; the
    /// new segment replaces one with the same boundaries.
    pub(super) fn insert(&mut self, entry: CachedSegment) -> Insertion {
        let from = self.index_after(entry.start);
        let to = from + self.entries.range(from..).take_while(|old| old.start < entry.end).count();
        if from == to {
            let cost = cost(&entry.segment);
            if self.used + cost > self.limit {
                return Insertion::NotCached;
            }
            self.used += cost;
            self.payload += u64::from(entry.segment.len);
            // A segment that precedes sent ones is sent at once: it is a retransmission.
            let sent = from < self.sent;
            self.sent += usize::from(sent);
            self.entries
                .insert(from, CachedSegment { sent, retransmitted_by_sender: sent, ..entry });
            return Insertion::New { sent };
        }
        let mut insertion = Insertion::NotCached;
        for old in self.entries.range_mut(from..to) {
            old.retransmitted_by_sender = true;
            let after = self.used - cost(&old.segment) + cost(&entry.segment);
            // The length is compared as well, because FIN occupies one sequence number.
            let same = (old.start, old.end, old.segment.len)
                == (entry.start, entry.end, entry.segment.len);
            if same && after <= self.limit {
                self.used = after;
                old.segment = entry.segment;
                (old.latest_transmission, old.sent_at) = (entry.latest_transmission, entry.sent_at);
                insertion = Insertion::AlreadyCached { sent: old.sent };
            }
        }
        insertion
    }

    /// Removes everything before `una`, in order; `visit` is called for segments that are removed
    /// as a whole.
    pub(super) fn acknowledge(&mut self, una: u64, mut visit: impl FnMut(&CachedSegment)) {
        while let Some(entry) = self.entries.front()
            && entry.end <= una
        {
            self.used -= cost(&entry.segment);
            self.payload -= u64::from(entry.segment.len);
            self.sent -= usize::from(entry.sent);
            self.sacked -= usize::from(entry.sacked);
            visit(entry);
            self.entries.pop_front();
        }
        release_if_empty(&mut self.entries);
        if let Some(entry) = self.entries.front_mut() {
            let cut = entry.trim(una);
            self.used -= cut;
            self.payload -= cut;
        }
    }

    /// Marks segments within a selectively acknowledged range; `visit` is called for newly marked
    /// ones.
    pub(super) fn sack(&mut self, range: &Range<u64>, mut visit: impl FnMut(&CachedSegment)) {
        let from = self.entries.partition_point(|entry| entry.start < range.start);
        for entry in self.entries.range_mut(from..) {
            if entry.end > range.end {
                break;
            }
            if entry.sent && !entry.sacked {
                entry.sacked = true;
                self.sacked += 1;
                visit(entry);
            }
        }
    }

    /// Index of the first segment that ends after `position`.
    fn index_after(&self, position: u64) -> usize {
        self.entries.partition_point(|entry| entry.end <= position)
    }
}

#[cfg(test)]
mod tests;
