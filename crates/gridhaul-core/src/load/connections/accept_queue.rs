//! The queue of established connections that a server has not accepted yet.

use gridhaul_scenario::scenario::AcceptLimits;
use gridhaul_scenario::units::{Duration, Instant};

/// A server that accepts connections at equal intervals, after a burst at once (a token bucket).
#[derive(Debug, Clone)]
pub struct AcceptQueue {
    interval: Duration,
    /// Time for which the burst suffices.
    burst: Duration,
    backlog: u64,
    /// When all connections so far would have been accepted without the burst.
    accepted_until: Instant,
}

impl AcceptQueue {
    /// The empty queue of a server with these limits.
    #[must_use]
    pub fn new(limits: &AcceptLimits) -> Self {
        let interval = Duration::from_nanos(1_000_000_000 / u64::from(limits.per_second.max(1)));
        let burst = Duration::from_nanos(interval.as_nanos() * u64::from(limits.burst.max(1)));
        let (backlog, accepted_until) = (u64::from(limits.backlog), Instant::ZERO);
        Self { interval, burst, backlog, accepted_until }
    }

    /// Whether SYN and the acknowledgements that complete handshakes are dropped: more connections
    /// wait than the backlog permits (Linux, `sk_acceptq_is_full`: the queue is full if its length
    /// exceeds the backlog).
    #[must_use]
    pub fn is_full(&self, now: Instant) -> bool {
        self.waiting(now) > self.backlog
    }

    /// A connection is established at the server. Returns when it is accepted.
    pub fn push(&mut self, now: Instant) -> Instant {
        self.accepted_until = self.accepted_until.max(now) + self.interval;
        let earlier = self.accepted_until.as_nanos().saturating_sub(self.burst.as_nanos());
        Instant::from_nanos(earlier).max(now)
    }

    /// Connections that are established and not yet accepted.
    fn waiting(&self, now: Instant) -> u64 {
        let ahead = self.accepted_until.as_nanos().saturating_sub(now.as_nanos());
        let ahead = ahead.saturating_sub(self.burst.as_nanos());
        ahead.div_ceil(self.interval.as_nanos().max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_accepted_at_equal_intervals_and_a_full_queue_drops() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut queue = AcceptQueue::new(&AcceptLimits { per_second: 10, burst: 1, backlog: 2 });
        // The first is accepted at once, the others every 100 ms.
        let accepted: Vec<_> = (0..3).map(|_| queue.push(at(0))).collect();
        assert_eq!(accepted, [at(0), at(100), at(200)]);
        assert!(!queue.is_full(at(0)), "two wait");
        assert_eq!(queue.push(at(0)), at(300));
        assert!(queue.is_full(at(0)) && queue.is_full(at(99)), "three wait");
        assert!(!queue.is_full(at(100)), "one of them was accepted");
        assert_eq!(queue.push(at(5_000)), at(5_000), "the server is idle");
    }

    /// The relay daemon accepts the handshakes of a second at once (`handshakes_per_second`).
    #[test]
    fn a_burst_is_accepted_at_once() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut queue = AcceptQueue::new(&AcceptLimits { per_second: 10, burst: 3, backlog: 9 });
        let accepted: Vec<_> = (0..5).map(|_| queue.push(at(1_000))).collect();
        assert_eq!(accepted, [at(1_000), at(1_000), at(1_000), at(1_100), at(1_200)]);
        // After an idle time, the burst is complete again.
        let accepted: Vec<_> = (0..4).map(|_| queue.push(at(9_000))).collect();
        assert_eq!(accepted, [at(9_000), at(9_000), at(9_000), at(9_100)]);
    }
}
