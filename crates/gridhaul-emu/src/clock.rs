//! The clock of a run: the time since it began.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time;

use gridhaul_scenario::units::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// Reads the monotonic clock, from the start of the run on.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: time::Instant,
}

impl Clock {
    /// A run that starts after this time from now. Until then the clock says zero.
    #[must_use]
    pub fn starts_in(delay: Duration) -> Self {
        Self { zero: read() + time::Duration::from_nanos(delay.as_nanos()) }
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Instant {
        let since = read().saturating_duration_since(self.zero);
        Instant::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Time until an instant, from the real now on; zero when it is over.
    #[must_use]
    pub fn until(&self, instant: Instant) -> time::Duration {
        if instant == Instant::NEVER {
            return time::Duration::MAX;
        }
        let at = self.zero + time::Duration::from_nanos(instant.as_nanos());
        at.saturating_duration_since(read())
    }

    /// Sleeps until the start. What is sent before would wait for the links, and make a first round trip
    /// that long.
    #[expect(clippy::disallowed_methods, reason = "waits for the start of a run in real time")]
    pub fn await_start(&self) {
        std::thread::sleep(self.until(Instant::ZERO));
    }
}

/// When the two threads of a run are due next: one that is about to hand something over finds the other
/// awake.
#[derive(Debug)]
pub(crate) struct Appointments {
    due: [AtomicU64; 2],
}

/// A thread of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thread {
    /// The emulator.
    Wire = 0,
    /// The applications.
    Traffic = 1,
}

impl Appointments {
    pub(crate) fn new() -> Self {
        Self { due: [const { AtomicU64::new(u64::MAX) }; 2] }
    }

    /// Says when this thread is due next. Returns until when it should sleep at most.
    pub(crate) fn meet(&self, thread: Thread, due: Instant, now: Instant) -> Instant {
        let own = thread as usize;
        self.due[own].store(due.as_nanos(), Ordering::Relaxed);
        let other = self.due[1 - own].load(Ordering::Relaxed).saturating_add(HANDING_OVER);
        if other > now.as_nanos() { due.min(Instant::from_nanos(other)) } else { due }
    }
}

/// Nanoseconds that it takes to send a packet.
const HANDING_OVER: u64 = 20_000;

/// How to wait to the point: asleep at first, and the last part looking at the clock, since to wake up
/// takes about that long.
///
/// Threads that go before all others must not take a processor for themselves: the kernel stops one for
/// 50 ms after 950 ms in a second (`/proc/sys/kernel/sched_rt_runtime_us`). So looking at the clock is
/// paid for with time slept before, and who is busy all the time rests a little and often.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    /// Time that may be spent looking at the clock.
    credit: time::Duration,
    /// Time that is owed to others.
    debt: time::Duration,
    last: Option<Times>,
    /// Whether the last wait was a look at the clock.
    looking: bool,
}

/// What a thread has had so far.
#[derive(Debug, Clone, Copy)]
struct Times {
    wall: time::Duration,
    /// Time on a processor.
    awake: time::Duration,
}

impl Patience {
    /// How long to rest now, whatever there is to do.
    pub(crate) fn rest(&mut self) -> Option<time::Duration> {
        self.rest_at(Times {
            wall: of_the_kernel(ClockId::Monotonic),
            awake: of_the_kernel(ClockId::ThreadCPUTime),
        })
    }

    /// How long to sleep before something that is due after this time.
    pub(crate) fn sleep(&mut self, until: time::Duration) -> time::Duration {
        let sleep = until.min(LONGEST_SLEEP);
        let awake = sleep.min(SPIN);
        if sleep < until || self.credit < awake {
            return sleep;
        }
        self.looking = awake == sleep;
        sleep - awake
    }

    fn rest_at(&mut self, now: Times) -> Option<time::Duration> {
        let last = self.last.replace(now)?;
        let awake = now.awake.saturating_sub(last.awake);
        let slept = now.wall.saturating_sub(last.wall).saturating_sub(awake);
        let looked = if std::mem::take(&mut self.looking) { awake } else { time::Duration::ZERO };
        self.credit = (self.credit + slept).min(MOST_CREDIT).saturating_sub(looked);
        self.debt = (self.debt + awake / SHARE_OF_OTHERS).saturating_sub(slept);
        (self.debt >= REST).then_some(self.debt)
    }
}

