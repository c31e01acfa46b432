//! The schedule of the messages and the warm-up.

use gridhaul_scenario::units::{Duration, Instant};

/// Shortest warm-up: as long as connections need to settle after their start (slow start, first
/// delayed ACKs).
const WARM_UP: Duration = Duration::from_secs(1);

/// Fewest messages of a warm-up, for low rates.
const WARM_UP_MESSAGES: u64 = 100;

/// An open-loop schedule: message `i` is intended at `i / rate`, whether or not earlier messages
/// were late or lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Schedule {
    rate: f64,
    total: u64,
    /// Messages of the warm-up, if they are given.
    warm_up: Option<u64>,
}

impl Schedule {
    /// A schedule with `measured` messages after the warm-up, at a rate in messages per second.
    ///
    /// # Panics
    /// The rate is not positive and finite.
    #[must_use]
    pub fn new(rate: f64, measured: u64) -> Self {
        assert!(rate.is_finite() && rate > 0.0, "a rate is positive");
        let warm_up = Self { rate, total: 0, warm_up: None }.warm_up_messages();
        Self { rate, total: warm_up + measured, warm_up: None }
    }

    /// The same messages after a warm-up of this number of messages.
    #[must_use]
    pub fn with_warm_up(self, messages: u64) -> Self {
        let measured = self.total - self.warm_up_messages();
        Self { total: messages + measured, warm_up: Some(messages), ..self }
    }

    /// Messages per second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Number of messages, warm-up included. Sequence numbers run from 0 to `total() - 1`.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Time between two messages.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(1.0 / self.rate)
    }

    /// Time at which a message is to be sent. Computed from the start of the run, so that rounding
    /// errors do not add up.
    #[must_use]
    pub fn intended(&self, sequence: u64) -> Instant {
        Instant::from_secs_f64(sequence as f64 / self.rate)
    }

    /// Messages at the start of the run that are not measured: those that were given, or those of
    /// the first second or the first 100, whichever are more.
    #[must_use]
    pub fn warm_up_messages(&self) -> u64 {
        let default = || ((WARM_UP.as_secs_f64() * self.rate).ceil() as u64).max(WARM_UP_MESSAGES);
        self.warm_up.unwrap_or_else(default)
    }

    /// Time of the warm-up: that of the messages that were given, or one second or 100 messages,
    /// whichever is longer. It also follows every reconnection.
    #[must_use]
    pub fn warm_up(&self) -> Duration {
        let messages = |messages: u64| Duration::from_secs_f64(messages as f64 / self.rate);
        self.warm_up.map_or_else(|| WARM_UP.max(messages(WARM_UP_MESSAGES)), messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intended_times_do_not_drift() {
        let schedule = Schedule::new(3.0, 10);
        assert_eq!(schedule.intended(0), Instant::ZERO);
        assert_eq!(schedule.intended(3_000_000), Instant::from_secs_f64(1e6));
    }

    #[test]
    fn the_warm_up_is_the_longer_of_one_second_and_a_hundred_messages() {
        let slow = Schedule::new(10.0, 50);
        assert_eq!((slow.warm_up_messages(), slow.warm_up()), (100, Duration::from_secs(10)));
        assert_eq!(slow.total(), 150);
        let fast = Schedule::new(1_000.0, 50);
        assert_eq!((fast.warm_up_messages(), fast.warm_up()), (1_000, Duration::from_secs(1)));
    }

    #[test]
    fn a_given_warm_up_replaces_the_default() {
        let slow = Schedule::new(10.0, 50).with_warm_up(20);
        assert_eq!((slow.warm_up_messages(), slow.warm_up()), (20, Duration::from_secs(2)));
        assert_eq!(slow.total(), 70);
        assert_eq!(Schedule::new(10.0, 50).with_warm_up(0).total(), 50);
    }
}
