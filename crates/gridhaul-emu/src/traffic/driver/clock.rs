//! The clock of the applications of a run.

use gridhaul_linux::Clock;
use gridhaul_scenario::units::{Duration, Instant};

/// A clock that stops before the end of the run.
///
/// On a busy machine the end may pass after the last look at the clock. A message that becomes
/// ready at the end belongs to no run, as in the simulator.
#[derive(Debug, Clone, Copy)]
pub(super) struct ApplicationClock {
    clock: Clock,
    last: Instant,
}

impl ApplicationClock {
    pub(super) fn new(clock: Clock, end: Instant) -> Self {
        Self { clock, last: end - Duration::from_nanos(1) }
    }

    pub(super) fn now(self) -> Instant {
        self.clock.now().min(self.last)
    }

    /// Time until `due`.
    pub(super) fn until(self, due: Instant) -> std::time::Duration {
        self.clock.until(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_before_the_end_of_the_run() {
        let clock = Clock::starts_in(Duration::ZERO);
        let end = Instant::ZERO + Duration::from_nanos(2);
        while clock.now() < end {}
        assert!(ApplicationClock::new(clock, end).now() < end);
    }
}
