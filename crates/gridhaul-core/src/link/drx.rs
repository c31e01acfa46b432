//! Discontinuous reception: packets wait for the next time at which their receiver listens.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRandomStreams;

/// State of the device at the end of a direction.
#[derive(Debug, Clone)]
pub(super) struct Drx {
    keys: scenario::Drx,
    /// Time of the first occasion.
    phase: Duration,
    /// When the device falls asleep, unless it is used before.
    active_until: Instant,
}

impl Drx {
    pub(super) fn new(keys: scenario::Drx, random: LinkRandomStreams) -> Self {
        let phase = random.stream("drx").uniform(keys.cycle);
        Self { keys, phase, active_until: Instant::ZERO }
    }

    /// The earliest transmission of a packet that finds the direction idle at `now`.
    pub(super) fn start(&self, now: Instant) -> Instant {
        if now < self.active_until {
            return now;
        }
        let first = Instant::ZERO + self.phase;
        let cycles = now.since(first).as_nanos().div_ceil(self.keys.cycle.as_nanos().max(1));
        first + self.keys.cycle * cycles + self.keys.delay
    }

    /// The device receives a packet until `at`.
    pub(super) fn note_reception(&mut self, at: Instant) {
        self.active_until = self.active_until.max(at + self.keys.inactivity);
    }

    /// The device sends a packet at `now`. Returns the earliest transmission of waiting packets.
    pub(super) fn wake(&mut self, now: Instant) -> Instant {
        let was_active = now < self.active_until;
        self.note_reception(now);
        if was_active { now } else { now + self.keys.delay }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_listens_at_its_occasions_and_for_a_time_after_each_packet() {
        let keys = scenario::Drx {
            cycle: Duration::from_secs(10),
            inactivity: Duration::from_secs(2),
            delay: Duration::from_secs(1),
        };
        let at = |secs: u64| Instant::ZERO + Duration::from_secs(secs);
        let phase = Duration::from_secs(3);
        let mut drx = Drx { keys, phase, active_until: Instant::ZERO };
        let starts = [0, 3, 4, 13, 14].map(|secs| drx.start(at(secs)));
        assert_eq!(starts, [4, 4, 14, 14, 24].map(at));
        drx.note_reception(at(14));
        assert_eq!([15, 16].map(|secs| drx.start(at(secs))), [15, 24].map(at));
        // The connection has to be resumed once.
        assert_eq!([20, 21].map(|secs| drx.wake(at(secs))), [21, 21].map(at));
        assert_eq!([22, 23].map(|secs| drx.start(at(secs))), [22, 24].map(at));
    }
}
