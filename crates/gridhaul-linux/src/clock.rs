//! The clock of a run in real time.

use std::time;

use gridhaul_scenario::units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// Reads the monotonic clock as time since the start of a run.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: time::Instant,
}

impl Clock {
    /// The clock of a run that starts after `delay`. Until then its time is zero.
    #[must_use]
    pub fn starts_in(delay: Duration) -> Self {
        Self { zero: read() + time::Duration::from_nanos(delay.as_nanos()) }
    }

    /// Time since the start of the run.
    #[must_use]
    pub fn now(&self) -> Instant {
        let since = read().saturating_duration_since(self.zero);
        Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Time that remains until `instant`; zero when it has passed.
    #[must_use]
    pub fn until(&self, instant: Instant) -> time::Duration {
        if instant == Instant::NEVER {
            return time::Duration::MAX;
        }
        let at = self.zero + time::Duration::from_nanos(instant.as_nanos());
        at.saturating_duration_since(read())
    }

    /// System time, since 1970, at the start of the run.
    pub(crate) fn zero_in_system_time(&self) -> time::Duration {
        // Of several pairs of readings, that with the least time between the readings of the
        // monotonic clock is used.
        let pairs = (0..READINGS).map(|_| {
            let (before, system, after) = (read(), system_time(), read());
            let between = after.saturating_duration_since(before);
            let middle = before + between / 2;
            let zero = match middle.checked_duration_since(self.zero) {
                Some(since) => system.saturating_sub(since),
                None => system + self.zero.saturating_duration_since(middle),
            };
            (between, zero)
        });
        pairs.min().map_or(time::Duration::ZERO, |(_, zero)| zero)
    }

    /// Sleeps until the start of the run. A packet sent before it would wait for the links, and the
    /// first measured round trip would include that wait.
    #[expect(clippy::disallowed_methods, reason = "waits for the start of a run in real time")]
    pub fn await_start(&self) {
        std::thread::sleep(self.until(Instant::ZERO));
    }
}

/// Pairs of readings of the monotonic clock and the system's clock.
const READINGS: u32 = 8;

/// The system's clock, since 1970.
pub(crate) fn system_time() -> time::Duration {
    let now = clock_gettime(ClockId::Realtime);
    time::Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn read() -> time::Instant {
    time::Instant::now()
}
