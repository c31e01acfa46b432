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
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Repeats {
    oldest: Option<Oldest>,
}

#[derive(Debug, Clone, Copy)]
struct Oldest {
    seq: u32,
    repeats: u32,
    since: Instant,
}

impl Repeats {
    /// A segment that takes sequence space begins at `seq`, and the next hop waits for `expected`.
    /// Returns how many bytes before `seq` are gone for good, once that is certain.
    pub(super) fn note(&mut self, now: Instant, seq: u32, expected: u32) -> Option<u32> {
        let missing = seq.wrapping_sub(expected);
        if missing.cast_signed() <= 0 {
            self.oldest = None;
            return None;
        }
        match &mut self.oldest {
            Some(oldest) if oldest.seq == seq => {
                oldest.repeats += 1;
                let certain = oldest.repeats >= REPEATS && now.since(oldest.since) >= TIME;
                certain.then_some(missing)
            }
            Some(oldest) if seq.wrapping_sub(oldest.seq).cast_signed() > 0 => None,
            _ => {
                self.oldest = Some(Oldest { seq, repeats: 0, since: now });
                None
            }
        }
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
        let mut repeats = Repeats::default();
        assert_eq!(repeats.note(at(0), 500, 200), None);
        assert_eq!(repeats.note(at(1), 600, 200), None);
        for second in 1..6 {
            assert_eq!(repeats.note(at(second), 500, 200), None);
        }
        assert_eq!(repeats.note(at(6), 500, 200), Some(300));
    }

    #[test]
    fn as_long_as_the_sender_has_the_missing_bytes_nothing_is_gone() {
        let mut repeats = Repeats::default();
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
}
