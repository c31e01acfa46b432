//! Distribution of durations, with order statistics and their confidence bounds.

use gridhaul_scenario::units::Duration;
use hdrhistogram::Histogram;

use super::binomial::Binomial;

/// Confidence of each bound of a quantile.
const CONFIDENCE: f64 = 0.95;

/// Durations in bounded memory, each rounded to four significant digits.
#[derive(Debug, Clone)]
pub struct Distribution {
    /// In nanoseconds.
    histogram: Histogram<u64>,
    sum: f64,
}

/// A quantile and its confidence bounds. They are order statistics: no distribution is assumed,
/// only that messages are independent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantile {
    /// The share of messages that are not slower.
    pub share: f64,
    /// Estimate.
    pub value: Duration,
    /// Lower bound with 95 % confidence; `None` if there are too few messages.
    pub low: Option<Duration>,
    /// Upper bound with 95 % confidence; `None` if there are too few messages
    /// ([`messages_needed`]).
    pub high: Option<Duration>,
}

/// Number of messages from which the largest is an upper bound of this quantile with 95 %
/// confidence: `1 - share^n ≥ 0.95`.
#[must_use]
pub fn messages_needed(share: f64) -> u64 {
    ((1.0 - CONFIDENCE).ln() / share.ln()).ceil() as u64
}

/// Ranks, from 1, of the order statistics that bound a quantile of `count` values with 95 %
/// confidence each. A lower rank of 0 and an upper rank above `count` mean that there are too few
/// values.
fn ranks_of_bounds(count: u64, share: f64) -> [u64; 2] {
    let below = Binomial::new(count, share);
    // The value of rank u is above the quantile unless u or more values are below: P(B ≤ u - 1) ≥
    // 0.95.
    let upper = below.smallest_with(CONFIDENCE) + 1;
    // The value of rank l is below the quantile if l or more values are below: P(B ≤ l - 1) ≤ 0.05.
    let first = below.smallest_with(1.0 - CONFIDENCE);
    let is_exact = below.at_most(first) <= 1.0 - CONFIDENCE;
    [if is_exact { first + 1 } else { first }, upper]
}

impl Default for Distribution {
    fn default() -> Self {
        let histogram = Histogram::new(4).expect("four digits are within hdrhistogram's bounds");
        Self { histogram, sum: 0.0 }
    }
}

impl Distribution {
    /// Adds a duration.
    pub fn record(&mut self, duration: Duration) {
        self.histogram.record(duration.as_nanos()).expect("the histogram grows");
        self.sum += duration.as_secs_f64();
    }

