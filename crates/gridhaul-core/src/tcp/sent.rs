//! The segments that are sent and not yet acknowledged, and what is known of each.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use super::recovery::Delivered;

/// A sent segment. What the delivery rate needs of it is kept by `RateAccount`, for those who ask.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    /// Stream position of its first byte (0 is SYN, data begins at 1).
    pub start: u64,
    /// Sequence space it takes.
    pub len: u32,
    /// Times it was sent; 255 stands for more, too.
    pub transmits: u8,
    /// It was selectively acknowledged.
    pub sacked: bool,
    /// It counts as lost and has not been sent again since.
    pub lost: bool,
    /// The timer has found it lost.
    pub timed_out: bool,
    /// When it was last sent.
    pub sent_at: Instant,
}

impl Sent {
    #[inline]
    pub(crate) const fn new(start: u64, len: u32, now: Instant) -> Self {
        let (sacked, lost, timed_out) = (false, false, false);
        Self { start, len, transmits: 1, sacked, lost, timed_out, sent_at: now }
    }

    /// A probe of a closed window. It measures nothing, as if it had been sent twice.
    pub(crate) const fn probe(start: u64, now: Instant) -> Self {
        Self { transmits: 2, ..Self::new(start, 1, now) }
    }

    #[inline]
    pub(crate) const fn end(&self) -> u64 {
        self.start + self.len as u64
    }
}

/// What has been found lost by its age.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expired {
    /// Bytes marked.
    pub bytes: u64,
    /// Whether some of them had been sent again.
    pub repeated: bool,
    /// When the last of those that are suspected has waited long enough.
    pub due: Option<Instant>,
}

/// What a selective acknowledgement does to a segment that waits to be retransmitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StillLost {
    /// It need not be retransmitted.
    Clear,
    /// It is retransmitted all the same (ns-2, on its way back after a timeout).
    Keep,
}

/// Sent segments in order of the stream, without gaps.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentQueue {
    ring: VecDeque<Sent>,
    sacked_bytes: u32,
    lost_bytes: u32,
    /// Everything before this position that is not sacked has been looked at for loss.
    judged: u64,
    highest_sacked: u64,
    /// No lost segment begins before this position.
    lost_hint: u64,
}

