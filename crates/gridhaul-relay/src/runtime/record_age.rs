//! Age of the oldest record in a log that waits.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

/// Ends of a log at some times, about one per second, up to which records still wait.
#[derive(Debug, Default)]
pub(crate) struct RecordAges(VecDeque<(Instant, u64)>);

/// Resolution of the age, and largest number of times that are kept: a day.
const STEP: Duration = Duration::from_secs(1);
const COUNT_MAX: usize = 86_400;

impl RecordAges {
    /// The log ends at `end`, and records before `done` wait no longer.
    pub(crate) fn note(&mut self, now: Instant, end: u64, done: u64) {
        while self.0.front().is_some_and(|(_, end)| *end <= done) {
            self.0.pop_front();
        }
        let last = self.0.back();
        let is_new = last.is_none_or(|(at, noted)| *noted < end && now.since(*at) >= STEP);
        if end > done && is_new && self.0.len() < COUNT_MAX {
            self.0.push_back((now, end));
        }
    }

    /// Age of the oldest record that waits, in seconds; 0 if none waits.
    pub(crate) fn oldest(&self, now: Instant) -> f64 {
        self.0.front().map_or(0.0, |(at, _)| now.since(*at).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_is_that_of_the_oldest_record_that_waits() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut ages = RecordAges::default();
        ages.note(at(10), 100, 100);
        assert!(ages.oldest(at(20)) == 0.0, "nothing waits");
        ages.note(at(20), 200, 100);
        ages.note(at(25), 300, 150);
        assert!((ages.oldest(at(30)) - 10.0).abs() < 1e-9);
        ages.note(at(31), 300, 200);
        assert!((ages.oldest(at(35)) - 10.0).abs() < 1e-9);
        ages.note(at(36), 300, 300);
        assert!(ages.oldest(at(40)) == 0.0);
    }
}
