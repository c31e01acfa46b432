//! What is counted of the flows of a row, from the start of the run.

use gridhaul_core::tcp::Connection;
use gridhaul_scenario::units::Instant;

/// The account of a row: sums over its flows, since a million of them cannot each have one.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounters {
    /// Wire bytes of packets that reached the `to` ends.
    pub arrived_bytes: u64,
    /// Wire bytes of packets that came back to the `from` ends.
    pub returned_bytes: u64,
    /// Segments that did.
    pub returned: u64,
    /// Messages that were ready in the measured time.
    pub due: u64,
    /// Datagrams sent and lost.
    pub datagrams: u64,
    pub datagrams_lost: u64,
    /// Congestion windows added up and integrated over time, in byte nanoseconds, up to
    /// `cwnd_since`.
    cwnd_integral: u128,
    cwnd_since: Instant,
    cwnd: u64,
}

/// What the senders of a row have counted.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderSums {
    pub segments: u64,
    pub retransmissions: u64,
    pub fast_retransmits: u64,
    pub timeouts: u64,
    pub rtt_sum_ns: u64,
    pub rtt_count: u64,
    /// Whether a congestion control counts what it computes, and what it has.
    pub has_estimator_counters: bool,
    pub updates: u64,
    pub evaluations: u64,
}

impl RowCounters {
    /// The congestion window of one flow may have changed; `known` is what it was.
    #[inline]
    pub(crate) fn note_cwnd(&mut self, now: Instant, known: &mut u32, cwnd: u32) {
        if cwnd != *known {
            self.cwnd_integral = self.cwnd_integral_at(now);
            self.cwnd_since = now;
            self.cwnd = self.cwnd - u64::from(*known) + u64::from(cwnd);
            *known = cwnd;
        }
    }

    /// Congestion windows integrated up to `now`.
    pub(crate) fn cwnd_integral_at(&self, now: Instant) -> u128 {
        let held = now.since(self.cwnd_since).as_nanos();
        self.cwnd_integral + u128::from(self.cwnd) * u128::from(held)
    }
}

impl SenderSums {
    /// Adds what the sender of the `from` end has counted.
    pub(crate) fn add(&mut self, ends: &[Connection; 2]) {
        let Some(sender) = ends[0].sender() else { return };
        let stats = sender.stats();
        self.segments += stats.segments;
        self.retransmissions += u64::from(stats.retransmissions);
        self.fast_retransmits += u64::from(stats.fast_retransmits);
        self.timeouts += u64::from(stats.timeouts);
        self.rtt_sum_ns += stats.rtt_sum_ns;
        self.rtt_count += u64::from(stats.rtt_count);
        if let Some(counters) = sender.estimator_counters() {
            self.has_estimator_counters = true;
            self.updates += u64::from(counters.updates.unwrap_or(stats.rtt_count));
            self.evaluations += u64::from(counters.evaluations);
        }
    }

    /// What was added since an earlier time.
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            segments: self.segments - earlier.segments,
            retransmissions: self.retransmissions - earlier.retransmissions,
            fast_retransmits: self.fast_retransmits - earlier.fast_retransmits,
            timeouts: self.timeouts - earlier.timeouts,
            rtt_sum_ns: self.rtt_sum_ns - earlier.rtt_sum_ns,
            rtt_count: self.rtt_count - earlier.rtt_count,
            has_estimator_counters: self.has_estimator_counters,
            updates: self.updates - earlier.updates,
            evaluations: self.evaluations - earlier.evaluations,
        }
    }
}
