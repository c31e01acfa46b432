//! Copies of the segments that the next hop has not acknowledged.

use std::collections::VecDeque;
use std::ops::Range;

use gridhaul_scenario::units::Instant;

use crate::pep::outgoing_queue::release_if_empty;

/// A stored segment. Positions are 64-bit stream positions.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredSegment {
    pub start: u64,
    pub len: u32,
    /// FIN follows the payload, and occupies one position.
    pub fin: bool,
    /// Whether the segment was sent over the hop; otherwise it waits for the window of the next
    /// hop.
    pub sent: bool,
    /// Number of its latest transmission over the hop.
    pub transmission: u64,
    pub sent_at: Instant,
    /// Duplicate acknowledgements that segments sent before the latest transmission may still
    /// cause.
    pub earlier_duplicates: u64,
    pub retransmitted: bool,
    pub sacked: bool,
}

impl StoredSegment {
    /// Position after payload and FIN.
    pub(super) const fn end(&self) -> u64 {
        self.payload_end() + self.fin as u64
    }

    /// Position after the payload. FIN needs no window (RFC 9293, section 3.10.7.4).
    pub(super) const fn payload_end(&self) -> u64 {
        self.start + self.len as u64
    }
}

/// Stored segments in stream order, without overlaps. Those that were sent precede those that wait.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    segments: VecDeque<StoredSegment>,
    payload: u64,
    sent: usize,
}

impl Store {
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Whether no segment is stored.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Number of stored payload bytes.
    pub(super) const fn payload(&self) -> u64 {
        self.payload
    }

    /// Number of segments that were sent and wait for an acknowledgement.
    pub(super) const fn sent(&self) -> usize {
        self.sent
    }

    /// Position after the last stored segment.
    pub(super) fn end(&self) -> Option<u64> {
        self.segments.back().map(StoredSegment::end)
    }

    /// Whether data after `position` is stored, but not the byte at `position`.
    pub(super) fn has_gap_at(&self, position: u64) -> bool {
        self.end().is_some_and(|end| end > position)
    }

    /// The first stored segment if it begins at `position`.
    pub(super) fn first_at(&self, position: u64) -> Option<&StoredSegment> {
        self.segments.front().filter(|segment| segment.start == position)
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut StoredSegment {
        &mut self.segments[index]
    }

    /// Segments that were sent, with their indices.
    pub(super) fn iter_sent(&self) -> impl Iterator<Item = (usize, &StoredSegment)> {
        self.segments.iter().take(self.sent).enumerate()
    }

    /// The parts of a range that are not stored.
    pub(super) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut start = range.start;
        for segment in self.segments.range(self.index_after(start)..) {
            if segment.start >= range.end {
                break;
            }
            if segment.start > start {
                gaps.push(start..segment.start);
            }
            start = segment.end();
        }
        if start < range.end {
            gaps.push(start..range.end);
        }
        gaps
    }

    /// Stores a range that is not stored yet, and returns its index. A segment before one that was
    /// sent counts as sent, because it fills a gap.
    pub(super) fn insert(&mut self, range: Range<u64>, fin: bool) -> usize {
        let index = self.index_after(range.start);
        let len = (range.end - range.start) as u32 - u32::from(fin);
        let sent = index < self.sent;
        self.sent += usize::from(sent);
        self.payload += u64::from(len);
        let segment = StoredSegment {
            start: range.start,
            len,
            fin,
            sent,
            transmission: 0,
            sent_at: Instant::ZERO,
            earlier_duplicates: 0,
            retransmitted: false,
            sacked: false,
        };
        self.segments.insert(index, segment);
        index
    }

    /// Index of the first segment that waits, if its payload ends at or before `edge`. It counts as
    /// sent from now on.
    pub(super) fn next_waiting(&mut self, edge: u64) -> Option<usize> {
        let index = self.sent;
        let next = self.segments.get_mut(index).filter(|next| next.payload_end() <= edge)?;
        next.sent = true;
        self.sent += 1;
        Some(index)
    }

    /// End of the stored data that is contiguous from `position` on.
    pub(super) fn contiguous_to(&self, mut position: u64) -> u64 {
        for segment in self.segments.range(self.index_after(position)..) {
            if segment.start > position {
                break;
            }
            position = segment.end();
        }
        position
    }

    /// Contiguous ranges of stored data after `position`, in order.
    pub(super) fn ranges_after(&self, position: u64) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for segment in self.segments.range(self.index_after(position)..) {
            match ranges.last_mut() {
                Some(last) if last.end == segment.start => last.end = segment.end(),
                _ => ranges.push(segment.start..segment.end()),
            }
        }
        ranges
    }

    /// Releases everything before `una`; `visit` is called for segments that are released as a
    /// whole.
    pub(super) fn acknowledge(&mut self, una: u64, mut visit: impl FnMut(&StoredSegment)) {
        while let Some(segment) = self.segments.front()
            && segment.end() <= una
        {
            self.payload -= u64::from(segment.len);
            self.sent -= usize::from(segment.sent);
            visit(segment);
            self.segments.pop_front();
        }
        release_if_empty(&mut self.segments);
        if let Some(segment) = self.segments.front_mut()
            && segment.start < una
        {
            let cut = (una - segment.start) as u32;
            segment.start = una;
            segment.len -= cut;
            self.payload -= u64::from(cut);
        }
    }

    /// Marks sent segments within a selectively acknowledged range; `visit` is called for newly
    /// marked ones.
    pub(super) fn sack(&mut self, range: &Range<u64>, mut visit: impl FnMut(&StoredSegment)) {
        let from = self.segments.partition_point(|segment| segment.start < range.start);
        for segment in self.segments.range_mut(from..) {
            if segment.end() > range.end || !segment.sent {
                break;
            }
            if !segment.sacked {
                segment.sacked = true;
                visit(segment);
            }
        }
    }

    /// Index of the first segment that ends after `position`.
    fn index_after(&self, position: u64) -> usize {
        // Most segments arrive in order.
        if self.end().is_none_or(|end| end <= position) {
            return self.segments.len();
        }
        self.segments.partition_point(|segment| segment.end() <= position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 bytes that were sent, with these starts.
    fn sent(starts: &[u64]) -> Store {
        let mut store = Store::default();
        for &start in starts {
            store.insert(start..start + 100, false);
            assert!(store.next_waiting(u64::MAX).is_some(), "the window is open");
        }
        store
    }

    /// RFC 2018, section 3: a block has "contiguous and isolated" bytes; a segment of which only a
    /// part has arrived is not selectively acknowledged.
    #[test]
    fn only_segments_within_a_block_are_selectively_acknowledged() {
        let marked = |range: Range<u64>| {
            let mut marked = Vec::new();
            sent(&[1, 101, 201, 301]).sack(&range, |segment| marked.push(segment.start));
            marked
        };
        assert_eq!(marked(101..301), [101, 201]);
        assert_eq!(marked(101..250), [101]);
        assert_eq!(marked(150..301), [201]);
    }

    #[test]
    fn only_data_after_a_missing_byte_is_a_gap() {
        assert!(!sent(&[1, 101]).has_gap_at(201), "everything before 201 is stored");
        assert!(sent(&[1, 101, 301]).has_gap_at(201));
        assert!(!sent(&[]).has_gap_at(1));
    }
}
