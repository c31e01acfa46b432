//! How the data packets of a row cross its own stage: from one end of its connections to the other.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Duration;

/// What is counted of the data packets of a row, from the start of the run. Acknowledgements and
/// other packets without data are left out, and so is what the `to` end sends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets sent.
    pub sent: u64,
    /// Wire bytes of those sent.
    pub sent_bytes: u64,
    /// Of these, dropped or lost.
    pub lost: u64,
    /// Of these, arrived.
    pub arrived: u64,
    /// Time on the way of those that arrived, added up.
    pub delay_ns: u64,
    /// Messages that have left a collector's buffer at the end of the stage, and their wait there.
    pub aggregated: u64,
    /// Their wait.
    pub aggregator_wait_ns: u64,
}

impl PathCounters {
    /// A packet of so many bytes is sent.
    #[inline]
    pub fn on_sent(&mut self, wire_bytes: u32) {
        self.sent += 1;
        self.sent_bytes += u64::from(wire_bytes);
    }

    /// A packet has arrived after this time.
    #[inline]
    pub fn on_arrived(&mut self, delay: Duration) {
        self.arrived += 1;
        self.delay_ns += delay.as_nanos();
    }

    /// A message has left the buffer of the collector where the stage ends.
    pub fn on_aggregator_wait(&mut self, waited: Duration) {
        self.aggregated += 1;
        self.aggregator_wait_ns += waited.as_nanos();
    }

    /// What has been added since an earlier state.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            sent_bytes: self.sent_bytes - earlier.sent_bytes,
            lost: self.lost - earlier.lost,
            arrived: self.arrived - earlier.arrived,
            delay_ns: self.delay_ns - earlier.delay_ns,
            aggregated: self.aggregated - earlier.aggregated,
            aggregator_wait_ns: self.aggregator_wait_ns - earlier.aggregator_wait_ns,
        }
    }

    /// Share of the data packets that was dropped or lost.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        // Some of those lost were sent before the measured time, as some of those sent are lost
        // after it.
        (self.sent > 0).then(|| (self.lost as f64 / self.sent as f64).min(1.0))
    }

    /// Mean time on the way and in the buffer at its end in seconds.
    #[must_use]
    pub fn delay(&self) -> Option<f64> {
        let waited = self.aggregator_wait_ns as f64 / self.aggregated.max(1) as f64;
        (self.arrived > 0).then(|| (self.delay_ns as f64 / self.arrived as f64 + waited) / 1e9)
    }

    /// The metrics of one stage, over `secs` of measured time.
    pub fn metrics(&self, secs: f64, tcp: bool, into: &mut Metrics) {
        into.push((Metric::OfferedLoad, self.sent_bytes as f64 * 8.0 / secs));
        if !tcp {
            return;
        }
        into.extend(self.loss().map(|loss| (Metric::SegmentLoss, loss)));
        into.extend(self.delay().map(|delay| (Metric::SegmentDelayMean, delay)));
    }

    /// The metrics of all stages that the data crosses, in their order.
    pub fn totals(stages: &[Self], into: &mut Metrics) {
        // What loses everything leaves nothing to be lost after it.
        let everything = stages.iter().map_while(Self::loss).any(|loss| loss >= 1.0);
        let kept: Option<f64> = if everything {
            Some(0.0)
        } else {
            stages.iter().map(|stage| stage.loss().map(|loss| 1.0 - loss)).product()
        };
        let delay: Option<f64> = stages.iter().map(Self::delay).sum();
        into.extend(kept.map(|kept| (Metric::SegmentLossTotal, 1.0 - kept)));
        into.extend(delay.map(|delay| (Metric::SegmentDelayTotal, delay)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_multiply_what_is_kept_and_add_the_delays() {
        let none = PathCounters::default();
        let first = PathCounters { sent: 10, lost: 5, arrived: 5, delay_ns: 5_000_000_000, ..none };
        let second = PathCounters { sent: 4, lost: 1, arrived: 2, delay_ns: 1_000_000_000, ..none };
        let mut metrics = Vec::new();
        PathCounters::totals(&[first, second], &mut metrics);
        // 1 - 0.5 * 0.75, and 1 s + 0.5 s.
        assert_eq!(metrics, [(Metric::SegmentLossTotal, 0.625), (Metric::SegmentDelayTotal, 1.5)]);
        metrics.clear();
        PathCounters::totals(&[first, PathCounters::default()], &mut metrics);
        assert_eq!(metrics, [], "a stage without data is not known");
        let dead = PathCounters { lost: 10, arrived: 0, ..first };
        PathCounters::totals(&[dead, PathCounters::default()], &mut metrics);
        assert_eq!(metrics, [(Metric::SegmentLossTotal, 1.0)], "nothing reaches the second stage");
    }
}
