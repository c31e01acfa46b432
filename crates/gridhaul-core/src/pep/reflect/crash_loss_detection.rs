//! Finds out that data is gone that a unit has acknowledged and lost in a crash.

use gridhaul_scenario::units::{Duration, Instant};

/// So often, and for so long, a segment must come again. Three times were too few: of a million random
/// schedules, in one the segment before was lost on the way three times in a row, each time with the one
/// behind it arriving.
const REPEATS: u32 = 6;
const TIME: Duration = Duration::from_secs(3);

/// What one side sends again and again.
///
/// A sender repeats its oldest unacknowledged segment first (RFC 6298, section 5.4). If the oldest
/// that it repeats begins beyond what the next hop is waiting for, then it was told that the bytes
/// between have arrived, and the one who told it has them no more.
///
/// Old copies that come late and never again say nothing: a segment counts from the last time that one
/// before it came.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CrashLossDetector {
    /// Those that have come, and none before them since.
    watched: [Option<Repeated>; WATCHED],
    /// Whether there are any: nearly always there are none.
    watches: bool,
}

/// A sender repeats few different segments; the one that has not come for longest gives way.
const WATCHED: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Repeated {
    seq: u32,
    repeats: u32,
    since: Instant,
    last: Instant,
}

impl CrashLossDetector {
    /// A segment that takes sequence space begins at `seq`, and the next hop waits for `expected`.
    /// Returns how many bytes before `seq` are gone for good, once that is certain.
    #[inline]
    pub(super) fn note(&mut self, now: Instant, seq: u32, expected: u32) -> Option<u32> {
        let missing = seq.wrapping_sub(expected);
        if missing.cast_signed() <= 0 {
            if self.watches {
                *self = Self::default();
            }
            return None;
        }
        let certain = self.note_behind_gap(now, seq);
        certain.then_some(missing)
    }

    /// A segment begins beyond what the next hop is waiting for. Returns whether it has come so often
    /// that what is missing will not come.
    #[cold]
    fn note_behind_gap(&mut self, now: Instant, seq: u32) -> bool {
        self.watches = true;
        for place in &mut self.watched {
            *place = place.filter(|known| seq.wrapping_sub(known.seq).cast_signed() >= 0);
        }
        let known = self.watched.iter_mut().flatten().find(|known| known.seq == seq);
        let Some(known) = known else {
            let place = self.watched.iter_mut().min_by_key(|place| place.map(|known| known.last));
            let place = place.expect("there are some");
            *place = Some(Repeated { seq, repeats: 0, since: now, last: now });
            return false;
        };
        known.repeats += 1;
        known.last = now;
        known.repeats >= REPEATS && now.since(known.since) >= TIME
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn what_is_repeated_beyond_a_gap_proves_the_gap() {
        let mut repeats = CrashLossDetector::default();
        assert_eq!(repeats.note(at(0), 500, 200), None);
        assert_eq!(repeats.note(at(1), 600, 200), None);
        for second in 1..6 {
            assert_eq!(repeats.note(at(second), 500, 200), None);
        }
        assert_eq!(repeats.note(at(6), 500, 200), Some(300));
    }

    #[test]
    fn as_long_as_the_sender_has_the_missing_bytes_nothing_is_gone() {
        let mut repeats = CrashLossDetector::default();
        repeats.note(at(0), 500, 200);
        repeats.note(at(1), 500, 200);
        repeats.note(at(2), 500, 200);
        // The sender still has 300; that one is lost on the way, and counted anew.
        assert_eq!(repeats.note(at(4), 300, 200), None);
        assert_eq!(repeats.note(at(9), 500, 200), None);
        // The gap is filled.
        assert_eq!(repeats.note(at(9), 500, 500), None);
        assert_eq!(repeats.note(at(9), 600, 500), None);
    }

    #[test]
    fn a_late_old_copy_hides_no_gap() {
        // Copies of 300 and 400 come late and never again; what is repeated is 500.
        for expected in [200, 300] {
            let mut repeats = CrashLossDetector::default();
            assert_eq!(repeats.note(at(0), 400, 200), None);
            assert_eq!(repeats.note(at(0), 300, 200), None);
            assert_eq!(repeats.note(at(0), 400, 200), None);
            for second in 1..=6 {
                assert_eq!(repeats.note(at(second), 500, expected), None);
            }
            assert_eq!(repeats.note(at(7), 500, expected), Some(500 - expected));
        }
    }

    #[test]
    fn while_the_oldest_is_repeated_those_behind_it_do_not_count() {
        let mut repeats = CrashLossDetector::default();
        for second in 0..12 {
            let seq = if second % 4 == 0 { 300 } else { 500 };
            assert_eq!(repeats.note(at(second), seq, 200), None, "second {second}");
        }
    }
}