/// How long it takes to wake up.
const SPIN: time::Duration = time::Duration::from_micros(60);

/// What a long sleep pays for.
const MOST_CREDIT: time::Duration = time::Duration::from_millis(1);

/// How long a thread sleeps at most before it looks whether it shall stop.
const LONGEST_SLEEP: time::Duration = time::Duration::from_millis(100);

/// One part in this many of the time awake is owed to others: more than the 5 % after which the kernel
/// takes it.
const SHARE_OF_OTHERS: u32 = 14;

/// The shortest rest.
const REST: time::Duration = time::Duration::from_micros(50);

#[expect(clippy::disallowed_methods, reason = "a run on real kernels runs in real time")]
fn read() -> time::Instant {
    time::Instant::now()
}

/// A clock of the kernel.
fn of_the_kernel(clock: ClockId) -> time::Duration {
    let now = clock_gettime(clock);
    time::Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long a look at the clock takes.
    const LOOK: time::Duration = time::Duration::from_micros(1);

    /// A thread with some work in every `step`, on clocks of its own. Returns the share of the time
    /// that it slept, and the longest rest.
    fn busy(step: time::Duration, work: time::Duration) -> (f64, time::Duration) {
        let mut now = Times { wall: time::Duration::ZERO, awake: time::Duration::ZERO };
        let mut longest = time::Duration::ZERO;
        let mut patience = Patience::default();
        for _ in 0..20_000 {
            let due = now.wall + step;
            now = now.working(work);
            loop {
                if let Some(rest) = patience.rest_at(now) {
                    longest = longest.max(rest);
                    now.wall += rest;
                }
                if now.wall >= due {
                    break;
                }
                now.wall += patience.sleep(due - now.wall);
                now = now.working(LOOK);
            }
        }
        (1.0 - now.awake.as_secs_f64() / now.wall.as_secs_f64(), longest)
    }

    impl Times {
        fn working(self, work: time::Duration) -> Self {
            Self { wall: self.wall + work, awake: self.awake + work }
        }
    }

    #[test]
    fn who_is_to_be_handed_something_is_awake() {
        let at = Instant::from_nanos;
        let appointments = Appointments::new();
        assert_eq!(appointments.meet(Thread::Wire, Instant::NEVER, at(0)), Instant::NEVER);
        assert_eq!(appointments.meet(Thread::Traffic, at(500_000), at(0)), at(500_000));
        let handed = at(500_000 + HANDING_OVER);
        assert_eq!(appointments.meet(Thread::Wire, at(900_000), at(100)), handed);
        assert_eq!(appointments.meet(Thread::Wire, at(400_000), at(100)), at(400_000));
        // The other one is late: it is not waited for.
        assert_eq!(appointments.meet(Thread::Wire, at(900_000), handed), at(900_000));
    }

    #[test]
    fn who_has_little_to_do_is_awake_half_of_the_time_at_most() {
        for micros in [10, 50, 64, 90, 200] {
            let (slept, longest) = busy(time::Duration::from_micros(micros), time::Duration::ZERO);
            assert!(slept >= 0.45, "{micros} µs: slept {slept}");
            assert_eq!(longest, time::Duration::ZERO);
        }
    }

    #[test]
    fn who_is_always_busy_rests_a_little_and_often() {
        let work = time::Duration::from_micros(9);
        let (slept, longest) = busy(work, work);
        assert!((0.06..0.08).contains(&slept), "slept {slept}");
        assert!(longest < time::Duration::from_micros(60), "{longest:?}");
    }

    #[test]
    fn after_a_long_sleep_it_is_to_the_point() {
        let long = time::Duration::from_millis(5);
        let mut now = Times { wall: long, awake: long };
        let mut patience = Patience::default();
        patience.rest_at(now);
        assert_eq!(patience.sleep(long), long);
        now.wall += long;
        assert_eq!(patience.rest_at(now), None);
        assert_eq!(patience.sleep(long), long - SPIN);
    }
}
