//! Counters of the data packets on a network path, from one end of the connections of a row to the
//! other.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Duration;

/// Counters of the data packets of a row since the start of the run. Acknowledgements and other
/// packets without data are not counted, nor are packets sent by the `to` end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets sent, including those of proxies. Counters that change together are not neighbours:
    /// the compiler would use vector additions, which take longer.
    pub sent: u64,
    /// Packets that arrived.
    pub arrived: u64,
    /// Bytes that the `from` ends sent, including headers; without the packets of proxies.
    pub sent_bytes: u64,
    /// Sum of the one-way delays of the packets that arrived.
    pub delay_ns: u64,
    /// Packets dropped or lost.
    pub lost: u64,
    /// Messages that have left the buffer of the aggregator at the end of the path.
    pub aggregated: u64,
    /// Sum of their waiting times in that buffer.
    pub aggregator_wait_ns: u64,
}

impl PathCounters {
    /// A `from` end sends a packet of this size.
    #[inline]
    pub fn on_sent(&mut self, wire_bytes: u32) {
        self.sent += 1;
        self.sent_bytes += u64::from(wire_bytes);
    }

    /// A proxy sends a packet of its own: it may be lost, but is no load of the sender.
    pub const fn on_sent_by_proxy(&mut self) {
        self.sent += 1;
    }

    /// A packet has arrived with this one-way delay.
    #[inline]
    pub fn on_arrived(&mut self, delay: Duration) {
        self.arrived += 1;
        self.delay_ns += delay.as_nanos();
    }

    /// A message has left the buffer of the aggregator at the end of the path.
    pub fn on_aggregator_wait(&mut self, wait: Duration) {
        self.aggregated += 1;
        self.aggregator_wait_ns += wait.as_nanos();
    }

    /// The difference to an earlier state.
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

    /// Share of the data packets dropped or lost.
    #[must_use]
    pub fn loss(&self) -> Option<f64> {
        // Limited to 1: packets lost during the measured time may have been sent before it.
        (self.sent > 0).then(|| (self.lost as f64 / self.sent as f64).min(1.0))
    }

    /// Mean one-way delay, plus the mean wait in the aggregator's buffer, in seconds.
    #[must_use]
    pub fn delay(&self) -> Option<f64> {
        let waited = self.aggregator_wait_ns as f64 / self.aggregated.max(1) as f64;
        (self.arrived > 0).then(|| (self.delay_ns as f64 / self.arrived as f64 + waited) / 1e9)
    }

    /// The metrics of one path over `secs` of measured time.
    pub fn metrics(&self, secs: f64, tcp: bool, into: &mut Metrics) {
        into.push((Metric::OfferedLoad, self.sent_bytes as f64 * 8.0 / secs));
        if !tcp {
            return;
        }
        into.extend(self.loss().map(|loss| (Metric::SegmentLoss, loss)));
        into.extend(self.delay().map(|delay| (Metric::SegmentDelayMean, delay)));
    }

    /// The metrics of all consecutive paths of the data, in order.
    pub fn totals(paths: &[Self], into: &mut Metrics) {
        // After a path that loses every packet, the loss of later paths is unknown and irrelevant.
        let loses_all = paths.iter().map_while(Self::loss).any(|loss| loss >= 1.0);
        let delivered: Option<f64> = if loses_all {
            Some(0.0)
        } else {
            paths.iter().map(|path| path.loss().map(|loss| 1.0 - loss)).product()
        };
        let delay: Option<f64> = paths.iter().map(Self::delay).sum();
        into.extend(delivered.map(|delivered| (Metric::SegmentLossTotal, 1.0 - delivered)));
        into.extend(delay.map(|delay| (Metric::SegmentDelayTotal, delay)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_multiply_delivery_ratios_and_add_delays() {
        let none = PathCounters::default();
        let first = PathCounters { sent: 10, lost: 5, arrived: 5, delay_ns: 5_000_000_000, ..none };
        let second = PathCounters { sent: 4, lost: 1, arrived: 2, delay_ns: 1_000_000_000, ..none };
        let mut metrics = Vec::new();
        PathCounters::totals(&[first, second], &mut metrics);
        // 1 - 0.5 * 0.75, and 1 s + 0.5 s.
        assert_eq!(metrics, [(Metric::SegmentLossTotal, 0.625), (Metric::SegmentDelayTotal, 1.5)]);
        metrics.clear();
        PathCounters::totals(&[first, PathCounters::default()], &mut metrics);
        assert_eq!(metrics, [], "the loss of a path without data is unknown");
        let dead = PathCounters { lost: 10, arrived: 0, ..first };
        PathCounters::totals(&[dead, PathCounters::default()], &mut metrics);
        assert_eq!(metrics, [(Metric::SegmentLossTotal, 1.0)], "no data reach the second path");
    }
}
