//! Message delays: distribution and metrics.

use gridhaul_scenario::answer::{DelayCounts, Metric, Metrics};
use gridhaul_scenario::units::Duration;
use hdrhistogram::Histogram;

/// A histogram of message delays.
#[derive(Debug, Clone)]
pub struct MessageDelays {
    /// In microseconds, rounded up, with three significant digits.
    histogram: Histogram<u64>,
    sum_ns: u128,
    max: Duration,
}

/// The times for which messages had waited at the end of a run without being delivered.
///
/// They have the buckets of the delays, with which they are compared: millions of messages wait on
/// an overloaded network.
#[derive(Debug, Clone)]
pub struct WaitingTimes {
    /// In microseconds, rounded up: a time is above the upper bound of a bucket of delays exactly
    /// if its bucket is.
    histogram: Histogram<u64>,
}

impl Default for MessageDelays {
    fn default() -> Self {
        Self::new()
    }
}

impl MessageDelays {
    /// No delays yet.
    ///
    /// # Panics
    /// Never: the number of digits is within what the histogram allows.
    #[must_use]
    pub fn new() -> Self {
        Self { histogram: histogram(), sum_ns: 0, max: Duration::ZERO }
    }

    /// A message has been delivered with this delay.
    ///
    /// # Panics
    /// Never: the histogram resizes itself.
    pub fn record(&mut self, delay: Duration) {
        let micros = delay.as_nanos().div_ceil(1_000);
        self.histogram.record(micros).expect("the histogram resizes itself");
        self.sum_ns += u128::from(delay.as_nanos());
        self.max = self.max.max(delay);
    }

    /// The counts of the delays by value: upper bounds of the histogram's buckets, limited to the
    /// maximum delay.
    #[must_use]
    pub fn counts(&self) -> DelayCounts {
        let mut counts = DelayCounts::default();
        for bucket in self.histogram.iter_recorded() {
            let upper = self.histogram.highest_equivalent(bucket.value_iterated_to());
            counts.add(Duration::from_micros(upper).min(self.max), bucket.count_at_value());
        }
        counts
    }

    /// Number of delays.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The mean in seconds; `None` without delays.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.sum_ns as f64 / count as f64 / 1e9)
    }

    /// A quantile in seconds over delivered and undelivered messages: `longer` returns how many
    /// undelivered messages have waited longer than a time. Messages that have waited less are not
    /// counted, as they may still be delivered within that time. `None` if the quantile exceeds all
    /// delivered messages.
    ///
    /// RFC 7679, section 5.1, treats a lost packet as one with infinite delay in the same way.
    #[must_use]
    pub fn quantile_with(&self, q: f64, longer: impl Fn(Duration) -> u64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let micros = self.histogram.value_at_quantile(q);
        // The histogram returns the upper bound of a bucket, which may exceed the largest delay.
        let seconds = |micros: u64| (micros as f64 / 1e6).min(self.max.as_secs_f64());
        if longer(Duration::from_micros(micros)) == 0 {
            return Some(seconds(micros));
        }
        let mut arrived = 0;
        for step in self.histogram.iter_recorded() {
            arrived += step.count_since_last_iteration();
            let micros = self.histogram.highest_equivalent(step.value_iterated_to());
            let all = count + longer(Duration::from_micros(micros));
            if arrived as f64 >= q * all as f64 {
                return Some(seconds(micros));
            }
        }
        None
    }

    /// Adds number, mean, median, 98th percentile and maximum. `waiting` contains the waiting times
    /// of the messages undelivered at the end of the run.
    pub fn metrics(&self, waiting: &WaitingTimes, into: &mut Metrics) {
        into.push((Metric::Messages, self.count() as f64));
        let Some(mean) = self.mean() else { return };
        into.push((Metric::DelayMean, mean));
        let buckets = waiting.cumulative();
        let longer = |than: Duration| {
            let count = buckets.partition_point(|bucket| bucket.longest <= than);
            let until = count.checked_sub(1).map_or(0, |last| buckets[last].count_until);
            waiting.histogram.len() - until
        };
        for (metric, q) in [(Metric::DelayMedian, 0.5), (Metric::DelayP98, 0.98)] {
            into.extend(self.quantile_with(q, longer).map(|value| (metric, value)));
        }
        into.push((Metric::DelayMax, self.max.as_secs_f64()));
    }
}

impl Default for WaitingTimes {
    fn default() -> Self {
        Self { histogram: histogram() }
    }
}

impl WaitingTimes {
    /// Adds a message.
    ///
    /// # Panics
    /// Never: the histogram resizes itself.
    pub fn add(&mut self, waiting: Duration) {
        let micros = waiting.as_nanos().div_ceil(1_000);
        self.histogram.record(micros).expect("the histogram resizes itself");
    }

    /// Buckets with messages, in ascending order.
    fn cumulative(&self) -> Vec<WaitingBucket> {
        let mut count_until = 0;
        let buckets = self.histogram.iter_recorded().map(|bucket| {
            count_until += bucket.count_at_value();
            let micros = self.histogram.highest_equivalent(bucket.value_iterated_to());
            WaitingBucket { longest: Duration::from_micros(micros), count_until }
        });
        buckets.collect()
    }
}

