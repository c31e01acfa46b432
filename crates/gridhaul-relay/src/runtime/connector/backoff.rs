//! Time between attempts to connect to a peer that does not answer.

use gridhaul_scenario::units::{Duration, Instant};

/// Shortest time between two attempts.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Longest time between two attempts.
const INTERVAL_MAX: Duration = Duration::from_secs(5);

/// Longest time that counts as outage. Connections that end soon after they were established must
/// last in proportion before attempts are frequent again.
const OUTAGE_MAX: Duration = Duration::from_secs(60);

/// Chooses the time between attempts in proportion to the outage so far: after a restart of the
/// peer, the connection is back after at most 1.4 times the time for which the peer was absent, and
/// many collectors do not disturb a peer that is absent for long.
#[derive(Debug)]
pub(crate) struct Backoff {
    outage: Duration,
    changed: Instant,
    is_established: bool,
}

impl Backoff {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { outage: Duration::ZERO, changed: now, is_established: false }
    }

    /// The peer has accepted the connection.
    pub(crate) fn handle_established(&mut self, now: Instant) {
        if !self.is_established {
            self.change(now);
            self.is_established = true;
        }
    }

    /// The connection, or an attempt to establish it, has failed. Returns the time of the next
    /// attempt; `random` spreads the attempts of many collectors.
    pub(crate) fn handle_failure(&mut self, now: Instant, random: u64) -> Instant {
        self.change(now);
        self.is_established = false;
        let interval = (self.outage / 4).max(INTERVAL_MIN).min(INTERVAL_MAX);
        // Between 50 % and 150 %.
        now + interval.mul_f64(0.5 + (random % 1_024) as f64 / 1_024.0)
    }

    fn change(&mut self, now: Instant) {
        let elapsed = now.since(self.changed);
        self.outage = if self.is_established {
            self.outage.saturating_sub(elapsed.mul_f64(4.0))
        } else {
            (self.outage + elapsed).min(OUTAGE_MAX)
        };
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: u64 = 512;

    fn attempts(backoff: &mut Backoff, mut now: Instant, until: Instant) -> (u32, Instant) {
        let mut count = 0;
        while now < until {
            now = backoff.handle_failure(now, EVEN);
            count += 1;
        }
        (count, now)
    }

    #[test]
    fn a_short_outage_is_followed_by_an_attempt_soon() {
        for outage in [30_u64, 100, 300, 1_000, 10_000] {
            let mut backoff = Backoff::new(Instant::ZERO);
            let end = Instant::ZERO + Duration::from_millis(outage);
            let (_, next) = attempts(&mut backoff, Instant::ZERO, end);
            let delay = next.since(end);
            assert!(delay <= Duration::from_millis(10 + outage / 4), "{outage} ms: {delay:?}");
        }
    }

    #[test]
    fn a_long_outage_causes_few_attempts() {
        let mut backoff = Backoff::new(Instant::ZERO);
        let hour = Instant::ZERO + Duration::from_secs(3_600);
        let (count, _) = attempts(&mut backoff, Instant::ZERO, hour);
        assert!((700..800).contains(&count), "{count}");
    }

    #[test]
    fn a_peer_that_ends_each_connection_is_not_disturbed_often() {
        let mut backoff = Backoff::new(Instant::ZERO);
        let (mut now, mut count) = (Instant::ZERO, 0);
        while now.since(Instant::ZERO) < Duration::from_secs(60) {
            backoff.handle_established(now);
            now = backoff.handle_failure(now, EVEN);
            count += 1;
        }
        assert!(count < 60, "{count}");
        backoff.handle_established(now);
        now += Duration::from_secs(20);
        assert_eq!(backoff.handle_failure(now, EVEN).since(now), INTERVAL_MIN);
    }
}
