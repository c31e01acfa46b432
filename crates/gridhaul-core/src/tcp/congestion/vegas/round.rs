//! Round trips: which acknowledgement ends one, and what it says about the queue.

use gridhaul_scenario::units::{Duration, Instant};

use super::super::Ack;

/// The round trip under way, and the least one seen.
#[derive(Debug, Clone)]
pub(super) struct Round {
    timing: RoundTiming,
    /// "BaseRTT": the round trip of a segment that meets no queue (section 3.2). Zero: unknown.
    base_rtt: Duration,
    /// The round trip ends when the segment that begins here is acknowledged: low half of the position, from
    /// which what is outstanding is never far.
    round_end: u32,
    /// Twice the number of evaluated_rounds, and one more while slow start grows: a bit that costs no room.
    evaluated_rounds: u32,
}

/// What is known of the length of the round trip under way.
#[derive(Debug, Clone, Copy)]
enum RoundTiming {
    /// It has not begun.
    Unknown,
    /// It begins with the next acknowledgement.
    Due,
    /// When it began: nothing was measured yet.
    Since(Instant),
    /// Measurements within it.
    Measured { sum_ns: u64, samples: u32 },
}

/// What a finished round trip says. Rates are relative, so only the quotient of timing matters.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundResult {
    /// What is outstanding, in bytes: the window.
    out: f64,
    /// What was sent in the round trip, in bytes.
    sent: f64,
    /// Base round trip as a share of the mean one.
    base_share: f64,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self {
            timing: RoundTiming::Unknown,
            base_rtt: Duration::ZERO,
            round_end: 0,
            evaluated_rounds: 1,
        }
    }

    /// Whether slow start grows in this round trip.
    pub(super) const fn grows(&self) -> bool {
        self.evaluated_rounds & 1 == 1
    }

    /// After a timeout: the next acknowledgement begins a round trip, in which slow start grows.
    pub(super) const fn restart_after_timeout(&mut self) {
        self.timing = RoundTiming::Due;
        self.evaluated_rounds |= 1;
    }

    /// Slow start grows in every other round trip.
    pub(super) const fn alternate(&mut self) {
        self.evaluated_rounds ^= 1;
    }

    /// LossClassifications so far.
    pub(super) const fn evaluated_rounds(&self) -> u32 {
        self.evaluated_rounds / 2
    }

    /// Data is sent: the first round trip begins with the first call.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        if matches!(self.timing, RoundTiming::Unknown) {
            self.timing = RoundTiming::Since(now);
        }
    }

    /// A measurement within the round trip.
    #[inline]
    pub(super) fn measure(&mut self, rtt: Duration) {
        let (sum_ns, samples) = match self.timing {
            RoundTiming::Measured { sum_ns, samples } => (sum_ns, samples),
            RoundTiming::Unknown | RoundTiming::Due | RoundTiming::Since(_) => (0, 0),
        };
        let sum_ns = sum_ns.saturating_add(rtt.as_nanos());
        self.timing = RoundTiming::Measured { sum_ns, samples: samples + 1 };
        self.lower_base_rtt(rtt);
    }

    /// The result, if this acknowledgement ends the round trip; then the next one begins.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<RoundResult> {
        if matches!(self.timing, RoundTiming::Due) {
            self.restart(ack);
            return None;
        }
        if (ack.una as u32).wrapping_sub(self.round_end).cast_signed() <= 0 {
            return None;
        }
        // What is sent next, without what is lost and waits to be sent timed_out_before: ns-2 goes back with
        // its next sequence number at a timeout.
        let next = ack.una + ack.in_flight;
        let sent = (next as u32).wrapping_sub(self.round_end);
        let result = self.mean(ack.now).filter(|mean| !mean.is_zero()).map(|mean| {
            // ns-2: with a single segment in transit nothing queues, so a longer path shows.
            if sent <= ack.mss || self.base_rtt.is_zero() {
                self.base_rtt = mean;
            }
            self.lower_base_rtt(mean);
            RoundResult {
                // What was just acknowledged belongs to the window that is judged: a segment, or all
                // that a delayed acknowledgement covers where the stack counts so (Linux).
                out: (ack.in_flight + u64::from(ack.avoidance_credit)) as f64,
                sent: f64::from(sent),
                base_share: self.base_rtt.as_nanos() as f64 / mean.as_nanos() as f64,
            }
        });
        self.restart(ack);
        self.evaluated_rounds = self.evaluated_rounds.wrapping_add(2 * u32::from(result.is_some()));
        result
    }

    /// The next round trip begins with this acknowledgement.
    pub(super) fn restart(&mut self, ack: &Ack) {
        self.round_end = (ack.una + ack.in_flight) as u32;
        self.timing = RoundTiming::Since(ack.now);
    }

    /// Mean round trip: of the measurements, or the time since the round_end without any (ns-2), but not
    /// where that is below the base_rtt: after a spurious timeout it is far below any round trip, and ns-2's
    /// base_rtt is wrong from then on.
    fn mean(&self, now: Instant) -> Option<Duration> {
        match self.timing {
            RoundTiming::Unknown | RoundTiming::Due => None,
            RoundTiming::Since(marked_at) => {
                Some(now.since(marked_at)).filter(|since| *since >= self.base_rtt)
            }
            RoundTiming::Measured { sum_ns, samples } => {
                Some(Duration::from_nanos(sum_ns / u64::from(samples)))
            }
        }
    }

    #[inline]
    fn lower_base_rtt(&mut self, rtt: Duration) {
        if !rtt.is_zero() && (self.base_rtt.is_zero() || rtt < self.base_rtt) {
            self.base_rtt = rtt;
        }
    }
}

impl RoundResult {
    /// Section 3.2: Diff = Expected - Actual, with Expected = window / BaseRTT and Actual =
    /// sent / RTT, timing BaseRTT: the segments in the queue, rounded to whole ones (ns-2).
    pub(super) fn queued_segments(&self, mss: f64) -> f64 {
        ((self.out - self.sent * self.base_share) / mss + 0.5).floor()
    }
}
