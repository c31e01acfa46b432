//! The local retransmission timer: RFC 6298 over one hop.

use gridhaul_scenario::units::{Duration, Instant};

/// Round trips over the hop, and when a lost segment is given up for the local copy.
#[derive(Debug, Clone)]
pub(super) struct HopTimer {
    srtt_ns: u64,
    rttvar_ns: u64,
    /// The shortest round trip; [`u64::MAX`] before the first.
    min_ns: u64,
    backoff: u8,
    at: Instant,
    /// When something was last heard that was new.
    heard: Instant,
}

/// RFC 6298, 2.1: before a round trip is measured.
const INITIAL: Duration = Duration::from_secs(1);

/// RFC 6298, 2.4 asks for one second end to end. This is one hop, whose way has no other traffic of
/// ours to spare; twice the 10 ms of a coarse host clock keeps jitter of the host from looking like
/// loss.
const LEAST: Duration = Duration::from_millis(20);

/// RFC 6298, 2.5 allows a maximum of 60 s or more. One segment a second over a hop that is down
/// costs nothing, and the connection goes on soon after the hop is back.
const MOST: Duration = Duration::from_secs(1);

/// RFC 8985, section 7.2 (`TLP.max_ack_delay`, 200 ms): the acknowledgement of a segment that
/// nothing follows may be delayed by so much.
const ACK_DELAY: Duration = Duration::from_millis(200);

/// RFC 1122, 4.2.3.5: R2, after which a connection is given up.
const GIVE_UP: Duration = Duration::from_secs(100);

impl HopTimer {
    pub(super) const fn new() -> Self {
        Self {
            srtt_ns: 0,
            rttvar_ns: 0,
            min_ns: u64::MAX,
            backoff: 0,
            at: Instant::NEVER,
            heard: Instant::ZERO,
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.at
    }
    pub(super) fn stop(&mut self) {
        self.at = Instant::NEVER;
    }
    pub(super) fn is_running(&self) -> bool {
        self.at != Instant::NEVER
    }
    /// Starts anew from now. `alone`: only one segment is out.
    pub(super) fn start(&mut self, now: Instant, alone: bool) {
        self.at = now + self.timeout(alone);
    }

    /// Something new was acknowledged, or something is out where nothing was.
    pub(super) fn hear(&mut self, now: Instant) {
        self.heard = now;
        self.backoff = 0;
    }

    /// It has run out: the time doubles (RFC 6298, 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Whether it has run out twice and nothing new was heard since.
    pub(super) const fn is_silent(&self) -> bool {
        self.backoff > 1
    }

    /// Whether nothing new has been heard for so long that nothing will come.
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
        now.since(self.heard) >= GIVE_UP
    }

    /// What was sent once at `sent` has been acknowledged.
    pub(super) fn measure(&mut self, sent: Instant, now: Instant) {
        let sample = now.since(sent).as_nanos().max(1);
        if self.min_ns == u64::MAX {
            // RFC 6298, 2.2.
            (self.srtt_ns, self.rttvar_ns) = (sample, sample / 2);
        } else {
            // RFC 6298, 2.3: alpha = 1/8, beta = 1/4, RTTVAR before SRTT.
            let error = self.srtt_ns.abs_diff(sample);
            self.rttvar_ns = self.rttvar_ns - self.rttvar_ns / 4 + error / 4;
            self.srtt_ns = self.srtt_ns - self.srtt_ns / 8 + sample / 8;
        }
        self.min_ns = self.min_ns.min(sample);
    }

    /// Whether an acknowledgement that comes now can be that of a segment sent at `sent`: not
    /// sooner than the shortest round trip (RFC 8985, section 6.2, step 2).
    pub(super) fn is_plausible(&self, sent: Instant, now: Instant) -> bool {
        self.min_ns != u64::MAX && now.since(sent).as_nanos() >= self.min_ns
    }

    fn timeout(&self, alone: bool) -> Duration {
        let measured = self.min_ns != u64::MAX;
        // RFC 6298, 2.3: SRTT + 4 * RTTVAR.
        let base = if measured {
            Duration::from_nanos((self.srtt_ns + 4 * self.rttvar_ns).max(LEAST.as_nanos()))
        } else {
            INITIAL
        };
        let allowance = if alone && measured { ACK_DELAY } else { Duration::default() };
        ((base + allowance) * (1 << self.backoff)).min(MOST.max(base + allowance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn timeouts_by_hand() {
        let mut timer = HopTimer::new();
        let after = |timer: &mut HopTimer, alone| {
            timer.start(ms(0), alone);
            timer.deadline().since(ms(0)).as_nanos() / 1_000_000
        };
        assert_eq!(after(&mut timer, false), 1000);
        // 2.2: SRTT 16, RTTVAR 8: 16 + 4 * 8.
        timer.measure(ms(0), ms(16));
        assert_eq!(after(&mut timer, false), 48);
        assert_eq!(after(&mut timer, true), 248);
        // 2.3: RTTVAR 8 - 2 + 8/4 = 8, SRTT 16 - 2 + 3 = 17: 17 + 32.
        timer.measure(ms(0), ms(24));
        assert_eq!(after(&mut timer, false), 49);
        timer.back_off();
        timer.back_off();
        assert_eq!(after(&mut timer, false), 4 * 49);
        for _ in 0..20 {
            timer.back_off();
        }
        assert_eq!(after(&mut timer, false), 1000);
        timer.hear(ms(0));
        for _ in 0..100 {
            timer.measure(ms(0), ms(2));
        }
        assert_eq!(after(&mut timer, false), 20);
    }

    #[test]
    fn sooner_than_the_shortest_round_trip_is_no_answer() {
        let mut timer = HopTimer::new();
        assert!(!timer.is_plausible(ms(0), ms(1000)));
        timer.measure(ms(0), ms(10));
        assert!(!timer.is_plausible(ms(100), ms(109)));
        assert!(timer.is_plausible(ms(100), ms(110)));
    }
}
