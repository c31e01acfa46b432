//! Handshake times of the connections of a row.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Duration;

use super::MessageDelays;

/// The handshakes of a row since the start of the run, warm-up included, when most connections
/// open.
#[derive(Debug, Clone, Default)]
pub struct HandshakeTimes {
    times: MessageDelays,
    failed: u64,
}

impl HandshakeTimes {
    /// A connection is established at its active end, this long after the first SYN.
    pub fn on_opened(&mut self, took: Duration) {
        self.times.record(took);
    }

    /// A connection was refused or aborted, or had retransmitted its SYN and was still not
    /// established at the end of the run.
    pub fn on_failed(&mut self) {
        self.failed += 1;
    }

    /// Adds the numbers of opened and failed connections, and the handshake times.
    pub fn metrics(&self, into: &mut Metrics) {
        let opened = self.times.count();
        into.push((Metric::ConnectionsOpened, opened as f64));
        into.push((Metric::ConnectionsFailed, self.failed as f64));
        into.extend(self.times.mean().map(|mean| (Metric::HandshakeTimeMean, mean)));
        // If more than 2 % failed, the percentile is unknown.
        let p98 = self.times.quantile_with(0.98, |_| self.failed);
        into.extend(p98.map(|p98| (Metric::HandshakeTimeP98, p98)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(opened: u64, failed: u64) -> Metrics {
        let mut openings = HandshakeTimes::default();
        (1..=opened).for_each(|tick| openings.on_opened(Duration::from_millis(tick)));
        (0..failed).for_each(|_| openings.on_failed());
        let mut metrics = Vec::new();
        openings.metrics(&mut metrics);
        metrics
    }

    #[test]
    fn percentiles_include_failed_connections() {
        // Delays from 1 ms to 100 ms: the 98th percentile of 100 is the 98th.
        let all = metrics(100, 0);
        assert_eq!(all[0], (Metric::ConnectionsOpened, 100.0));
        assert!((all[2].1 - 0.0505).abs() < 1e-9, "{all:?}");
        assert!((all[3].1 - 0.098).abs() < 2e-4, "{all:?}");
        // Of 101, it is the 99th.
        assert!((metrics(100, 1)[3].1 - 0.099).abs() < 2e-4);
        // Of 103, it would be the 101st, which failed.
        let failed = metrics(100, 3);
        assert_eq!((failed[1], failed.len()), ((Metric::ConnectionsFailed, 3.0), 3));
    }

    #[test]
    fn the_percentile_of_equal_times_is_their_mean() {
        let mut openings = HandshakeTimes::default();
        openings.on_opened(Duration::from_micros(20_832));
        let mut metrics = Vec::new();
        openings.metrics(&mut metrics);
        assert_eq!(metrics[3].1, 0.020_832, "{metrics:?}");
    }

    #[test]
    fn without_an_established_connection_there_is_no_handshake_time() {
        let expected = [(Metric::ConnectionsOpened, 0.0), (Metric::ConnectionsFailed, 2.0)];
        assert_eq!(metrics(0, 2), expected);
    }
}