impl SentQueue {
    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) {
        if self.ring.capacity() < 2 {
            self.make_room();
        }
        self.ring.push_back(sent);
    }
    #[inline]
    pub(crate) fn front(&self) -> Option<&Sent> {
        self.ring.front()
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }
    /// Whether one of them is shorter than `len`. Asked only when a small segment is about to follow,
    /// which is not worth a word in the state of every connection; such a one is mostly the last.
    pub(crate) fn has_shorter_than(&self, len: u32) -> bool {
        self.ring.iter().rev().any(|sent| sent.len < len)
    }
    /// The last segment and its place in the queue.
    pub(crate) fn last_mut(&mut self) -> Option<(usize, &mut Sent)> {
        let index = self.ring.len().checked_sub(1)?;
        self.ring.get_mut(index).map(|sent| (index, sent))
    }
    /// Bytes selectively acknowledged.
    #[inline]
    pub(crate) const fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes as u64
    }
    /// Bytes lost and not sent again.
    #[inline]
    pub(crate) const fn lost_bytes(&self) -> u64 {
        self.lost_bytes as u64
    }
    /// End of the highest range that was selectively acknowledged.
    #[inline]
    pub(crate) const fn highest_sacked(&self) -> u64 {
        self.highest_sacked
    }

    /// Removes what lies before `una`; calls `each` with every removed segment.
    #[inline]
    pub(crate) fn acknowledge(&mut self, una: u64, mut each: impl FnMut(&Sent)) {
        while let Some(front) = self.ring.front_mut() {
            if front.end() > una {
                // An acknowledgement inside a segment: its rest stays.
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
            each(front);
            self.ring.pop_front();
        }
    }

    /// Marks a range as selectively acknowledged; calls `each` with every segment newly so and its
    /// place in the queue. Returns the bytes newly covered.
    pub(crate) fn sack(
        &mut self,
        left: u64,
        right: u64,
        lost: StillLost,
        mut each: impl FnMut(usize, &Sent),
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
            if sent.lost && lost == StillLost::Clear {
                sent.lost = false;
                self.lost_bytes -= sent.len;
            }
            each(index, sent);
        }
        self.sacked_bytes += covered;
        if covered > 0 {
            self.highest_sacked = self.highest_sacked.max(right);
        }
        u64::from(covered)
    }

    /// Marks as lost what RFC 6675 (`IsLost`) calls lost: not sacked, with more than
    /// `(dupthresh - 1) * mss` sacked bytes or `dupthresh` separate sacked ranges above it, and
    /// not sent again since the recovery `began`. Returns bytes marked.
    pub(crate) fn judge(&mut self, dupthresh: u32, mss: u32, began: Instant) -> u64 {
        let needed = u64::from(dupthresh.saturating_sub(1)) * u64::from(mss);
        if self.sacked_bytes == 0 {
            return 0;
        }
        let (mut above, mut ranges, mut in_range) = (0, 0, false);
        let mut boundary = 0;
        let top = self.index_of(self.highest_sacked);
        for sent in self.ring.range(..top).rev() {
            if sent.sacked {
                above += u64::from(sent.len);
                ranges += u32::from(!in_range);
                if above > needed || ranges >= dupthresh {
                    boundary = sent.start;
                    break;
                }
            }
            in_range = sent.sacked;
        }
        self.mark_lost_until(boundary, began)
    }

    /// A recovery begins: what was judged in an earlier one is judged anew.
    pub(crate) fn begin_recovery(&mut self) {
        self.judged = 0;
    }

    /// Marks everything below `boundary` as lost that is not sacked and was not sent again since
    /// the recovery `began` (RFC 6675: not above `HighRxt`).
    pub(crate) fn mark_lost_until(&mut self, boundary: u64, began: Instant) -> u64 {
        if boundary <= self.judged {
            return 0;
        }
        let from = self.index_of(self.judged);
        let mut marked = 0;
        let mut first = None;
        for sent in self.ring.range_mut(from..) {
            if sent.start >= boundary {
                break;
            }
            let repeated = sent.transmits > 1 && sent.sent_at >= began;
            if !sent.sacked && !sent.lost && !repeated {
                sent.lost = true;
                marked += sent.len;
                first.get_or_insert(sent.start);
            }
        }
        self.judged = boundary;
        self.lost_bytes += marked;
        if let Some(first) = first {
            self.lost_hint = self.lost_hint.min(first);
        }
        u64::from(marked)
    }

    /// Marks as lost what was sent before `newest`, which has arrived, and has waited for `wait`
    /// since (RFC 8985, section 6.2, step 5).
    pub(crate) fn mark_expired(
        &mut self,
        newest: &Delivered,
        wait: Duration,
        now: Instant,
    ) -> Expired {
        let (mut marked, mut repeated, mut first, mut due) = (0, false, None, None);
        for sent in &mut self.ring {
            let before = (sent.sent_at, sent.end()) < (newest.sent_at, newest.end);
            if !before && sent.transmits == 1 {
                // All that follow were first sent later than this one.
                break;
            }
            if !before || sent.sacked || sent.lost {
                continue;
            }
            let expires = sent.sent_at + wait;
            if expires <= now {
                sent.lost = true;
                marked += sent.len;
                repeated |= sent.transmits > 1;
                first.get_or_insert(sent.start);
            } else {
                due = due.max(Some(expires));
            }
        }
        self.lost_bytes += marked;
        if let Some(first) = first {
            self.lost_hint = self.lost_hint.min(first);
        }
        Expired { bytes: u64::from(marked), repeated, due }
    }

    /// After a timeout: the first segment is lost, and what was sent longer than `rtt` ago (RFC
    /// 8985, section 6.3). A selective acknowledgement of the first one means that the receiver has
    /// thrown away what it had (RFC 2018, section 8).
    pub(crate) fn mark_timed_out(&mut self, rtt: Duration, now: Instant) {
        if self.front().is_some_and(|front| front.sacked) {
            self.forget_sacks();
        }
        let mut lost_bytes = 0;
        for (index, sent) in self.ring.iter_mut().enumerate() {
            sent.lost |= index == 0 || !sent.sacked && sent.sent_at + rtt <= now;
            if sent.lost {
                lost_bytes += sent.len;
            }
        }
        self.lost_bytes = lost_bytes;
        self.lost_hint = self.ring.front().map_or(0, |front| front.start);
    }

    /// Nothing was lost after all.
    pub(crate) fn forget_losses(&mut self) {
        self.ring.iter_mut().for_each(|sent| sent.lost = false);
        self.lost_bytes = 0;
    }

    /// Marks the first segment as lost, whatever it was before.
    pub(crate) fn mark_front_lost(&mut self) {
        if let Some(front) = self.ring.front_mut()
            && !front.lost
            && !front.sacked
        {
            front.lost = true;
            self.lost_bytes += front.len;
            self.lost_hint = self.lost_hint.min(front.start);
        }
    }

    /// The timer has run out for the first segment.
    pub(crate) fn mark_first_timed_out(&mut self) {
        if let Some(front) = self.ring.front_mut() {
            front.timed_out = true;
        }
    }

    /// After a timeout or a go-back: everything not sacked is lost. With `forget`, selective
    /// acknowledgements are forgotten first; so they are where the first segment has one, because
    /// then the receiver does not have it any more (RFC 2018, section 8).
    pub(crate) fn mark_all_lost(&mut self, forget: bool) {
        if forget || self.front().is_some_and(|front| front.sacked) {
            self.forget_sacks();
        }
        self.lost_bytes = 0;
        for sent in &mut self.ring {
            sent.lost = !sent.sacked;
            if sent.lost {
                self.lost_bytes += sent.len;
            }
        }
        self.judged = self.ring.back().map_or(0, Sent::end);
        self.lost_hint = self.ring.front().map_or(0, |front| front.start);
    }

    /// Forgets all selective acknowledgements.
    pub(crate) fn forget_sacks(&mut self) {
        if self.sacked_bytes > 0 {
            self.ring.iter_mut().for_each(|sent| sent.sacked = false);
        }
        self.sacked_bytes = 0;
        self.highest_sacked = 0;
    }

    /// The first lost segment and its place in the queue.
    pub(crate) fn next_lost(&mut self) -> Option<(usize, &mut Sent)> {
        if self.lost_bytes == 0 {
            return None;
        }
        let from = self.index_of(self.lost_hint);
        let (index, start) = self
            .ring
            .range(from..)
            .enumerate()
            .find(|(_, sent)| sent.lost)
            .map(|(index, sent)| (from + index, sent.start))?;
        self.lost_hint = start;
        self.ring.get_mut(index).map(|sent| (index, sent))
    }

    /// A lost segment has been sent again.
    pub(crate) fn on_retransmitted(&mut self, len: u32) {
        self.lost_bytes -= len;
    }

    /// Of many connections, some never have more than SYN out, and most no more than two segments.
    #[cold]
    fn make_room(&mut self) {
        if self.ring.len() == self.ring.capacity() {
            self.ring.reserve_exact(1);
        }
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
