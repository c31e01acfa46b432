//! Reassembly queue for data received beyond a gap.

use std::ops::Range;

use crate::tcp::segment::SackBlocks;

/// Data received beyond a gap, and data received twice.
#[derive(Debug, Clone)]
pub(super) struct ReassemblyQueue {
    /// Disjoint ranges in stream order; empty only while a duplicate is to be reported.
    pub(super) ranges: Vec<(u64, u64)>,
    /// A position in each of the most recently changed ranges, most recent first (RFC 2018, section
    /// 4).
    recent: [u64; SackBlocks::MAX],
    /// Position after FIN, once it is known.
    pub(super) end: Option<u64>,
    /// Data that has arrived twice, which the next acknowledgement reports.
    pub(super) duplicate: Option<Range<u64>>,
}

impl ReassemblyQueue {
    pub(super) fn new() -> Box<Self> {
        Box::new(Self {
            ranges: Vec::new(),
            recent: [u64::MAX; SackBlocks::MAX],
            end: None,
            duplicate: None,
        })
    }

    /// The first part of a range that is in the queue already; empty if there is none.
    pub(super) fn overlap(&self, start: u64, end: u64) -> Range<u64> {
        let index = self.ranges.partition_point(|range| range.1 <= start);
        match self.ranges.get(index) {
            Some(&(left, right)) if left < end => left.max(start)..right.min(end),
            _ => start..start,
        }
    }

    /// Inserts a range and merges it with its neighbours.
    pub(super) fn insert(&mut self, start: u64, end: u64, fin: bool) {
        if fin {
            self.end = Some(end);
        }
        if let Some(last) = self.ranges.last_mut()
            && last.1 == start
            && (last.0..last.1).contains(&self.recent[0])
        {
            // Most data follows the segment that arrived before.
            last.1 = end;
            self.recent[0] = start;
            return;
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = self.ranges.partition_point(|range| range.0 <= end);
        let (mut left, mut right) = (start, end);
        if first < last {
            left = left.min(self.ranges[first].0);
            right = right.max(self.ranges[last - 1].1);
        }
        self.ranges.splice(first..last, [(left, right)]);
        self.touch(start);
    }

    /// Records that the range with this position changed last.
    fn touch(&mut self, position: u64) {
        let in_same_range = |other: u64| {
            self.ranges.iter().any(|&(left, right)| {
                (left..right).contains(&other) && (left..right).contains(&position)
            })
        };
        let known = self.recent.iter().position(|&other| in_same_range(other));
        let until = known.unwrap_or(SackBlocks::MAX - 1);
        self.recent.copy_within(0..until, 1);
        self.recent[0] = position;
    }

    /// Payload bytes in the ranges.
    #[inline(never)]
    pub(super) fn payload(&self) -> u64 {
        let bytes: u64 = self.ranges.iter().map(|(left, right)| right - left).sum();
        bytes - u64::from(self.end.is_some())
    }

    /// Removes the ranges that begin at or before `next`; returns where the last of them ends.
    pub(super) fn absorb(&mut self, next: u64) -> u64 {
        let reached = self.ranges.partition_point(|range| range.0 <= next);
        self.ranges.drain(..reached).fold(next, |next, (_, right)| next.max(right))
    }

    #[cold]
    pub(super) fn fill_blocks(&self, blocks: &mut SackBlocks, isn: u32, max: usize) {
        for &position in &self.recent {
            let index = self.ranges.partition_point(|range| range.1 <= position);
            let Some(&(left, right)) = self.ranges.get(index) else { continue };
            let block = (isn.wrapping_add(left as u32), isn.wrapping_add(right as u32));
            let known = position < left || blocks.as_slice().contains(&block);
            if !known && blocks.as_slice().len() < max {
                blocks.push(block.0, block.1);
            }
        }
    }
}
