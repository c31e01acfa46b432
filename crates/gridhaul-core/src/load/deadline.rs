//! Deadlines: which messages were in time.

use gridhaul_scenario::units::{Duration, Instant};

/// Judges the messages of one row.
#[derive(Debug, Clone)]
pub struct DeadlineCounter {
    deadline: Duration,
    /// Messages that are ready in this time are checked: later ones may still have been in time
    /// when the run ended.
    from: Instant,
    until: Instant,
    checked: u64,
    in_time: u64,
}

impl DeadlineCounter {
    /// A counter for a run that is measured from `warmup` to `end`.
    #[must_use]
    pub fn new(deadline: Duration, warmup: Instant, end: Instant) -> Self {
        // Without room for a single message the two are the wrong way round: none is checked.
        let until = Instant::from_nanos(end.as_nanos().saturating_sub(deadline.as_nanos()));
        Self { deadline, from: warmup, until, checked: 0, in_time: 0 }
    }

    /// The application has a message ready. What is never delivered is late.
    pub fn on_ready(&mut self, ready: Instant) {
        self.checked += u64::from(self.counts(ready));
    }

    /// A message has arrived whole.
    pub fn on_delivered(&mut self, ready: Instant, delay: Duration) {
        self.in_time += u64::from(self.counts(ready) && delay <= self.deadline);
    }

    /// Share of the checked messages that were in time; `None` without any.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.checked > 0).then(|| self.in_time as f64 / self.checked as f64)
    }

    fn counts(&self, ready: Instant) -> bool {
        self.from <= ready && ready <= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_not_be_in_time_before_the_end_is_not_judged() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut counter = DeadlineCounter::new(Duration::from_secs(3), at(10), at(20));
        for ready in [9, 10, 15, 17, 18] {
            counter.on_ready(at(ready));
        }
        counter.on_delivered(at(9), Duration::from_secs(1));
        counter.on_delivered(at(10), Duration::from_secs(3));
        counter.on_delivered(at(15), Duration::from_secs(4));
        counter.on_delivered(at(18), Duration::from_secs(1));
        assert_eq!(
            counter.share(),
            Some(1.0 / 3.0),
            "of those ready at 10, 15 and 17 s, the first"
        );
        let mut short = DeadlineCounter::new(Duration::from_secs(11), at(10), at(20));
        short.on_ready(at(12));
        assert_eq!(short.share(), None);
    }
}
