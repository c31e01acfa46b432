//! How long messages were under way.

use gridhaul_scenario::answer::{Metric, Metrics};
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

    /// Number of delays.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Their mean in seconds, if there are any.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64 / 1e9)
    }

    /// A quantile in seconds over the delays and over what has not arrived: `longer` says how many of
    /// those have already waited longer than a time. What has waited less is left out, as it may still
    /// arrive within that time. `None` where the quantile is beyond all that has arrived.
    ///
    /// RFC 7679, section 5.1, treats a packet that is lost as one of infinite delay in the same way.
    #[must_use]
    pub fn quantile_with(&self, q: f64, longer: impl Fn(Duration) -> u64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let micros = self.histogram.value_at_quantile(q);
        if longer(Duration::from_micros(micros)) == 0 {
            return Some(micros as f64 / 1e6);
        }
        let mut arrived = 0;
        for step in self.histogram.iter_recorded() {
            arrived += step.count_since_last_iteration();
            let micros = self.histogram.highest_equivalent(step.value_iterated_to());
            let all = count + longer(Duration::from_micros(micros));
            if arrived as f64 >= q * all as f64 {
                return Some(micros as f64 / 1e6);
            }
        }
        None
    }

    /// Number, mean, median, 98th percentile and largest. `waiting` holds how long those messages have
    /// waited that have not arrived by the end of the run.
    pub fn metrics(&self, waiting: &[Duration], into: &mut Metrics) {
        into.push((Metric::Messages, self.count() as f64));
        let Some(mean) = self.mean() else { return };
        into.push((Metric::DelayMean, mean));
        let mut waiting = waiting.to_vec();
        waiting.sort_unstable();
        let longer = |than| (waiting.len() - waiting.partition_point(|&age| age <= than)) as u64;
        for (metric, q) in [(Metric::DelayMedian, 0.5), (Metric::DelayP98, 0.98)] {
            into.extend(self.quantile_with(q, longer).map(|value| (metric, value)));
        }
        into.push((Metric::DelayMax, self.max.as_secs_f64()));
    }
}
