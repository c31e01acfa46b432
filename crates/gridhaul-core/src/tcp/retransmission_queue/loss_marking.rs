//! Loss marking of outstanding segments for each kind of loss recovery.

use gridhaul_scenario::units::{Duration, Instant};

use super::{RackLosses, RetransmissionQueue};
use crate::tcp::retransmission_queue::DeliveredSegment;

impl RetransmissionQueue {
    /// Marks segments as lost by RFC 6675 (`IsLost`): not sacked, with more than `(dupthresh - 1) *
    /// mss` sacked bytes or `dupthresh` separate sacked ranges above it, and not retransmitted
    /// since the recovery `began`. Returns the number of bytes marked.
    pub(crate) fn mark_lost_by_sack(&mut self, dupthresh: u32, mss: u32, began: Instant) -> u64 {
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

    /// A recovery begins: all segments are examined again.
    pub(crate) fn begin_recovery(&mut self) {
        self.loss_checked_until = self.ring.front().map_or(0, |front| front.start as u32);
    }

    /// Marks everything below `boundary` as lost that is not sacked and was not retransmitted since
    /// the recovery `began` (RFC 6675: not above `HighRxt`).
    pub(crate) fn mark_lost_until(&mut self, boundary: u64, began: Instant) -> u64 {
        let checked_until = self.near_front(self.loss_checked_until);
        if boundary <= checked_until {
            return 0;
        }
        let from = self.index_of(checked_until);
        let mut marked = 0;
        let mut first = None;
        for sent in self.ring.range_mut(from..) {
            if sent.start >= boundary {
                break;
            }
            let retransmitted = sent.transmits > 1 && sent.sent_at >= began;
            if !sent.sacked && !sent.lost && !retransmitted {
                sent.lost = true;
                marked += sent.len;
                first.get_or_insert(sent.start);
            }
        }
        self.loss_checked_until = boundary as u32;
        self.add_lost(marked, first);
        u64::from(marked)
    }

    /// Marks as lost each segment that was sent before `newest`, which has been delivered, if at
    /// least `wait` has passed since its transmission (RFC 8985, section 6.2, step 5).
    pub(crate) fn mark_lost_by_send_time(
        &mut self,
        newest: &DeliveredSegment,
        wait: Duration,
        now: Instant,
    ) -> RackLosses {
        let (mut marked, mut retransmitted, mut first, mut due) = (0, false, None, None);
        for sent in &mut self.ring {
            let before = (sent.sent_at, sent.end()) < (newest.sent_at, newest.end);
            if !before && sent.transmits == 1 {
                // All later segments were first sent after this segment.
                break;
            }
            if !before || sent.sacked || sent.lost {
                continue;
            }
            let expires = sent.sent_at + wait;
            if expires <= now {
                sent.lost = true;
                marked += sent.len;
                retransmitted |= sent.transmits > 1;
                first.get_or_insert(sent.start);
            } else {
                due = due.max(Some(expires));
            }
        }
        self.add_lost(marked, first);
        RackLosses { bytes: u64::from(marked), retransmitted, due }
    }

    /// After a timeout: marks the first segment as lost, and segments sent longer than `rtt` ago
    /// (RFC 8985, section 6.3). If the first segment is sacked, the receiver has discarded data
    /// that it had acknowledged selectively (RFC 2018, section 8).
    pub(crate) fn mark_timed_out(&mut self, rtt: Duration, now: Instant) {
        if self.front().is_some_and(|front| front.sacked) {
            self.clear_sacks();
        }
        let mut lost_bytes = 0;
        for (index, sent) in self.ring.iter_mut().enumerate() {
            sent.lost |= index == 0 || !sent.sacked && sent.sent_at + rtt <= now;
            if sent.lost {
                lost_bytes += sent.len;
            }
        }
        self.lost_bytes = lost_bytes;
        self.first_lost_hint = self.ring.front().map_or(0, |front| front.start as u32);
    }

    /// Clears all lost marks, after a spurious loss detection.
    pub(crate) fn clear_lost_marks(&mut self) {
        self.ring.iter_mut().for_each(|sent| sent.lost = false);
        self.lost_bytes = 0;
    }

    /// Marks the first segment as lost unless it is sacked.
    pub(crate) fn mark_front_lost(&mut self) {
        if let Some(front) = self.ring.front_mut()
            && !front.lost
            && !front.sacked
        {
            front.lost = true;
            let (bytes, first) = (front.len, front.start);
            self.add_lost(bytes, Some(first));
        }
    }

    /// Notes that the retransmission timer has expired for the first segment.
    pub(crate) fn mark_first_timed_out(&mut self) {
        if let Some(front) = self.ring.front_mut() {
            front.timed_out = true;
        }
    }

    /// After a timeout or for go-back-N: marks all segments that are not sacked as lost. With
    /// `forget`, SACK information is cleared first; it is also cleared if the first segment is
    /// sacked, because the receiver has then discarded it (RFC 2018, section 8).
    pub(crate) fn mark_all_lost(&mut self, forget: bool) {
        if forget || self.front().is_some_and(|front| front.sacked) {
            self.clear_sacks();
        }
        self.lost_bytes = 0;
        for sent in &mut self.ring {
            sent.lost = !sent.sacked;
            if sent.lost {
                self.lost_bytes += sent.len;
            }
        }
        self.loss_checked_until = self.ring.back().map_or(0, |last| last.end() as u32);
        self.first_lost_hint = self.ring.front().map_or(0, |front| front.start as u32);
    }

    /// Clears all SACK information.
    pub(crate) fn clear_sacks(&mut self) {
        if self.sacked_bytes > 0 {
            self.ring.iter_mut().for_each(|sent| sent.sacked = false);
        }
        self.sacked_bytes = 0;
        self.highest_sacked = 0;
    }
}
