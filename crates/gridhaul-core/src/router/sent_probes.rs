//! Probes that were sent over a link, with their times.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

/// The newest probes of a link. Their numbers are consecutive.
#[derive(Debug, Clone, Default)]
pub(super) struct SentProbes {
    times: VecDeque<Instant>,
    /// Probes that were sent; the first one has number 1.
    count: u32,
}

/// Probes whose times are kept: those of half a minute at the shortest interval.
const KEPT_MAX: usize = 1_500;

impl SentProbes {
    pub(super) const fn new() -> Self {
        Self { times: VecDeque::new(), count: 0 }
    }

    /// The number of a probe that is sent now.
    pub(super) fn send(&mut self, now: Instant) -> u32 {
        self.count = self.count.wrapping_add(1);
        self.times.push_back(now);
        if self.times.len() > KEPT_MAX {
            self.times.pop_front();
        }
        self.count
    }

    /// When a probe was sent.
    pub(super) fn sent_at(&self, number: u32) -> Option<Instant> {
        let index = self.times.len().checked_sub(1)?.checked_sub(self.later(number))?;
        self.times.get(index).copied()
    }

    /// Probes that were sent after another one, until a time.
    pub(super) fn count_until(&self, after: u32, until: Instant) -> usize {
        let first = self.times.len().saturating_sub(self.later(after));
        self.times.range(first..).take_while(|sent_at| **sent_at <= until).count()
    }

    /// Probes that were sent after another one; without limit for one that was not sent.
    const fn later(&self, number: u32) -> usize {
        self.count.wrapping_sub(number) as usize
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    #[test]
    fn probes_are_found_by_number_and_counted_by_time() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut probes = SentProbes::new();
        assert_eq!(probes.sent_at(0), None);
        assert_eq!(probes.count_until(0, at(10_000)), 0);
        let numbers: Vec<_> = (0..5).map(|number| probes.send(at(100 * number))).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5]);
        assert_eq!(probes.sent_at(0), None);
        assert_eq!(probes.sent_at(1), Some(at(0)));
        assert_eq!(probes.sent_at(5), Some(at(400)));
        assert_eq!(probes.sent_at(6), None);
        assert_eq!(probes.count_until(2, at(350)), 2);
        assert_eq!(probes.count_until(2, at(150)), 0);
        assert_eq!(probes.count_until(0, at(400)), 5);
        for number in 0..KEPT_MAX as u64 {
            probes.send(at(500 + number));
        }
        assert_eq!(probes.sent_at(5), None, "forgotten");
        assert_eq!(probes.sent_at(6), Some(at(500)));
        assert_eq!(probes.count_until(2, at(501)), 2);
    }
}
