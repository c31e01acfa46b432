//! Detects that another proxy has acknowledged data and lost it in a crash.

use gridhaul_scenario::units::{Duration, Instant};

/// Number of retransmissions, and the time that they must span, before data counts as lost. Three
/// retransmissions were not enough: in one of a million random schedules, the preceding segment was
/// lost three times in a row, and each time the segment after it arrived.
const MIN_RETRANSMISSIONS: u32 = 6;
const MIN_TIME: Duration = Duration::from_secs(3);

/// Observes the retransmissions of one side.
///
/// A sender retransmits its oldest unacknowledged segment first (RFC 6298, section 5.4). If the
/// oldest segment that it retransmits begins after the sequence number that the next hop expects,
/// the bytes between were acknowledged to the sender, and the proxy that acknowledged them no
/// longer stores them.
///
/// A delayed duplicate proves nothing: the retransmissions of a segment are counted from the last
/// arrival of an earlier segment.
#[derive(Debug, Clone, Default)]
pub(super) struct CrashLossDetector {
    /// Segments that have arrived beyond a gap, with no earlier segment since. Absent without any,
    /// as most of the time.
    segments: Option<Box<[Option<Retransmitted>; SEGMENTS]>>,
}

/// A sender retransmits few different segments; a new one replaces the least recent.
const SEGMENTS: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Retransmitted {
    seq: u32,
    retransmissions: u32,
    since: Instant,
    last: Instant,
}

impl CrashLossDetector {
    /// Handles a segment that occupies sequence space from `seq` on, while the next hop expects
    /// `expected`. Returns the number of bytes before `seq` that are lost, once that is certain.
    #[inline]
    pub(super) fn on_segment(&mut self, now: Instant, seq: u32, expected: u32) -> Option<u32> {
        let missing = seq.wrapping_sub(expected);
        if missing.cast_signed() <= 0 {
            self.segments = None;
            return None;
        }
        let is_certain = self.on_segment_after_gap(now, seq);
        is_certain.then_some(missing)
    }

    /// Handles a segment after a gap. Returns whether the segment was retransmitted so often that
    /// the bytes in the gap are lost.
    #[cold]
    fn on_segment_after_gap(&mut self, now: Instant, seq: u32) -> bool {
        let segments = self.segments.get_or_insert_default();
        for entry in segments.iter_mut() {
            *entry = entry.filter(|known| seq.wrapping_sub(known.seq).cast_signed() >= 0);
        }
        let known = segments.iter_mut().flatten().find(|known| known.seq == seq);
        let Some(known) = known else {
            let entry = segments.iter_mut().min_by_key(|entry| entry.map(|known| known.last));
            let entry = entry.expect("the array is not empty");
            *entry = Some(Retransmitted { seq, retransmissions: 0, since: now, last: now });
            return false;
        };
        known.retransmissions += 1;
        known.last = now;
        known.retransmissions >= MIN_RETRANSMISSIONS && now.since(known.since) >= MIN_TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn retransmissions_after_a_gap_prove_the_loss() {
        let mut detector = CrashLossDetector::default();
        assert_eq!(detector.on_segment(at(0), 500, 200), None);
        assert_eq!(detector.on_segment(at(1), 600, 200), None);
        for second in 1..6 {
            assert_eq!(detector.on_segment(at(second), 500, 200), None);
        }
        assert_eq!(detector.on_segment(at(6), 500, 200), Some(300));
    }

    #[test]
    fn bytes_that_the_sender_still_retransmits_are_not_lost() {
        let mut detector = CrashLossDetector::default();
        detector.on_segment(at(0), 500, 200);
        detector.on_segment(at(1), 500, 200);
        detector.on_segment(at(2), 500, 200);
        // The sender still retransmits 300: the count of 500 starts again.
        assert_eq!(detector.on_segment(at(4), 300, 200), None);
        assert_eq!(detector.on_segment(at(9), 500, 200), None);
        // The gap is filled.
        assert_eq!(detector.on_segment(at(9), 500, 500), None);
        assert_eq!(detector.on_segment(at(9), 600, 500), None);
    }

    #[test]
    fn a_delayed_duplicate_does_not_hide_a_loss() {
        // Duplicates of 300 and 400 arrive late and once; the sender retransmits 500.
        for expected in [200, 300] {
            let mut detector = CrashLossDetector::default();
            assert_eq!(detector.on_segment(at(0), 400, 200), None);
            assert_eq!(detector.on_segment(at(0), 300, 200), None);
            assert_eq!(detector.on_segment(at(0), 400, 200), None);
            for second in 1..=6 {
                assert_eq!(detector.on_segment(at(second), 500, expected), None);
            }
            assert_eq!(detector.on_segment(at(7), 500, expected), Some(500 - expected));
        }
    }

    #[test]
    fn later_segments_do_not_count_while_the_oldest_is_retransmitted() {
        let mut detector = CrashLossDetector::default();
        for second in 0..12 {
            let seq = if second % 4 == 0 { 300 } else { 500 };
            assert_eq!(detector.on_segment(at(second), seq, 200), None, "second {second}");
        }
    }
}
