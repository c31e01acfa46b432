//! The local retransmission timer: RFC 6298 over one hop.

use gridhaul_scenario::units::{Duration, Instant};

/// Round-trip time of the hop, and the timer of the local retransmission.
#[derive(Debug, Clone)]
pub(super) struct HopTimer {
    srtt_ns: u64,
    rttvar_ns: u64,
    /// Minimum round-trip time; [`u64::MAX`] before the first sample.
    min_ns: u64,
    backoff: u8,
    deadline: Instant,
    /// Time of the last acknowledgement of new data.
    last_progress: Instant,
}

/// RFC 6298, section 2.1: before the first round-trip time sample.
const INITIAL_RTO: Duration = Duration::from_secs(1);

/// RFC 6298, section 2.4, recommends one second end to end. On a single hop, twice the 10 ms of a
/// coarse host clock suffices to tolerate scheduling jitter of the host.
const MIN_RTO: Duration = Duration::from_millis(20);

/// RFC 6298, section 2.5, allows a maximum of 60 s or more. One segment per second over a hop that
/// is down costs little, and the connection resumes soon after the hop is up again.
const MAX_RTO: Duration = Duration::from_secs(1);

/// RFC 8985, section 7.2 (`TLP.max_ack_delay`, 200 ms): the delay of the acknowledgement of a
/// single outstanding segment.
const ACK_DELAY: Duration = Duration::from_millis(200);

/// R2 of RFC 1122, section 4.2.3.5, after which the proxy stops retransmitting.
const R2: Duration = Duration::from_secs(100);

impl HopTimer {
    pub(super) const fn new() -> Self {
        Self {
            srtt_ns: 0,
            rttvar_ns: 0,
            min_ns: u64::MAX,
            backoff: 0,
            deadline: Instant::NEVER,
            last_progress: Instant::ZERO,
        }
    }

    pub(super) const fn deadline(&self) -> Instant {
        self.deadline
    }
    pub(super) fn stop(&mut self) {
        self.deadline = Instant::NEVER;
    }
    pub(super) fn is_running(&self) -> bool {
        self.deadline != Instant::NEVER
    }
    /// Starts or restarts the timer. `is_single`: only one segment is outstanding.
    pub(super) fn start(&mut self, now: Instant, is_single: bool) {
        self.deadline = now + self.timeout(is_single);
    }

    /// New data was acknowledged, or the first segment became outstanding.
    pub(super) fn on_progress(&mut self, now: Instant) {
        self.last_progress = now;
        self.backoff = 0;
    }

    /// The timer has expired: the timeout doubles (RFC 6298, section 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    /// Whether the timer has expired twice since the last progress.
    pub(super) const fn has_timed_out_twice(&self) -> bool {
        self.backoff > 1
    }

    /// Whether the last progress is longer ago than R2.
    pub(super) fn exceeds_r2(&self, now: Instant) -> bool {
        now.since(self.last_progress) >= R2
    }

    /// Adds a round-trip time sample: a segment that was sent once, at `sent`, was acknowledged.
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

    /// Whether an acknowledgement at `now` may belong to a segment sent at `sent`: at least the
    /// minimum round-trip time has passed (RFC 8985, section 6.2, step 2).
    pub(super) fn is_plausible(&self, sent: Instant, now: Instant) -> bool {
        self.min_ns != u64::MAX && now.since(sent).as_nanos() >= self.min_ns
    }

    fn timeout(&self, is_single: bool) -> Duration {
        let measured = self.min_ns != u64::MAX;
        // RFC 6298, 2.3: SRTT + 4 * RTTVAR.
        let base = if measured {
            Duration::from_nanos((self.srtt_ns + 4 * self.rttvar_ns).max(MIN_RTO.as_nanos()))
        } else {
            INITIAL_RTO
        };
        let allowance = if is_single && measured { ACK_DELAY } else { Duration::default() };
        ((base + allowance) * (1 << self.backoff)).min(MAX_RTO.max(base + allowance))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn timeouts_follow_rfc_6298() {
        let mut timer = HopTimer::new();
        let after = |timer: &mut HopTimer, is_single| {
            timer.start(ms(0), is_single);
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
        timer.on_progress(ms(0));
        for _ in 0..100 {
            timer.measure(ms(0), ms(2));
        }
        assert_eq!(after(&mut timer, false), 20);
    }

    #[test]
    fn an_acknowledgement_before_the_minimum_round_trip_time_is_implausible() {
        let mut timer = HopTimer::new();
        assert!(!timer.is_plausible(ms(0), ms(1000)));
        timer.measure(ms(0), ms(10));
        assert!(!timer.is_plausible(ms(100), ms(109)));
        assert!(timer.is_plausible(ms(100), ms(110)));
    }
}