    /// Number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Mean, without rounding of the durations; `None` of no durations.
    #[must_use]
    pub fn mean(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_secs_f64(self.sum / self.count() as f64))
    }

    /// Standard deviation of the rounded durations; `None` of no durations.
    #[must_use]
    pub fn standard_deviation(&self) -> Option<Duration> {
        let seconds = self.histogram.stdev() * 1e-9;
        (self.count() > 0).then(|| Duration::from_secs_f64(seconds))
    }

    /// Largest duration.
    #[must_use]
    pub fn max(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.histogram.max()))
    }

    /// A quantile with its bounds; `None` of no durations.
    ///
    /// The ranks of the bounds follow from the binomial distribution of the number of messages
    /// below the quantile (David & Nagaraja, Order Statistics, 3rd ed., section 7.1).
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Quantile> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let [lower, upper] = ranks_of_bounds(count, share);
        Some(Quantile {
            share,
            value: self.at_rank(((share * count as f64).ceil() as u64).clamp(1, count)),
            low: (lower > 0).then(|| self.at_rank(lower)),
            high: (upper <= count).then(|| self.at_rank(upper)),
        })
    }

    /// Lower and upper bound of a quantile of all messages, with 95 % confidence each, when
    /// `missing` further messages took longer than `least` and longer than all of these. `None` if
    /// no bound is known.
    #[must_use]
    pub fn bounds_with_missing(
        &self,
        share: f64,
        missing: u64,
        min: Duration,
    ) -> [Option<Duration>; 2] {
        let known = self.count();
        let [lower, upper] = ranks_of_bounds(known + missing, share);
        let low = match lower {
            0 => None,
            rank if rank <= known => Some(self.at_rank(rank)),
            _ => Some(min),
        };
        [low, (upper <= known).then(|| self.at_rank(upper))]
    }

    /// Number of durations above a limit.
    #[must_use]
    pub fn count_above(&self, limit: Duration) -> u64 {
        self.count() - self.histogram.count_between(0, limit.as_nanos())
    }

    /// Shares of the durations up to each recorded value, in ascending order.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, f64)> + '_ {
        let total = self.count() as f64;
        let mut so_far = 0;
        self.histogram.iter_recorded().map(move |step| {
            so_far += step.count_since_last_iteration();
            (Duration::from_nanos(step.value_iterated_to()), so_far as f64 / total)
        })
    }

    /// The `rank`-th smallest duration, from 1.
    fn at_rank(&self, rank: u64) -> Duration {
        let mut so_far = 0;
        let reached = self.histogram.iter_recorded().find(|step| {
            so_far += step.count_since_last_iteration();
            so_far >= rank
        });
        let value = reached.map_or(0, |step| step.value_iterated_to());
        Duration::from_nanos(value.min(self.histogram.max()))
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_testing::Numbers;
    use proptest::prelude::*;

    use super::*;

    fn of(micros: impl IntoIterator<Item = u64>) -> Distribution {
        let mut distribution = Distribution::default();
        micros.into_iter().for_each(|value| distribution.record(Duration::from_micros(value)));
        distribution
    }

    /// In microseconds, without the rounding of the histogram.
    fn rounded(duration: Option<Duration>) -> Option<u64> {
        duration.map(|duration| (duration.as_secs_f64() * 1e6).round() as u64)
    }

    #[test]
    fn an_upper_bound_of_the_98th_percentile_needs_149_messages() {
        assert_eq!([0.98, 0.999].map(messages_needed), [149, 2_995]);
        assert_eq!(of(0..148).quantile(0.98).unwrap().high, None);
        assert_eq!(rounded(of(1..=149).quantile(0.98).unwrap().high), Some(149));
        assert_eq!(of(0..2_994).quantile(0.999).unwrap().high, None);
        assert!(of(0..2_995).quantile(0.999).unwrap().high.is_some());
    }

    #[test]
    fn the_bounds_of_a_median_are_those_of_the_tables() {
        // n = 10: P(B ≤ 1) = 0.0107 and P(B ≤ 2) = 0.0547, so ranks 2 and 9 bound the median with
        // 95 % each.
        let median = of((1..=10).map(|value| value * 100)).quantile(0.5).unwrap();
        assert_eq!(rounded(median.low), Some(200));
        assert_eq!(rounded(median.high), Some(900));
        assert_eq!(rounded(Some(median.value)), Some(500));
    }

    #[test]
    fn missing_messages_are_later_than_all_others() {
        let known = of(1..=150);
        let min = Duration::from_secs(5);
        let bounds = |missing| known.bounds_with_missing(0.98, missing, min).map(rounded);
        // P(B ≤ 143) = 0.03 and P(B ≤ 144) = 0.08 for n = 150.
        assert_eq!(bounds(0), [Some(144), Some(150)]);
        // With one missing message the largest of 150 is no upper bound of 151.
        assert_eq!(bounds(1)[1], None);
        assert_eq!(bounds(50), [Some(5_000_000), None]);
        assert_eq!(known.count_above(Duration::from_micros(100)), 50);
    }

    #[test]
    fn without_messages_there_is_no_quantile() {
        let none = Distribution::default();
        assert_eq!((none.quantile(0.5), none.mean(), none.max()), (None, None, None));
    }

    proptest! {
        #[test]
        fn a_quantile_is_a_recorded_value_between_its_bounds(
            values in prop::collection::vec(1_u64..2_000_000, 1..400), share in 0.01..0.999_f64,
        ) {
            let quantile = of(values.iter().copied()).quantile(share).unwrap();
            let mut sorted = values.clone();
            sorted.sort_unstable();
            let rank = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
            let (found, exact) = (quantile.value.as_nanos() as f64, sorted[rank - 1] as f64 * 1e3);
            prop_assert!((found / exact - 1.0).abs() < 2e-4, "{found} {exact}");
            prop_assert!(quantile.low.is_none_or(|low| low <= quantile.value));
            prop_assert!(quantile.high.is_none_or(|high| high >= quantile.value));
        }
    }

    /// The bounds contain the true quantile as often as promised: 200 samples of a uniform
    /// distribution.
    #[test]
    fn the_upper_bound_holds_in_95_percent_of_the_samples() {
        let mut numbers = Numbers::new(1);
        let true_value = Duration::from_micros(980_000);
        let samples = 200;
        let hold = (0..samples).filter(|_| {
            let sample = of((0..300).map(|_| numbers.draw() % 1_000_000 + 1));
            sample.quantile(0.98).unwrap().high.unwrap() >= true_value
        });
        let share = hold.count() as f64 / f64::from(samples);
        assert!(share > 0.95 - 3.0 * 0.0154, "{share}");
    }
}
