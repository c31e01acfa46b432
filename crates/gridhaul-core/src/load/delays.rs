//! How long messages were under way.

use gridhaul_scenario::answer::{DelayCounts, Metric, Metrics};
use gridhaul_scenario::units::Duration;
use hdrhistogram::Histogram;

/// Delays of messages.
#[derive(Debug)]
pub struct Delays {
    /// In microseconds, to three digits.
    histogram: Histogram<u64>,
    sum_ns: u128,
    max: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self::new()
    }
}

impl Delays {
    /// No delays yet.
    ///
    /// # Panics
    /// Never: the number of digits is within what the histogram allows.
    #[must_use]
    pub fn new() -> Self {
        let histogram = Histogram::new(3).expect("three digits are within hdrhistogram's bounds");
        Self { histogram, sum_ns: 0, max: Duration::ZERO }
    }

    /// A message has arrived after this delay.
    ///
    /// # Panics
    /// Never: the histogram grows with what it is given.
    pub fn record(&mut self, delay: Duration) {
        self.histogram.record(delay.as_nanos() / 1_000).expect("the histogram grows");
        self.sum_ns += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    /// The delays counted by value: the upper bounds of the histogram's buckets, and never more than
    /// the largest delay.
    #[must_use]
    pub fn counts(&self) -> DelayCounts {
        let mut counts = DelayCounts::default();
        for bucket in self.histogram.iter_recorded() {
            let upper = Duration::from_micros(bucket.value_iterated_to());
            counts.add(upper.min(self.max), bucket.count_at_value());
        }
        counts
    }

    /// Number, mean, median, 98th percentile and largest.
    pub fn metrics(&self, into: &mut Metrics) {
        let count = self.histogram.len();
        into.push((Metric::Messages, count as f64));
        if count == 0 {
            return;
        }
        let quantile = |q: f64| self.histogram.value_at_quantile(q) as f64 / 1e6;
        into.push((Metric::DelayMean, self.sum_ns as f64 / count as f64 / 1e9));
        into.push((Metric::DelayMedian, quantile(0.5)));
        into.push((Metric::DelayP98, quantile(0.98)));
        into.push((Metric::DelayMax, self.max.as_secs_f64()));
    }
}
