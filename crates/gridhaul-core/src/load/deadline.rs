//! Deadline checks: the share of messages that arrive in time.

use gridhaul_scenario::units::{Duration, Instant};

/// Counts the messages of one row that meet their deadline.
#[derive(Debug, Clone)]
pub struct DeadlineCounter {
    deadline: Duration,
    /// Messages ready in this interval are counted: the deadline of later ones may pass after the
    /// end of the run.
    from: Instant,
    until: Instant,
    checked: u64,
    in_time: u64,
}

impl DeadlineCounter {
    /// A counter for a run that is measured from `warmup` to `end`.
    #[must_use]
    pub fn new(deadline: Duration, warmup: Instant, end: Instant) -> Self {
        // If the measured time is shorter than the deadline, the interval is empty and no message
        // is counted.
        let until = Instant::from_nanos(end.as_nanos().saturating_sub(deadline.as_nanos()));
        Self { deadline, from: warmup, until, checked: 0, in_time: 0 }
    }

    /// The deadline.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The application has a message ready. A message that is never delivered misses its deadline.
    pub fn on_ready(&mut self, ready: Instant) {
        self.checked += u64::from(self.counts(ready));
    }

    /// A message has been delivered completely.
    pub fn on_delivered(&mut self, ready: Instant, delay: Duration) {
        self.in_time += u64::from(self.counts(ready) && delay <= self.deadline);
    }

    /// Share of the counted messages that met the deadline; `None` without messages.
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
    fn messages_with_a_deadline_after_the_end_are_not_counted() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut counter = DeadlineCounter::new(Duration::from_secs(3), at(10), at(20));
        for ready in [9, 10, 15, 17, 18] {
            counter.on_ready(at(ready));
        }
        counter.on_delivered(at(9), Duration::from_secs(1));
        counter.on_delivered(at(10), Duration::from_secs(3));
        counter.on_delivered(at(15), Duration::from_secs(4));
        counter.on_delivered(at(18), Duration::from_secs(1));
        assert_eq!(counter.share(), Some(1.0 / 3.0), "the first of those ready at 10, 15 and 17 s");
        let mut short = DeadlineCounter::new(Duration::from_secs(11), at(10), at(20));
        short.on_ready(at(12));
        assert_eq!(short.share(), None);
    }
}
