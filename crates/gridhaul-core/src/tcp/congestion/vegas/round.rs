//! Round trips: which acknowledgement ends one, and what it says about the queue.

use gridhaul_scenario::units::{Duration, Instant};

use super::super::Ack;

/// The round trip under way, and the least one seen.
#[derive(Debug, Clone)]
pub(super) struct Round {
    times: Times,
    /// "BaseRTT": the round trip of a segment that meets no queue (section 3.2). Zero: unknown.
    base: Duration,
    /// The round trip ends when the segment that begins here is acknowledged: low half of the
    /// position, from which what is out is never far.
    mark: u32,
    /// Twice the number of verdicts, and one more while slow start grows: a bit that costs no room.
    verdicts: u32,
}

/// What is known of the length of the round trip under way.
#[derive(Debug, Clone, Copy)]
enum Times {
    /// It has not begun.
    Unknown,
    /// It begins with the next acknowledgement.
    Due,
    /// When it began: nothing was measured yet.
    Since(Instant),
    /// Measurements within it.
    Measured { sum_ns: u64, samples: u32 },
}

/// What a finished round trip says. Rates are relative, so only the quotient of times matters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    /// What is out, in bytes: the window.
    out: f64,
    /// What was sent in the round trip, in bytes.
    sent: f64,
    /// Base round trip as a share of the mean one.
    base_share: f64,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { times: Times::Unknown, base: Duration::ZERO, mark: 0, verdicts: 1 }
    }

    /// Whether slow start grows in this round trip.
    pub(super) const fn grows(&self) -> bool {
        self.verdicts & 1 == 1
    }

    /// After a timeout: the next acknowledgement begins a round trip, in which slow start grows.
    pub(super) const fn start_over(&mut self) {
        self.times = Times::Due;
        self.verdicts |= 1;
    }

    /// Slow start grows in every other round trip.
    pub(super) const fn alternate(&mut self) {
        self.verdicts ^= 1;
    }

    /// LossClassifications so far.
    pub(super) const fn verdicts(&self) -> u32 {
        self.verdicts / 2
    }

    /// Data is sent: the first round trip begins with the first call.
    #[inline]
    pub(super) fn begin(&mut self, now: Instant) {
        if matches!(self.times, Times::Unknown) {
            self.times = Times::Since(now);
        }
    }

    /// A measurement within the round trip.
    #[inline]
    pub(super) fn measure(&mut self, rtt: Duration) {
        let (sum_ns, samples) = match self.times {
            Times::Measured { sum_ns, samples } => (sum_ns, samples),
            Times::Unknown | Times::Due | Times::Since(_) => (0, 0),
        };
        let sum_ns = sum_ns.saturating_add(rtt.as_nanos());
        self.times = Times::Measured { sum_ns, samples: samples + 1 };
        self.lower_base(rtt);
    }

    /// The verdict, if this acknowledgement ends the round trip; then the next one begins.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> Option<Verdict> {
        if matches!(self.times, Times::Due) {
            self.restart(ack);
            return None;
        }
        if (ack.una as u32).wrapping_sub(self.mark).cast_signed() <= 0 {
            return None;
        }
        // What is sent next, without what is lost and waits to be sent again: ns-2 goes back with
        // its next sequence number at a timeout.
        let next = ack.una + ack.in_flight;
        let sent = (next as u32).wrapping_sub(self.mark);
        let verdict = self.mean(ack.now).filter(|mean| !mean.is_zero()).map(|mean| {
            // ns-2: with a single segment in transit nothing queues, so a longer path shows.
            if sent <= ack.mss || self.base.is_zero() {
                self.base = mean;
            }
            self.lower_base(mean);
            Verdict {
                // What was just acknowledged belongs to the window that is judged: a segment, or all
                // that a delayed acknowledgement covers where the stack counts so (Linux).
                out: (ack.in_flight + u64::from(ack.avoidance_credit)) as f64,
                sent: f64::from(sent),
                base_share: self.base.as_nanos() as f64 / mean.as_nanos() as f64,
            }
        });
        self.restart(ack);
        self.verdicts = self.verdicts.wrapping_add(2 * u32::from(verdict.is_some()));
        verdict
    }

    /// The next round trip begins with this acknowledgement.
    pub(super) fn restart(&mut self, ack: &Ack) {
        self.mark = (ack.una + ack.in_flight) as u32;
        self.times = Times::Since(ack.now);
    }

    /// Mean round trip: of the measurements, or the time since the mark without any (ns-2), but
    /// not where that is below the base: after a needless timeout it is far below any round trip,
    /// and ns-2's base is wrong from then on.
    fn mean(&self, now: Instant) -> Option<Duration> {
        match self.times {
            Times::Unknown | Times::Due => None,
            Times::Since(marked_at) => {
                Some(now.since(marked_at)).filter(|since| *since >= self.base)
            }
            Times::Measured { sum_ns, samples } => {
                Some(Duration::from_nanos(sum_ns / u64::from(samples)))
            }
        }
    }

    #[inline]
    fn lower_base(&mut self, rtt: Duration) {
        if !rtt.is_zero() && (self.base.is_zero() || rtt < self.base) {
            self.base = rtt;
        }
    }
}

impl Verdict {
    /// Section 3.2: Diff = Expected - Actual, with Expected = window / BaseRTT and Actual =
    /// sent / RTT, times BaseRTT: the segments in the queue, rounded to whole ones (ns-2).
    pub(super) fn queued_segments(&self, mss: f64) -> f64 {
        ((self.out - self.sent * self.base_share) / mss + 0.5).floor()
    }
}
