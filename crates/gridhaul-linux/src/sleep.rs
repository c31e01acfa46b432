//! Precise sleeping within the kernel's limit for real-time threads.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long a thread may sleep, poll the clock or has to yield.
///
/// A thread sleeps until shortly before its deadline and polls the clock for the rest, since waking
/// up takes some ten microseconds. Real-time threads must not occupy a processor: the kernel
/// throttles one for 50 ms after 950 ms in a second (`/proc/sys/kernel/sched_rt_runtime_us`).
/// Therefore polling is limited to time slept before, and a thread that is always busy yields for
/// short times.
#[derive(Debug, Default)]
pub struct SleepBudget {
    /// Time that may be spent polling the clock.
    polling_credit: Duration,
    /// Processor time that is owed to other threads.
    yield_debt: Duration,
    last: Option<ThreadTimes>,
    /// Whether the last wait polled the clock.
    polled: bool,
}

/// Times of a thread since it started.
#[derive(Debug, Clone, Copy)]
struct ThreadTimes {
    elapsed: Duration,
    on_cpu: Duration,
}

impl SleepBudget {
    /// Time for which the thread must yield now, even if it has work to do.
    pub fn must_yield(&mut self) -> Option<Duration> {
        self.must_yield_at(ThreadTimes {
            elapsed: read(ClockId::Monotonic),
            on_cpu: read(ClockId::ThreadCPUTime),
        })
    }

    /// Time to sleep before a deadline that is `remaining` away; zero means to poll the clock.
    pub fn sleep_for(&mut self, remaining: Duration) -> Duration {
        let sleep = remaining.min(LONGEST_SLEEP);
        let polling = sleep.min(WAKE_UP_LATENCY);
        if sleep < remaining || self.polling_credit < polling {
            return sleep;
        }
        self.polled = polling == sleep;
        sleep - polling
    }

    fn must_yield_at(&mut self, now: ThreadTimes) -> Option<Duration> {
        let last = self.last.replace(now)?;
        let on_cpu = now.on_cpu.saturating_sub(last.on_cpu);
        let slept = now.elapsed.saturating_sub(last.elapsed).saturating_sub(on_cpu);
        let polled = if std::mem::take(&mut self.polled) { on_cpu } else { Duration::ZERO };
        self.polling_credit =
            (self.polling_credit + slept).min(MAX_POLLING_CREDIT).saturating_sub(polled);
        self.yield_debt = (self.yield_debt + on_cpu / YIELD_SHARE).saturating_sub(slept);
        (self.yield_debt >= SHORTEST_YIELD).then_some(self.yield_debt)
    }
}

/// Wake-up time of a thread.
const WAKE_UP_LATENCY: Duration = Duration::from_micros(60);

/// Limit of the time that a long sleep adds for polling.
const MAX_POLLING_CREDIT: Duration = Duration::from_millis(1);

/// Longest sleep before a thread checks whether it has to stop.
const LONGEST_SLEEP: Duration = Duration::from_millis(100);

/// One part in this many of a thread's processor time is yielded: more than the 5 % at which the
/// kernel throttles.
const YIELD_SHARE: u32 = 14;

/// Shortest time for which a thread yields.
const SHORTEST_YIELD: Duration = Duration::from_micros(50);

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Duration of one reading of the clock.
    const CLOCK_READING: Duration = Duration::from_micros(1);

    /// Simulates a thread with some work in every `period`. Returns the share of the time that it
    /// slept, and the longest time for which it yielded.
    fn run(period: Duration, work: Duration) -> (f64, Duration) {
        let mut now = ThreadTimes { elapsed: Duration::ZERO, on_cpu: Duration::ZERO };
        let mut longest = Duration::ZERO;
        let mut budget = SleepBudget::default();
        for _ in 0..20_000 {
            let due = now.elapsed + period;
            now = now.working(work);
            loop {
                if let Some(time) = budget.must_yield_at(now) {
                    longest = longest.max(time);
                    now.elapsed += time;
                }
                if now.elapsed >= due {
                    break;
                }
                now.elapsed += budget.sleep_for(due - now.elapsed);
                now = now.working(CLOCK_READING);
            }
        }
        (1.0 - now.on_cpu.as_secs_f64() / now.elapsed.as_secs_f64(), longest)
    }

    impl ThreadTimes {
        fn working(self, work: Duration) -> Self {
            Self { elapsed: self.elapsed + work, on_cpu: self.on_cpu + work }
        }
    }

    #[test]
    fn a_thread_without_work_polls_at_most_half_of_the_time() {
        for micros in [10, 50, 64, 90, 200] {
            let (slept, longest) = run(Duration::from_micros(micros), Duration::ZERO);
            assert!(slept >= 0.45, "{micros} µs: slept {slept}");
            assert_eq!(longest, Duration::ZERO);
        }
    }

    #[test]
    fn a_busy_thread_yields_often_and_briefly() {
        let work = Duration::from_micros(9);
        let (slept, longest) = run(work, work);
        assert!((0.06..0.08).contains(&slept), "slept {slept}");
        assert!(longest < Duration::from_micros(60), "{longest:?}");
    }

    #[test]
    fn after_a_long_sleep_the_thread_polls_before_the_deadline() {
        let long = Duration::from_millis(5);
        let mut now = ThreadTimes { elapsed: long, on_cpu: long };
        let mut budget = SleepBudget::default();
        budget.must_yield_at(now);
        assert_eq!(budget.sleep_for(long), long);
        now.elapsed += long;
        assert_eq!(budget.must_yield_at(now), None);
        assert_eq!(budget.sleep_for(long), long - WAKE_UP_LATENCY);
    }
}
