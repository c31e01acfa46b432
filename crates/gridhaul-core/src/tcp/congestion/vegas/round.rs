//! Round trips of Vegas: their boundaries and the estimate of the backlog.

use gridhaul_scenario::units::{Duration, Instant};

use super::progress::{Ns2Startup, Progress};
use crate::rounding::floor;
use crate::tcp::event::Ack;

/// The current round trip, and the minimum of all.
#[derive(Debug, Clone)]
pub(super) struct Round {
    timing: RoundTiming,
    /// "BaseRTT": the round trip of a segment that meets no queue (section 3.2). Zero: unknown.
    base_rtt: Duration,
    /// Low half of the position whose acknowledgement ends the round trip; outstanding data is
    /// always close to it.
    round_end: u32,
    pub(super) progress: Progress,
}

/// Timing of the current round trip.
#[derive(Debug, Clone, Copy)]
enum RoundTiming {
    /// The round trip has not started.
    Unknown,
    /// The round trip starts with the next acknowledgement.
    Due,
    /// Start time of a round trip without measurements.
    Since(Instant),
    /// Measurements in the round trip.
    Measured { sum_ns: u64, samples: u32 },
}

/// Result of a completed round trip. Rates are relative, so only the quotient of times matters.
#[derive(Debug, Clone, Copy)]
pub(super) struct RoundResult {
    /// Outstanding data in bytes: the window.
    out: f64,
    /// Data sent in the round trip, in bytes.
    sent: f64,
    /// Base round trip as a share of the mean one.
    base_share: f64,
}

impl Round {
    pub(super) const fn new(startup: Ns2Startup) -> Self {
        Self {
            timing: RoundTiming::Unknown,
            base_rtt: Duration::ZERO,
            round_end: 0,
            progress: Progress::new(startup),
        }
    }

    /// After a timeout: the next acknowledgement starts a round trip in which slow start grows.
    pub(super) const fn restart_after_timeout(&mut self) {
        self.timing = RoundTiming::Due;
        self.progress.set_grows(true);
    }

    /// Data is sent: the first call starts the first round trip.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        if matches!(self.timing, RoundTiming::Unknown) {
            self.timing = RoundTiming::Since(now);
        }
    }

    /// Adds a measurement in the current round trip.
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

    /// The result, if this acknowledgement ends the round trip; the next round trip then starts.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<RoundResult> {
        if matches!(self.timing, RoundTiming::Due) {
            self.restart(ack);
            return None;
        }
        if (ack.una as u32).wrapping_sub(self.round_end).cast_signed() <= 0 {
            return None;
        }
        // The next position, excluding lost segments that await retransmission: ns-2 sets its next
        // sequence number back at a timeout.
        let next = ack.una + ack.in_flight;
        let sent = (next as u32).wrapping_sub(self.round_end);
        let result = self.mean(ack).filter(|mean| !mean.is_zero()).map(|mean| {
            // ns-2: with a single segment in transit no queue builds up, so a longer round trip
            // indicates a longer path.
            if sent <= ack.mss || self.base_rtt.is_zero() {
                self.base_rtt = mean;
            }
            self.lower_base_rtt(mean);
            RoundResult {
                // The data just acknowledged belongs to the evaluated window: one segment, or all
                // segments that a delayed acknowledgement covers where the stack counts so (Linux).
                out: (ack.in_flight + u64::from(ack.avoidance_credit)) as f64,
                sent: f64::from(sent),
                base_share: self.base_rtt.as_nanos() as f64 / mean.as_nanos() as f64,
            }
        });
        self.restart(ack);
        if result.is_some() {
            self.progress.count_round();
        }
        result
    }

    /// Starts the next round trip with this acknowledgement.
    pub(super) fn restart(&mut self, ack: &Ack) {
        self.round_end = (ack.una + ack.in_flight) as u32;
        self.timing = RoundTiming::Since(ack.now);
    }

    /// Mean round trip of the measurements, or the time since the start without any (ns-2).
    ///
    /// That time may be below the base round trip in two cases. Either the acknowledged segment was
    /// sent within the round trip: the base was measured over a longer queue, as at the start of a
    /// connection through a queue that drains, and the time is a new minimum. Or the segment was
    /// sent before: the acknowledgement is that of an original after a spurious timeout, the time
    /// is far below any round trip, and ns-2's base is wrong from then on; this time is not used.
    fn mean(&self, ack: &Ack) -> Option<Duration> {
        match self.timing {
            RoundTiming::Unknown | RoundTiming::Due => None,
            RoundTiming::Since(marked_at) => {
                let since = ack.now.since(marked_at);
                let sent_within = ack.rtt.is_some_and(|rtt| rtt <= since);
                (sent_within || since >= self.base_rtt).then_some(since)
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
    /// Section 3.2: Diff = Expected - Actual, with Expected = window / BaseRTT and Actual = sent /
    /// RTT, times BaseRTT: the segments in the queue, rounded (ns-2).
    pub(super) fn queued_segments(&self, mss: f64) -> f64 {
        floor((self.out - self.sent * self.base_share) / mss + 0.5)
    }
}
