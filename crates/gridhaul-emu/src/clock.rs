//! The clock of a run: the time since it began.

use std::time;

use gridhaul_scenario::units::{Duration, Instant};

/// Reads the monotonic clock, from the start of the run on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    zero: time::Instant,
}

impl Clock {
    /// A run that starts after this time from now. Until then the clock says zero.
    pub(crate) fn starts_in(delay: Duration) -> Self {
        Self { zero: read() + time::Duration::from_nanos(delay.as_nanos()) }
    }

    /// Time since the start.
    pub(crate) fn now(&self) -> Instant {
        let since = read().saturating_duration_since(self.zero);
        Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Time until an instant, from the real now on; zero when it is over.
    pub(crate) fn until(&self, instant: Instant) -> time::Duration {
        if instant == Instant::NEVER {
            return time::Duration::MAX;
        }
        let at = self.zero + time::Duration::from_nanos(instant.as_nanos());
        at.saturating_duration_since(read())
    }
}

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn read() -> time::Instant {
    time::Instant::now()
}
