//! The retransmission queue (RFC 9293, 3.3.1): segments that are sent and not yet acknowledged,
//! with their SACK and loss state.

mod delivered_segment;
mod loss_marking;

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use super::segment::expand;

pub(crate) use delivered_segment::DeliveredSegment;

/// An outstanding segment. The data for delivery-rate samples are in `RateAccount`, for the
/// congestion controls that need them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutstandingSegment {
    /// Stream position of its first byte (0 is SYN, data begins at 1).
    pub start: u64,
    /// Length in sequence space.
    pub len: u32,
    /// Number of transmissions, saturated at 255.
    pub transmits: u8,
    /// The segment was selectively acknowledged.
    pub sacked: bool,
    /// The segment is marked lost and has not been retransmitted since.
    pub lost: bool,
    /// The retransmission timer has expired for the segment.
    pub timed_out: bool,
    /// Time of the last transmission.
    pub sent_at: Instant,
}

impl OutstandingSegment {
    #[inline]
    pub(crate) const fn new(start: u64, len: u32, now: Instant) -> Self {
        let (sacked, lost, timed_out) = (false, false, false);
        Self { start, len, transmits: 1, sacked, lost, timed_out, sent_at: now }
    }

    /// A probe of a closed window. Its round trip is not measured, as if it had been retransmitted.
    pub(crate) const fn window_probe(start: u64, now: Instant) -> Self {
        Self { transmits: 2, ..Self::new(start, 1, now) }
    }

    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }
}

/// Result of RACK loss detection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RackLosses {
    /// Bytes newly marked lost.
    pub bytes: u64,
    /// Whether retransmitted segments are among them.
    pub retransmitted: bool,
    /// Time at which the last segment within the reordering window expires.
    pub due: Option<Instant>,
}

/// Effect of a selective acknowledgement on the lost mark of a segment that awaits retransmission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossMark {
    /// The mark is cleared: no retransmission is needed.
    Clear,
    /// The segment is retransmitted regardless (ns-2, go-back-N after a timeout).
    Keep,
}

/// A segment that is divided into smaller ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Division {
    /// Its index in the queue, after the divisions before it.
    pub index: usize,
    /// Number of segments after the division.
    pub parts: usize,
}

/// Outstanding segments in stream order, without gaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct RetransmissionQueue {
    ring: VecDeque<OutstandingSegment>,
    sacked_bytes: u32,
    lost_bytes: u32,
    /// In a recovery: low half of the position before which loss detection has examined all
    /// segments that are not sacked. A recovery ends when the data is acknowledged that was
    /// outstanding at its beginning, so this data is always close to the position.
    loss_checked_until: u32,
    /// While a segment is marked lost: low half of a position before which no lost segment begins.
    /// The data that was outstanding when the last segment was marked is always close to it.
    first_lost_hint: u32,
    highest_sacked: u64,
}

/// Number of segments up to which an empty queue keeps its memory: to allocate it again for each
/// short message would take time.
const RETAINED: usize = 16;

impl RetransmissionQueue {
    /// Appends a segment that was sent now. A function of its own, in which the segment is written
    /// in place: moving it takes longer.
    #[inline(never)]
    pub(crate) fn push_sent(&mut self, start: u64, len: u32, now: Instant) {
        self.push(OutstandingSegment::new(start, len, now));
    }
    #[inline(always)]
    pub(crate) fn push(&mut self, sent: OutstandingSegment) {
        let follows = self.ring.back().is_none_or(|last| last.end() == sent.start);
        assert!(follows, "outstanding segments have no gaps");
        if self.ring.len() == self.ring.capacity() {
            self.push_to_full_ring(sent);
        } else {
            self.ring.push_back(sent);
        }
    }
    #[inline]
    pub(crate) fn front(&self) -> Option<&OutstandingSegment> {
        self.ring.front()
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
    /// Whether a segment is shorter than `len`. Called only before a small segment is sent, so a
    /// search is cheaper than a counter in every connection; a short segment is usually the last.
    pub(crate) fn has_shorter_than(&self, len: u32) -> bool {
        self.ring.iter().rev().any(|sent| sent.len < len)
    }
    /// The last segment and its index in the queue.
    pub(crate) fn last_mut(&mut self) -> Option<(usize, &mut OutstandingSegment)> {
        let index = self.ring.len().checked_sub(1)?;
        self.ring.get_mut(index).map(|sent| (index, sent))
    }
    /// Bytes selectively acknowledged.
    #[inline]
    pub(crate) const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes as u64
    }
    /// Bytes marked lost and not yet retransmitted.
    #[inline]
    pub(crate) const fn lost_bytes(&self) -> u64 {
        self.lost_bytes as u64
    }
    /// Whether at least `count` segments are sacked, of whatever length. The search begins at the
    /// highest one and ends with the last: sacked segments are near each other.
    pub(crate) fn has_sacked_segments(&self, count: u32) -> bool {
        let (mut bytes, mut segments) = (0, 0);
        let until = self.index_of(self.highest_sacked);
        for sent in self.ring.range(..until).rev().filter(|sent| sent.sacked) {
            if bytes == self.sacked_bytes || segments == count {
                break;
            }
            bytes += sent.len;
            segments += 1;
        }
        segments >= count
    }

