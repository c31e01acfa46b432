//! Counters of the flows of a row, from the start of the run.

use gridhaul_core::tcp::Connection;
use gridhaul_scenario::units::Instant;

/// The counters of a row: sums over its flows, because counters for each of a million flows need
/// too much memory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RowCounters {
    /// Bytes with headers of packets that reached the `to` ends.
    pub arrived_bytes: u64,
    /// Bytes with headers of packets that reached the `from` ends. The compiler would add to this
    /// and to the segments with one vector addition, which takes longer, if they were neighbours.
    pub reverse_bytes: u64,
    /// Messages that were ready in the measured time.
    pub due: u64,
    /// Segments that reached the `from` ends.
    pub reverse_segments: u64,
    /// Datagrams sent.
    pub datagrams: u64,
    /// Lost datagrams, of those with messages that were ready in the measured time.
    pub datagrams_lost: u64,
    /// Messages that arrived altered, of those that were ready in the measured time.
    pub altered: u64,
    /// Whether an attacker may alter messages: only then the metrics include their number.
    pub may_be_altered: bool,
    /// The sum of the congestion windows integrated over time up to `cwnd_since`, in byte
    /// nanoseconds.
    cwnd_integral: u128,
    cwnd_since: Instant,
    cwnd: u64,
}

/// Sums over the senders of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderSums {
    pub segments: u64,
    pub retransmissions: u64,
    pub fast_retransmits: u64,
    pub timeouts: u64,
    pub rtt_sum_ns: u64,
    pub rtt_count: u64,
    /// Whether a congestion control algorithm has estimator counters, and their sums.
    pub has_estimator_counters: bool,
    pub updates: u64,
    pub evaluations: u64,
    /// Whether a stack has ECN, and the sums of the data segments that arrived with a congestion
    /// mark and of the reductions of windows for marks.
    pub has_ecn: bool,
    pub congestion_marks: u64,
    pub ecn_reductions: u64,
}

impl RowCounters {
    /// The congestion window of one flow may have changed; `known` is its previous value.
    #[inline]
    pub(crate) fn note_cwnd(&mut self, now: Instant, known: &mut u32, cwnd: u32) {
        if cwnd != *known {
            self.cwnd_integral = self.cwnd_integral_at(now);
            self.cwnd_since = now;
            self.cwnd = self.cwnd - u64::from(*known) + u64::from(cwnd);
            *known = cwnd;
        }
    }

    /// The sum of the congestion windows integrated up to `now`.
    pub(crate) fn cwnd_integral_at(&self, now: Instant) -> u128 {
        let elapsed = now.since(self.cwnd_since).as_nanos();
        self.cwnd_integral + u128::from(self.cwnd) * u128::from(elapsed)
    }
}

impl SenderSums {
    /// Adds the counters of the sender at the `from` end.
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
        if ends[0].params().ecn {
            self.has_ecn = true;
            self.congestion_marks += ends[1].congestion_marks();
            self.ecn_reductions += u64::from(sender.ecn_reductions());
        }
    }

    /// Adds another sum.
    pub(crate) const fn add_sums(&mut self, other: &Self) {
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.fast_retransmits += other.fast_retransmits;
        self.timeouts += other.timeouts;
        self.rtt_sum_ns += other.rtt_sum_ns;
        self.rtt_count += other.rtt_count;
        self.has_estimator_counters |= other.has_estimator_counters;
        self.updates += other.updates;
        self.evaluations += other.evaluations;
        self.has_ecn |= other.has_ecn;
        self.congestion_marks += other.congestion_marks;
        self.ecn_reductions += other.ecn_reductions;
    }

    /// The difference to an earlier sum.
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
            has_ecn: self.has_ecn,
            congestion_marks: self.congestion_marks - earlier.congestion_marks,
            ecn_reductions: self.ecn_reductions - earlier.ecn_reductions,
        }
    }
}
