//! What equal flows have carried together.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::Instant;

/// Goodputs of equal flows, added up in the order of the flows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Goodputs {
    count: u32,
    /// Bits a second, and their squares.
    sum: f64,
    squares: f64,
}

/// Transfers that are complete.
#[derive(Debug, Clone, Copy, Default)]
pub struct Transfers {
    count: u32,
    /// Seconds that they took, and bits a second.
    took: f64,
    rates: f64,
}

/// Share of the messages that were lost; `None` where there was no message.
#[must_use]
pub fn message_loss(lost: u64, of: u64) -> Option<f64> {
    // A datagram that is lost in the measured time may have been sent before it.
    (of > 0).then(|| (lost as f64 / of as f64).min(1.0))
}

impl Goodputs {
    /// A flow has delivered so many bytes in `secs` seconds.
    pub fn add(&mut self, bytes: u64, secs: f64) {
        let goodput = (bytes * 8) as f64 / secs;
        self.count += 1;
        self.sum += goodput;
        self.squares += goodput * goodput;
    }

    /// Number of flows.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Their goodput together and, of several, how evenly they share it.
    pub fn metrics(&self, into: &mut Metrics) {
        into.push((Metric::Goodput, self.sum));
        if self.count > 1 && self.squares > 0.0 {
            // Jain, Chiu and Hawe 1984: (sum x)^2 / (n * sum x^2).
            let fairness = self.sum * self.sum / (f64::from(self.count) * self.squares);
            into.push((Metric::Fairness, fairness));
        }
    }
}

impl Transfers {
    /// So many bytes were under way from `start` on, and whole at `end`.
    pub fn add(&mut self, bytes: u64, (start, end): (Instant, Instant)) {
        let took = end.since(start).as_secs_f64();
        self.count += 1;
        self.took += took;
        self.rates += bytes as f64 * 8.0 / took;
    }

    /// Their mean completion time and rate, if there are any.
    pub fn metrics(&self, into: &mut Metrics) {
        if self.count > 0 {
            let count = f64::from(self.count);
            into.push((Metric::CompletionTime, self.took / count));
            into.push((Metric::TransferRate, self.rates / count));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Duration;

    #[test]
    fn the_loss_of_no_messages_is_not_known() {
        assert_eq!(message_loss(0, 0), None);
        assert_eq!(message_loss(1, 4), Some(0.25));
        // Sent before the measured time, lost in it.
        assert_eq!(message_loss(3, 2), Some(1.0));
    }

    #[test]
    fn one_of_two_that_has_all_is_half_as_fair() {
        let mut goodputs = Goodputs::default();
        goodputs.add(1_000, 2.0);
        let mut metrics = Vec::new();
        goodputs.metrics(&mut metrics);
        assert_eq!(metrics, [(Metric::Goodput, 4_000.0)], "one flow shares with nobody");
        goodputs.add(0, 2.0);
        metrics.clear();
        goodputs.metrics(&mut metrics);
        assert_eq!(metrics, [(Metric::Goodput, 4_000.0), (Metric::Fairness, 0.5)]);
    }

    #[test]
    fn rates_are_averaged_and_not_times() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let mut transfers = Transfers::default();
        transfers.add(100, (at(1), at(2)));
        transfers.add(100, (at(1), at(5)));
        let mut metrics = Vec::new();
        transfers.metrics(&mut metrics);
        // 1 s and 4 s; 800 and 200 bit/s.
        assert_eq!(metrics, [(Metric::CompletionTime, 2.5), (Metric::TransferRate, 500.0)]);
    }
}