    /// Whether no segment is sacked and none awaits retransmission.
    #[inline]
    pub(crate) const fn has_no_sacked_or_lost(&self) -> bool {
        self.sacked_bytes | self.lost_bytes == 0
    }
    /// End of the highest range that was selectively acknowledged.
    #[inline]
    pub(crate) const fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// Removes segments before `una`; calls `visit` with every removed segment.
    #[inline]
    pub(crate) fn acknowledge(&mut self, una: u64, mut visit: impl FnMut(&OutstandingSegment)) {
        while let Some(front) = self.ring.front_mut() {
            if front.end() > una {
                // An acknowledgement within a segment: the remainder stays.
                let part = una.saturating_sub(front.start) as u32;
                if part > 0 {
                    if front.sacked {
                        self.sacked_bytes -= part;
                    }
                    if front.lost {
                        self.lost_bytes -= part;
                    }
                    front.start += u64::from(part);
                    front.len -= part;
                }
                return;
            }
            if front.sacked {
                self.sacked_bytes -= front.len;
            }
            if front.lost {
                self.lost_bytes -= front.len;
            }
            visit(front);
            self.ring.pop_front();
        }
        assert!(self.has_no_sacked_or_lost(), "no segment is outstanding");
    }

    /// [`acknowledge`](Self::acknowledge) for the common case that `una` covers exactly the first
    /// segment, which is neither marked lost nor sacked: returns the segment.
    #[inline]
    pub(crate) fn acknowledge_first(&mut self, una: u64) -> Option<OutstandingSegment> {
        let first = *self.ring.front()?;
        if first.end() != una || first.lost || first.sacked {
            return None;
        }
        self.ring.pop_front();
        Some(first)
    }

    /// Marks a range as selectively acknowledged; calls `visit` with every newly sacked segment and
    /// its index in the queue. Returns the number of bytes newly sacked.
    pub(crate) fn sack(
        &mut self,
        left: u64,
        right: u64,
        lost: LossMark,
        mut visit: impl FnMut(usize, &OutstandingSegment),
    ) -> u64 {
        let first = self.index_of(left);
        let mut covered = 0;
        for (index, sent) in (first..).zip(self.ring.range_mut(first..)) {
            if sent.end() > right {
                break;
            }
            if sent.sacked || sent.start < left {
                continue;
            }
            sent.sacked = true;
            covered += sent.len;
            if sent.lost && lost == LossMark::Clear {
                sent.lost = false;
                self.lost_bytes -= sent.len;
            }
            visit(index, sent);
        }
        self.sacked_bytes += covered;
        if covered > 0 {
            self.highest_sacked = self.highest_sacked.max(right);
        }
        u64::from(covered)
    }

    /// The first lost segment and its index in the queue.
    pub(crate) fn next_lost(&mut self) -> Option<(usize, &mut OutstandingSegment)> {
        if self.lost_bytes == 0 {
            return None;
        }
        // After a timeout, this is the first segment.
        if self.ring.front().is_some_and(|first| first.lost) {
            return self.ring.front_mut().map(|first| (0, first));
        }
        let from = self.index_of(self.near_front(self.first_lost_hint));
        let (index, start) = self
            .ring
            .range(from..)
            .enumerate()
            .find(|(_, sent)| sent.lost)
            .map(|(index, sent)| (from + index, sent.start))?;
        self.first_lost_hint = start as u32;
        self.ring.get_mut(index).map(|sent| (index, sent))
    }

    /// The segment at an index in the queue.
    #[inline]
    pub(crate) fn segment_mut(&mut self, index: usize) -> Option<&mut OutstandingSegment> {
        self.ring.get_mut(index)
    }

    /// Start and end of each segment that is marked lost and not yet retransmitted.
    pub(crate) fn lost_segments(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ring.iter().filter(|sent| sent.lost).map(|sent| (sent.start, sent.end()))
    }

