//! Delayed acknowledgements after a silence, or on a new connection.

use gridhaul_core::tcp::StackParams;

/// How a receiver delays acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AckDelay {
    /// Segments that an acknowledgement covers, at least one.
    every: u32,
    /// Time for which an acknowledgement of fewer segments is delayed, in seconds.
    seconds: f64,
}

impl AckDelay {
    /// The delays of a stack. Linux acknowledges the first segments of a connection, or after a
    /// silence, at once.
    pub(crate) fn new(stack: &StackParams) -> Self {
        let is_at_once = stack.policy.adaptive_delayed_ack || stack.quick_ack > 0;
        let seconds = if is_at_once { 0.0 } else { stack.delayed_ack.as_secs_f64() };
        Self { every: stack.ack_every.max(1), seconds }
    }

    /// Delay of the acknowledgement of a single segment, in seconds.
    pub(crate) const fn of_one_s(self) -> f64 {
        self.seconds
    }

    /// Time until the first of these segments is acknowledged, after its arrival: they arrive at
    /// this distance from each other, in seconds.
    pub(crate) fn of_first_s(self, segments: u32, spacing_s: f64) -> f64 {
        if segments < self.every {
            return self.seconds;
        }
        (f64::from(self.every - 1) * spacing_s).min(self.seconds)
    }

    /// Time until the last of these segments is acknowledged, after its arrival: they arrive at
    /// this distance from each other, in seconds. If the timer is shorter than the distance, it
    /// acknowledges each of them.
    pub(crate) fn of_last_s(self, segments: u32, spacing_s: f64) -> f64 {
        let until_full_s = f64::from(self.every - 1) * spacing_s;
        let is_full = until_full_s <= self.seconds;
        // Below `every`, because the timer ends first.
        let in_time = |seconds: f64| (seconds / spacing_s) as u32 + 1;
        let covered = if is_full { self.every } else { in_time(self.seconds) };
        let before = segments.saturating_sub(1) % covered;
        if before + 1 == self.every {
            return 0.0;
        }
        self.seconds - f64::from(before) * spacing_s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIRS: AckDelay = AckDelay { every: 2, seconds: 0.2 };

    #[test]
    fn the_last_segment_waits_unless_it_completes_a_group() {
        let last_s = |segments, spacing_s| PAIRS.of_last_s(segments, spacing_s);
        assert_eq!([1, 2, 3, 4].map(|segments| last_s(segments, 0.1)), [0.2, 0.0, 0.2, 0.0]);
        // The timer ends before the next segment arrives, so that each segment waits for it.
        assert_eq!([1, 2, 3, 4].map(|segments| last_s(segments, 0.3)), [0.2; 4]);
        let single = AckDelay { every: 1, seconds: 0.2 };
        assert_eq!(single.of_last_s(3, 0.3), 0.0);
        let at_once = AckDelay { every: 2, seconds: 0.0 };
        assert_eq!(at_once.of_last_s(3, 0.3), 0.0);
        // At 0, 150 and 300 ms: the timer, which starts with the first one, ends at 200 ms and
        // acknowledges two; the third one starts it again.
        let fours = AckDelay { every: 4, seconds: 0.2 };
        let waits_ms = [1, 2, 3].map(|count| (fours.of_last_s(count, 0.15) * 1e3).round());
        assert_eq!(waits_ms, [200.0, 50.0, 200.0]);
    }
}
