//! Times of the system's clock, with which the kernel stamps packets, as times of a run.

use std::time;

use gridhaul_scenario::units::{Duration, Instant};

use crate::Clock;

/// Converts times of the system's clock to times of the monotonic [`Clock`] of a run. Both clocks
/// run at the same rate, until somebody sets the system's clock (clock_gettime(2));
/// [`Self::update`] notices that.
#[derive(Debug, Clone, Copy)]
pub struct SystemTime {
    clock: Clock,
    /// System time at the zero of the clock.
    zero: time::Duration,
}

/// Largest difference between two readings of both clocks that is not a step of the system's clock.
/// The limit exceeds the time for which a busy machine can interrupt all readings between the two
/// clocks.
const STEP: time::Duration = time::Duration::from_micros(200);

impl SystemTime {
    /// Reads both clocks.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, zero: clock.zero_in_system_time() }
    }

    /// The time of the run at a system time since 1970; zero for times before the run.
    #[must_use]
    pub fn instant(&self, since_1970: time::Duration) -> Instant {
        let since_zero = since_1970.saturating_sub(self.zero).as_nanos();
        Instant::from_nanos(u64::try_from(since_zero).unwrap_or(u64::MAX))
    }

    /// Reads both clocks again. Returns by how much the system's clock was set since the last
    /// reading; zero if it was not.
    pub fn update(&mut self) -> Duration {
        self.correct(self.clock.zero_in_system_time())
    }

    fn correct(&mut self, zero: time::Duration) -> Duration {
        let change = zero.abs_diff(self.zero);
        if change <= STEP {
            return Duration::ZERO;
        }
        self.zero = zero;
        Duration::from_nanos(u64::try_from(change.as_nanos()).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_time_is_converted_to_the_clock_of_the_run() {
        let clock = Clock::starts_in(Duration::ZERO);
        let system = SystemTime::new(clock);
        let (before, read, after) = (clock.now(), crate::clock::system_time(), clock.now());
        let converted = system.instant(read);
        // The offset is known up to the time between two readings of the clocks.
        let tolerance = Duration::from_millis(1);
        assert!(converted + tolerance >= before, "{converted:?} {before:?}");
        assert!(converted <= after + tolerance, "{converted:?} {after:?}");
        assert_eq!(system.instant(time::Duration::ZERO), Instant::ZERO);
    }

    #[test]
    fn a_step_of_the_system_clock_is_noticed_once() {
        let mut system = SystemTime::new(Clock::starts_in(Duration::ZERO));
        let jittered = system.zero + time::Duration::from_micros(50);
        assert_eq!(system.correct(jittered), Duration::ZERO);
        let set_back = system.zero - time::Duration::from_secs(1);
        assert_eq!(system.correct(set_back), Duration::from_secs(1));
        assert_eq!(system.correct(set_back), Duration::ZERO);
    }
}