    /// Marks the segments of more than `mss` bytes as lost that are not sacked, and divides each
    /// of them: as in Linux (`tcp_retransmit_skb`, `tcp_fragment`), the boundaries of segments
    /// stay, so that each may end with a short part.
    pub(crate) fn divide_above(&mut self, mss: u32, mut visit: impl FnMut(Division)) {
        let mut divided = VecDeque::with_capacity(self.ring.len());
        let (mut marked, mut first) = (0, None);
        for sent in std::mem::take(&mut self.ring) {
            if sent.len <= mss || sent.sacked {
                divided.push_back(sent);
                continue;
            }
            if !sent.lost {
                marked += sent.len;
                first.get_or_insert(sent.start);
            }
            visit(Division { index: divided.len(), parts: sent.len.div_ceil(mss) as usize });
            divided.extend((0..sent.len).step_by(mss as usize).map(|offset| OutstandingSegment {
                start: sent.start + u64::from(offset),
                len: mss.min(sent.len - offset),
                lost: true,
                ..sent
            }));
        }
        self.ring = divided;
        self.add_lost(marked, first);
    }

    /// Number of segments that have been retransmitted and neither arrived, as far as is known, nor
    /// been lost again (Linux, `retrans_out`).
    pub(crate) fn retransmitted_segments(&self) -> u32 {
        let out = |sent: &&OutstandingSegment| sent.transmits > 1 && !sent.sacked && !sent.lost;
        u32::try_from(self.ring.iter().filter(out).count()).unwrap_or(u32::MAX)
    }

    /// Number of outstanding segments.
    pub(crate) fn segments(&self) -> u32 {
        u32::try_from(self.ring.len()).unwrap_or(u32::MAX)
    }

    /// Number of segments that were marked lost and have not been acknowledged since, whether they
    /// have been retransmitted or not (Linux, `lost_out`).
    pub(crate) fn missing_segments(&self) -> u32 {
        let missing = self.ring.iter().filter(|sent| sent.lost || sent.transmits > 1).count();
        u32::try_from(missing).unwrap_or(u32::MAX)
    }

    /// A lost segment has been retransmitted.
    pub(crate) fn on_retransmitted(&mut self, len: u32) {
        assert!(len <= self.lost_bytes, "the segment was marked lost");
        self.lost_bytes -= len;
    }

    /// Grows by one entry while the queue is short: in simulations with many connections, most have
    /// no more than two segments outstanding.
    #[cold]
    #[inline(never)]
    fn push_to_full_ring(&mut self, sent: OutstandingSegment) {
        if self.ring.capacity() < 2 {
            self.ring.reserve_exact(1);
        }
        self.ring.push_back(sent);
    }

    /// Frees the memory of an empty queue that was long: an idle connection would keep several
    /// kilobytes after a bulk transfer. Memory for two segments is freed too, if the application
    /// has no more data: most connections send one segment at a time, and seldom two. Returns
    /// whether memory was freed.
    #[inline]
    pub(crate) fn release_spare(&mut self, has_more_data: bool) -> bool {
        let capacity = self.ring.capacity();
        (capacity > RETAINED || capacity == 2 && !has_more_data) && self.release_if_empty()
    }

    /// A separate function, because most calls of [`release_spare`](Self::release_spare) release
    /// nothing.
    #[inline(never)]
    fn release_if_empty(&mut self) -> bool {
        let is_empty = self.ring.is_empty();
        if is_empty {
            self.ring = VecDeque::new();
        }
        is_empty
    }

    /// Adds bytes that were marked lost just now; `first` is the first position of them.
    fn add_lost(&mut self, bytes: u32, first: Option<u64>) {
        if let Some(first) = first {
            let front = self.ring.front().map_or(first, |front| front.start);
            // The hint stays close to the outstanding data, so that its low half suffices. That of
            // an earlier loss may expand to any position, and does not exceed `first`.
            let hint = self.near_front(self.first_lost_hint).max(front).min(first);
            self.first_lost_hint = hint as u32;
        }
        self.lost_bytes += bytes;
    }

    /// The position with this low half that is next to the first outstanding segment.
    fn near_front(&self, low: u32) -> u64 {
        let front = self.ring.front().map_or(0, |front| front.start);
        expand(low, 0, front).unwrap_or(front)
    }

