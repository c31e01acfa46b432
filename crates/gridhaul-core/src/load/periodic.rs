//! Periodic messages with optional jitter.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::RandomStream;

/// Messages with the period `every` and a phase; each message is delayed by a random time up to
/// `jitter`.
///
/// The phase is zero for synchronised members, which all start at `start`, and uniformly
/// distributed over one period otherwise. Jitter does not accumulate: message k is due within
/// `jitter` of its own period start. If `jitter` is longer than `every`, a message that would
/// overtake the previous one is sent together with it.
#[derive(Debug, Clone)]
pub struct Periodic {
    bytes: u64,
    every: Duration,
    jitter: Duration,
    next_tick: Instant,
    next_time: Instant,
    random: RandomStream,
}

impl Periodic {
    /// A clock that runs from `start` on.
    #[must_use]
    pub fn new(keys: &scenario::Periodic, start: Instant, mut random: RandomStream) -> Self {
        // With a period of zero, time would not advance.
        let every = keys.every.max(Duration::from_nanos(1));
        let last_phase = every - Duration::from_nanos(1);
        let phase = if keys.synchronised { Duration::ZERO } else { random.uniform(last_phase) };
        let mut periodic = Self {
            bytes: keys.size.get(),
            every,
            jitter: keys.jitter,
            next_tick: start + phase,
            next_time: start,
            random,
        };
        periodic.tick();
        periodic
    }

    /// When the next message arrives.
    #[must_use]
    pub const fn next_time(&self) -> Instant {
        self.next_time
    }

    /// The next message.
    #[inline]
    pub fn next_message(&mut self) -> Arrival {
        let message = Arrival { at: self.next_time, bytes: self.bytes };
        self.tick();
        message
    }

    #[inline]
    fn tick(&mut self) {
        let before = std::mem::replace(&mut self.next_time, self.next_tick);
        if !self.jitter.is_zero() {
            self.next_time = before.max(self.next_tick + self.random.uniform(self.jitter));
        }
        self.next_tick += self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Bytes;

    fn keys(jitter_ms: u64, synchronised: bool) -> scenario::Periodic {
        scenario::Periodic {
            size: Bytes::new(240),
            every: Duration::from_millis(100),
            jitter: Duration::from_millis(jitter_ms),
            synchronised,
        }
    }

    fn times(keys: &scenario::Periodic, member: u64, count: usize) -> Vec<u64> {
        let start = Instant::ZERO + Duration::from_secs(1);
        let random = RandomStream::named(1, 0, "meters", member, "load");
        let mut source = Periodic::new(keys, start, random);
        (0..count).map(|_| source.next_message().at.as_nanos()).collect()
    }

    #[test]
    fn synchronised_members_tick_together_from_the_start() {
        let expected = [1_000_000_000, 1_100_000_000, 1_200_000_000];
        assert_eq!(times(&keys(0, true), 0, 3), expected);
        assert_eq!(times(&keys(0, true), 1, 3), expected);
    }

    #[test]
    fn other_members_have_phases_spread_over_one_period() {
        let phases: Vec<u64> =
            (0..1000).map(|member| times(&keys(0, false), member, 1)[0] - 1_000_000_000).collect();
        assert!(phases.iter().all(|phase| *phase < 100_000_000));
        for tenth in 0..10 {
            let share = phases.iter().filter(|phase| **phase / 10_000_000 == tenth).count();
            assert!((60..140).contains(&share), "{share} in tenth {tenth}");
        }
    }

    #[test]
    fn jitter_is_bounded_and_keeps_the_order() {
        for jitter in [30, 100, 350] {
            let times = times(&keys(jitter, true), 0, 10_000);
            assert!(times.is_sorted());
            for (tick, at) in times.iter().enumerate() {
                let late = at - 1_000_000_000 - tick as u64 * 100_000_000;
                assert!(late <= jitter * 1_000_000, "{late} at tick {tick}");
            }
        }
    }
}
