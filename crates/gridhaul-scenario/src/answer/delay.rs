//! Distributions of message delays.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Distribution of the message delays of a flow: points of the cumulative distribution function. It
/// contains the messages that were due after the warm-up and arrived; `message_loss_ratio` and
/// `deadline_met_ratio` count messages that did not arrive. The messages of all replications are
/// pooled, so that each message has the same weight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct DelayDistribution {
    /// Number of messages in all replications.
    pub messages: u64,
    /// Shares of the messages, increasing from 0 to 1.
    pub share: Vec<f64>,
    /// For each share, the delay that this share of the messages does not exceed (the quantile),
    /// rounded up by at most 0.1 % or 1 µs; for share 0 the smallest delay, so rounded, for share
    /// 1 the largest.
    pub delay_s: Vec<f64>,
}

/// Histogram of the message delays of a run, which can be pooled with those of other runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayCounts {
    counts: BTreeMap<Duration, u64>,
    largest: Duration,
}

/// Shares for which quantiles are computed: steps of 2 %, smaller steps at both ends.
const LOW: [f64; 5] = [0.0, 0.001, 0.002, 0.005, 0.01];
const HIGH: [f64; 6] = [0.99, 0.995, 0.998, 0.999, 0.9999, 1.0];

impl DelayCounts {
    /// Adds messages with this delay.
    pub fn add(&mut self, delay: Duration, messages: u64) {
        *self.counts.entry(delay).or_default() += messages;
        self.largest = self.largest.max(delay);
    }

    /// Adds the messages of another run.
    pub fn pool(&mut self, other: &Self) {
        for (delay, messages) in &other.counts {
            self.add(*delay, *messages);
        }
    }

    /// The distribution; `None` without messages.
    #[must_use]
    pub fn distribution(&self) -> Option<DelayDistribution> {
        let messages: u64 = self.counts.values().sum();
        if messages == 0 {
            return None;
        }
        let steps = (1..50).map(|step| f64::from(step) / 50.0);
        let share: Vec<f64> = LOW.into_iter().chain(steps).chain(HIGH).collect();
        let delay_s = share.iter().map(|share| self.quantile(*share, messages).as_secs_f64());
        Some(DelayDistribution { messages, delay_s: delay_s.collect(), share })
    }

    /// The smallest delay that at least this share of the messages did not exceed.
    fn quantile(&self, share: f64, messages: u64) -> Duration {
        let rank = ((share * messages as f64).ceil() as u64).clamp(1, messages);
        let mut below = 0;
        let reached = self.counts.iter().find(|(_, count)| {
            below += **count;
            below >= rank
        });
        reached.map_or(self.largest, |(delay, _)| *delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replications_are_pooled_message_by_message() {
        // 900 messages of 10 ms in one run and 100 of 2 s in another: pooled, the 90th percentile
        // is 10 ms and the 91st is 2 s, independent of the percentiles of the single runs.
        let mut pooled = DelayCounts::default();
        for (delay, messages) in [(10, 900), (2_000, 100)] {
            let mut run = DelayCounts::default();
            run.add(Duration::from_millis(delay), messages);
            pooled.pool(&run);
        }
        let found = pooled.distribution().unwrap();
        let at = |share: f64| {
            let place = found.share.iter().position(|other| (other - share).abs() < 1e-12);
            found.delay_s[place.unwrap()]
        };
        assert_eq!(found.messages, 1000);
        assert_eq!([at(0.0), at(0.5), at(0.9), at(0.92), at(1.0)], [0.01, 0.01, 0.01, 2.0, 2.0]);
        assert!(found.share.is_sorted() && found.delay_s.is_sorted());
        assert_eq!(DelayCounts::default().distribution(), None);
    }
}