    /// Index of the first segment that begins at or after `position`.
    fn index_of(&self, position: u64) -> usize {
        match self.ring.front() {
            Some(front) if front.start < position => {
                self.ring.partition_point(|sent| sent.start < position)
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments of 100 B, of which the third is sacked, the last has 40 B, and the second is lost.
    fn queue() -> RetransmissionQueue {
        let mut queue = RetransmissionQueue::default();
        for (start, len) in [(1, 100), (101, 100), (201, 100), (301, 100), (401, 40)] {
            queue.push_sent(start, len, Instant::ZERO);
        }
        queue.sack(201, 301, LossMark::Clear, |_, _| {});
        queue.segment_mut(1).unwrap().lost = true;
        queue.lost_bytes = 100;
        queue
    }

    #[test]
    fn large_segments_are_lost_and_divided_without_gaps() {
        let mut queue = queue();
        let mut divisions = Vec::new();
        queue.divide_above(70, |division| divisions.push(division));
        let sizes: Vec<_> =
            queue.ring.iter().map(|sent| (sent.start, sent.len, sent.lost)).collect();
        let expected = [
            (1, 70, true),
            (71, 30, true),
            (101, 70, true),
            (171, 30, true),
            // The data of this segment has arrived.
            (201, 100, false),
            (301, 70, true),
            (371, 30, true),
            (401, 40, false),
        ];
        assert_eq!(sizes, expected);
        assert_eq!(divisions, [0, 2, 5].map(|index| Division { index, parts: 2 }));
        assert_eq!((queue.lost_bytes(), queue.sacked_bytes()), (300, 100));
    }

    /// Segments of 100 B from this position on.
    fn segments_from(start: u64, count: u64) -> RetransmissionQueue {
        let mut queue = RetransmissionQueue::default();
        (0..count).for_each(|index| queue.push_sent(start + 100 * index, 100, Instant::ZERO));
        queue
    }

    #[test]
    fn sacked_segments_are_counted_whatever_their_length() {
        let mut queue = queue();
        let has = |queue: &RetransmissionQueue| [1, 2, 3].map(|n| queue.has_sacked_segments(n));
        assert_eq!(has(&queue), [true, false, false]);
        queue.sack(401, 441, LossMark::Clear, |_, _| {});
        assert_eq!(has(&queue), [true, true, false]);
        queue.sack(301, 401, LossMark::Clear, |_, _| {});
        assert_eq!(has(&queue), [true; 3]);
        queue.acknowledge(401, |_| {});
        assert_eq!(has(&queue), [true, false, false]);
        queue.acknowledge(441, |_| {});
        assert_eq!(has(&queue), [false; 3]);
    }

    /// The low halves of the positions decrease within the queue.
    #[test]
    fn losses_are_found_where_positions_exceed_four_gigabytes() {
        let start = (1 << 32) - 250;
        let mut queue = segments_from(start, 6);
        let began = Instant::from_nanos(1);
        queue.begin_recovery();
        assert_eq!(queue.mark_lost_until(start + 200, began), 200);
        assert_eq!(queue.mark_lost_until(start + 500, began), 300);
        for index in 0..5 {
            let (position, sent) = queue.next_lost().unwrap();
            assert_eq!((position, sent.start), (index, start + 100 * index as u64));
            sent.lost = false;
            queue.on_retransmitted(100);
        }
        assert!(queue.next_lost().is_none());
        assert_eq!(queue.mark_lost_until(start + 400, began), 0, "examined already");
    }

    /// Without losses for so long that the low half of the last loss expands to a position after
    /// the queue.
    #[test]
    fn the_position_of_an_earlier_loss_has_no_effect() {
        let mut queue = segments_from(1_001, 1);
        queue.begin_recovery();
        queue.mark_lost_until(1_101, Instant::ZERO);
        queue.acknowledge(1_101, |_| {});
        for start in [3 << 30, 3 << 31] {
            let mut later = segments_from(start, 4);
            queue.ring = std::mem::take(&mut later.ring);
            queue.sack(start, start + 100, LossMark::Clear, |_, _| {});
            queue.begin_recovery();
            assert_eq!(queue.mark_lost_until(start + 300, Instant::ZERO), 200);
            assert_eq!(queue.next_lost().map(|(index, _)| index), Some(1));
            queue.acknowledge(start + 400, |_| {});
        }
    }

    #[test]
    fn memory_for_two_segments_is_released_when_the_application_has_no_more_data() {
        for (segments, has_more_data, is_released) in
            [(1, false, false), (2, false, true), (2, true, false), (4, false, false)]
        {
            let mut queue = segments_from(1, segments);
            assert!(!queue.release_spare(has_more_data), "the queue is not empty");
            queue.acknowledge(1 + 100 * segments, |_| {});
            assert_eq!(queue.release_spare(has_more_data), is_released, "{segments} segments");
            assert_eq!(queue.ring.capacity() == 0, is_released);
        }
    }

    #[test]
    fn segments_that_fit_stay_as_they_are() {
        let mut queue = queue();
        queue.divide_above(100, |_| panic!("no segment is larger"));
        assert_eq!((queue.segments(), queue.lost_bytes()), (5, 100));
    }
}
