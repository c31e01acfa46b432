//! Probes that have arrived over a link.

use gridhaul_scenario::units::{Duration, Instant};

use super::probe::{AGE_MAX, LastProbe};

/// Probes of the present session of the peer that have arrived over a link.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reception {
    last: Option<(u32, Instant)>,
    count: u32,
    /// Interval of the peer's probes.
    interval: Duration,
    /// Times at which the peer was notified of the present silence, or should have been.
    notices: u64,
}

/// Notices of one silence: the last one is sent when the usual detection time has passed.
const NOTICES_MAX: u64 = 5;

impl Reception {
    /// A probe has arrived. A copy of the last one, which a network may create, does not count.
    pub(super) fn receive(&mut self, now: Instant, number: u32, interval: Duration) {
        if self.last.is_none_or(|(last, _)| last != number) {
            self.count = self.count.wrapping_add(1);
            self.last = Some((number, now));
            self.interval = interval;
            self.notices = 0;
        }
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn last(&self, now: Instant) -> Option<LastProbe> {
        self.last.map(|(number, at)| LastProbe { number, age: now.since(at).min(AGE_MAX) })
    }

    /// When the peer must be notified that no probe arrives: a quarter of the interval after a
    /// probe was due, and after each interval that follows.
    pub(super) fn notice_at(&self) -> Instant {
        match self.last {
            Some((_, at)) if self.notices < NOTICES_MAX => {
                at + self.interval * (4 * self.notices + 5) / 4
            }
            _ => Instant::NEVER,
        }
    }

    /// Whether the peer must be notified now.
    pub(super) fn take_notice(&mut self, now: Instant) -> bool {
        let is_due = self.notice_at() <= now;
        // After a delay of this router, one notice is enough.
        while self.notice_at() <= now {
            self.notices += 1;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peer_is_notified_of_a_silence_a_limited_number_of_times() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut reception = Reception::default();
        assert_eq!(reception.notice_at(), Instant::NEVER, "nothing has arrived");
        reception.receive(at(0), 1, Duration::from_millis(200));
        assert!(!reception.take_notice(at(249)));
        for time in [250, 450, 650] {
            assert_eq!(reception.notice_at(), at(time));
            assert!(reception.take_notice(at(time)));
        }
        assert!(reception.take_notice(at(5_000)), "one for all that were due");
        assert_eq!(reception.notice_at(), Instant::NEVER);
        reception.receive(at(5_000), 1, Duration::from_millis(200));
        assert_eq!(reception.notice_at(), Instant::NEVER, "a copy of the last one");
        reception.receive(at(5_000), 2, Duration::from_millis(200));
        assert_eq!(reception.notice_at(), at(5_250));
    }
}
