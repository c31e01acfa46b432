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

/// How to wait to the point: asleep at first, and the last part looking at the clock, since to wake up
/// takes about that long.
///
/// Looking at the clock is paid for with time slept before. Threads that go before all others must not
/// take a processor for themselves: the kernel would stop them for a while
/// (`/proc/sys/kernel/sched_rt_runtime_us`).
#[derive(Debug, Default)]
pub(crate) struct Patience {
    credit: time::Duration,
}

impl Patience {
    /// How long to sleep before something that is due after this time.
    pub(crate) fn sleep(&mut self, until: time::Duration) -> time::Duration {
        let sleep = until.min(LONGEST_SLEEP);
        let awake = sleep.min(SPIN);
        if sleep < until || self.credit < awake {
            self.credit = (self.credit + sleep).min(MOST_CREDIT);
            return sleep;
        }
        self.credit -= awake;
        self.credit = (self.credit + (sleep - awake)).min(MOST_CREDIT);
        sleep - awake
    }
}

/// How long it takes to wake up.
const SPIN: time::Duration = time::Duration::from_micros(60);

/// What a long sleep pays for.
const MOST_CREDIT: time::Duration = time::Duration::from_millis(1);

/// How long a thread sleeps at most before it looks whether it shall stop.
const LONGEST_SLEEP: time::Duration = time::Duration::from_millis(100);

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn read() -> time::Instant {
    time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_never_sleeps_long_is_awake_half_of_the_time_at_most() {
        for micros in [10, 50, 64, 90, 200] {
            let step = time::Duration::from_micros(micros);
            let mut patience = Patience::default();
            let slept: time::Duration = (0..10_000).map(|_| patience.sleep(step)).sum();
            assert!(slept * 100 >= step * 10_000 * 49, "{micros} µs: slept {slept:?}");
        }
        let mut patience = Patience::default();
        patience.sleep(time::Duration::from_millis(5));
        let nearly = time::Duration::from_micros(4_940);
        assert_eq!(
            patience.sleep(time::Duration::from_millis(5)),
            nearly,
            "then it is to the point"
        );
    }
}