impl FromIterator<Duration> for WaitingTimes {
    fn from_iter<I: IntoIterator<Item = Duration>>(times: I) -> Self {
        let mut waiting = Self::default();
        times.into_iter().for_each(|time| waiting.add(time));
        waiting
    }
}

/// A bucket of waiting times: its upper bound, and the number of messages up to it.
struct WaitingBucket {
    longest: Duration,
    count_until: u64,
}

fn histogram() -> Histogram<u64> {
    Histogram::new(3).expect("three digits are within hdrhistogram's bounds")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Delays from 1 ms to 100 ms, and undelivered messages.
    fn metrics(waiting_ms: &[u64]) -> Metrics {
        let mut delays = MessageDelays::new();
        (1..=100).for_each(|millis| delays.record(Duration::from_millis(millis)));
        let waiting = waiting_ms.iter().map(|&delay_ms| Duration::from_millis(delay_ms)).collect();
        let mut metrics = Vec::new();
        delays.metrics(&waiting, &mut metrics);
        metrics
    }

    fn value(metrics: &Metrics, wanted: Metric) -> Option<f64> {
        metrics.iter().find(|(metric, _)| *metric == wanted).map(|(_, value)| *value)
    }

    fn assert_approx(value: Option<f64>, expected: f64) {
        assert!(
            value.is_some_and(|value| (value / expected - 1.0).abs() < 0.002),
            "{value:?} {expected}"
        );
    }

    #[test]
    fn undelivered_messages_that_waited_less_than_the_percentile_do_not_count() {
        let all = metrics(&[]);
        assert_approx(value(&all, Metric::DelayMedian), 0.050);
        assert_approx(value(&all, Metric::DelayP98), 0.098);
        assert_eq!(metrics(&[10, 20, 30, 40]), all);
    }

    #[test]
    fn undelivered_messages_that_waited_longer_count_as_later() {
        // Of 101 messages the 98th percentile is the 99th.
        assert_approx(value(&metrics(&[500]), Metric::DelayP98), 0.099);
        // Of 103 messages, it would be the 101st, which is undelivered.
        let three = metrics(&[500, 500, 500]);
        assert_eq!(value(&three, Metric::DelayP98), None);
        // The median is the 52nd; mean and maximum are those of the delivered messages.
        assert_approx(value(&three, Metric::DelayMedian), 0.052);
        assert_eq!(value(&three, Metric::Messages), Some(100.0));
        assert_approx(value(&three, Metric::DelayMean), 0.0505);
        assert_eq!(value(&three, Metric::DelayMax), Some(0.1));
    }

    #[test]
    fn an_undelivered_message_counts_above_its_waiting_time_only() {
        // Of 120 messages the median is the 60th, but 20 have waited for at most 55 ms: above that
        // value, only the 100 delivered messages count.
        assert_approx(value(&metrics(&[55; 20]), Metric::DelayMedian), 0.055);
        assert_approx(value(&metrics(&[70; 20]), Metric::DelayMedian), 0.060);
    }

    #[test]
    fn percentiles_do_not_exceed_the_largest_delay() {
        let mut delays = MessageDelays::new();
        delays.record(Duration::from_micros(1_234_567));
        let mut metrics = Vec::new();
        delays.metrics(&WaitingTimes::default(), &mut metrics);
        for metric in [Metric::DelayMean, Metric::DelayMedian, Metric::DelayP98, Metric::DelayMax] {
            assert!(metrics.contains(&(metric, 1.234_567)), "{metrics:?}");
        }
    }

    #[test]
    fn percentiles_of_parts_of_a_microsecond_are_rounded_up() {
        let mut delays = MessageDelays::new();
        (0..9).for_each(|_| delays.record(Duration::from_nanos(19_200)));
        delays.record(Duration::from_nanos(30_700));
        assert_eq!(delays.quantile_with(0.9, |_| 0), Some(20e-6));
        let all = [(Duration::from_micros(20), 9), (Duration::from_nanos(30_700), 1)];
        let mut expected = DelayCounts::default();
        all.iter().for_each(|&(delay, count)| expected.add(delay, count));
        assert_eq!(delays.counts(), expected);
    }

    #[test]
    fn without_delivered_messages_there_is_no_delay() {
        let mut metrics = Vec::new();
        let waiting = [Duration::from_secs(1)].into_iter().collect();
        MessageDelays::new().metrics(&waiting, &mut metrics);
        assert_eq!(metrics, [(Metric::Messages, 0.0)]);
    }

    proptest! {
        #[test]
        fn percentiles_are_those_of_exact_waiting_times(
            delays in prop::collection::vec(1_u64..20_000_000_000, 1..60),
            waiting in prop::collection::vec(1_u64..20_000_000_000, 0..60),
        ) {
            let mut message_delays = MessageDelays::new();
            delays.iter().for_each(|&ns| message_delays.record(Duration::from_nanos(ns)));
            let mut metrics = Vec::new();
            let times = waiting.iter().map(|&ns| Duration::from_nanos(ns)).collect();
            message_delays.metrics(&times, &mut metrics);
            for (metric, q) in [(Metric::DelayMedian, 0.5), (Metric::DelayP98, 0.98)] {
                let longer = |than: Duration| {
                    waiting.iter().filter(|&&ns| ns > than.as_nanos()).count() as u64
                };
                prop_assert_eq!(value(&metrics, metric), message_delays.quantile_with(q, longer));
            }
        }
    }
}
