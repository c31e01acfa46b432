//! Time of day for the records of a collector.

use gridhaul_linux::{ClockSynchronisation, clock_synchronisation, utc_us};
use gridhaul_scenario::units::{Duration, Instant};

use crate::protocol::{ClockState, Reception};

/// Interval in which the kernel is asked whether the clock is synchronised.
const INTERVAL: Duration = Duration::from_secs(1);

/// The clock of the machine.
#[derive(Debug)]
pub(super) struct WallClock {
    state: ClockState,
    next_check: Instant,
}

impl WallClock {
    pub(super) const fn new() -> Self {
        Self { state: ClockState::Unknown, next_check: Instant::ZERO }
    }

    /// The time of day at a time of the run.
    pub(super) fn time(&mut self, now: Instant) -> Reception {
        if now >= self.next_check {
            self.next_check = now + INTERVAL;
            self.state = match clock_synchronisation() {
                ClockSynchronisation::Unknown => ClockState::Unknown,
                ClockSynchronisation::Unsynchronised => ClockState::Unsynchronised,
                ClockSynchronisation::Synchronised { error_us } => {
                    ClockState::Synchronised { error_us }
                }
            };
        }
        Reception { utc_us: utc_us(), clock: self.state }
    }

    /// Whether the clock is synchronised; `None` if it is unknown.
    pub(super) const fn is_synchronised(&self) -> Option<bool> {
        self.state.is_synchronised()
    }
}
