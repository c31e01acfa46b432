//! Statistical significance of the difference between two answers.

use gridhaul_scenario::answer::{Answer, Estimate, Point};
use serde::Serialize;

/// The value of a metric in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct MetricValue {
    /// The mean and its 95 % confidence interval, in the unit of the metric.
    pub estimate: Estimate,
    /// Whether it is independent of random numbers.
    pub deterministic: bool,
    /// Number of replications of the point.
    pub replications: u32,
}

/// Result of the comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Significance {
    /// Equal, or the difference lies within its 95 % confidence interval; for different backends
    /// also within 1 %.
    Agree,
    /// The difference lies outside that interval.
    Differ,
    /// Both values are deterministic and not equal: the difference is exact, and a test of
    /// significance does not apply.
    Deterministic,
    /// No value, a single replication of a random run, a censored mean, or too few replications
    /// without variance.
    Unknown,
}

/// Relative difference that counts as agreement between different backends, and if one of the two
/// answers has no confidence interval.
const TOLERANCE: f64 = 0.01;

/// Significance level: probability of a false difference between equal distributions.
const SIGNIFICANCE_LEVEL: f64 = 0.05;

impl MetricValue {
    /// The value at a point of an answer; unknown if the point or the metric is missing.
    pub(super) fn of(estimate: Option<&Estimate>, answer: &Answer, point: Option<&Point>) -> Self {
        Self {
            estimate: estimate.copied().unwrap_or_default(),
            deterministic: point.is_some_and(|point| point.deterministic),
            replications: point.map_or(answer.replications, |point| answer.replications_of(point)),
        }
    }

    /// Relative difference of another value from this one.
    pub(super) fn difference(&self, other: &Self) -> Option<f64> {
        let (a, b) = (self.estimate.mean?, other.estimate.mean?);
        if a == b { Some(0.0) } else { (a != 0.0).then(|| b / a - 1.0) }
    }

    /// Whether another value differs from this one by no more than [`TOLERANCE`].
    fn is_close(&self, other: &Self) -> bool {
        self.difference(other).is_some_and(|difference| difference.abs() <= TOLERANCE)
    }
}

impl Significance {
    /// Compares two values of the same backend or of different backends.
    pub(super) fn of([first, other]: [&MetricValue; 2], same_backend: bool) -> Self {
        let (Some(a), Some(b)) = (first.estimate.mean, other.estimate.mean) else {
            return Self::Unknown;
        };
        if a == b {
            return Self::Agree;
        }
        if first.estimate.censored || other.estimate.censored {
            return Self::Unknown;
        }
        let close = first.is_close(other);
        if close && !same_backend {
            return Self::Agree;
        }
        match (first.deterministic, other.deterministic) {
            (true, true) => Self::Deterministic,
            (true, false) => against_constant((a - b).abs(), &other.estimate, close),
            (false, true) => against_constant((a - b).abs(), &first.estimate, close),
            (false, false) => of_means(&first.estimate, &other.estimate, (a - b).abs()),
        }
    }

    /// Whether the result is a disagreement for `--must-agree`. A deterministic difference counts
    /// above [`TOLERANCE`].
    pub(super) fn is_disagreement(self, difference: Option<f64>) -> bool {
        match self {
            Self::Differ => true,
            Self::Deterministic => difference.is_none_or(|difference| difference.abs() > TOLERANCE),
            Self::Agree | Self::Unknown => false,
        }
    }

    /// The word in tables.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Deterministic => "deterministic",
            Self::Unknown => "–",
        }
    }
}

/// Two means of random replications.
fn of_means(first: &Estimate, other: &Estimate, distance: f64) -> Significance {
    match first.ci95_of_difference(other) {
        // Equal values in each answer: the t test needs a variance, the permutation test does not.
        // Two of all assignments of the values to the answers separate them like this.
        Some(0.0) => without_variance(2.0 / combinations(first.n + other.n, first.n)),
        Some(half_width) if distance <= half_width => Significance::Agree,
        Some(_) => Significance::Differ,
        None => Significance::Unknown,
    }
}

/// A deterministic value and the mean of random replications.
fn against_constant(distance: f64, random: &Estimate, close: bool) -> Significance {
    match random.ci95 {
        // The sign test: all values lie on the same side.
        Some(0.0) => without_variance(2.0 * 0.5_f64.powi(random.n.cast_signed())),
        Some(half_width) if distance <= half_width || close => Significance::Agree,
        Some(_) => Significance::Differ,
        None => Significance::Unknown,
    }
}

/// The result of an exact test with this p-value.
const fn without_variance(probability: f64) -> Significance {
    if probability <= SIGNIFICANCE_LEVEL { Significance::Differ } else { Significance::Unknown }
}

/// Binomial coefficient: number of `k`-element subsets of `n` elements.
fn combinations(n: u32, k: u32) -> f64 {
    (0..k).map(|taken| f64::from(n - taken) / f64::from(taken + 1)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn random(mean: f64, ci95: Option<f64>, n: u32) -> MetricValue {
        let estimate = Estimate { ci95, ..Estimate::exact(mean, n) };
        MetricValue { estimate, deterministic: false, replications: n }
    }

    fn exact(mean: f64) -> MetricValue {
        MetricValue { estimate: Estimate::exact(mean, 5), deterministic: true, replications: 5 }
    }

    fn result(first: MetricValue, other: MetricValue) -> Significance {
        Significance::of([&first, &other], true)
    }

    #[test]
    fn means_are_compared_by_the_interval_of_the_difference() {
        // Five replications each: standard errors of 3 and 4 and their root sum of squares of 5,
        // 7.4 degrees of freedom, rounded down to 7: t = 2.365, half width 11.8.
        let a = random(100.0, Some(3.0 * 2.776), 5);
        let b = |mean| random(mean, Some(4.0 * 2.776), 5);
        assert_eq!(result(a, b(111.8)), Significance::Agree);
        assert_eq!(result(a, b(111.9)), Significance::Differ);
        assert_eq!(result(a, random(100.5, None, 1)), Significance::Unknown);
        assert_eq!(result(a, MetricValue::default()), Significance::Unknown);
        assert_eq!(result(random(1.0, None, 1), random(1.0, None, 1)), Significance::Agree);
        let difference =
            a.difference(&random(110.0, None, 1)).map(|difference| (difference * 100.0).round());
        assert_eq!(difference, Some(10.0));
    }

    #[test]
    fn a_deterministic_difference_is_not_tested_for_significance() {
        assert_eq!(result(exact(100.0), exact(100.0)), Significance::Agree);
        for other in [100.000_1, 150.0] {
            assert_eq!(result(exact(100.0), exact(other)), Significance::Deterministic);
        }
        // Against a random value, its interval decides, and 1 % counts as agreement.
        let random = |mean, ci95| random(mean, ci95, 5);
        assert_eq!(result(exact(100.0), random(104.0, Some(5.0))), Significance::Agree);
        assert_eq!(result(random(106.0, Some(5.0)), exact(100.0)), Significance::Differ);
        assert_eq!(result(exact(100.0), random(100.9, Some(0.01))), Significance::Agree);
        assert_eq!(result(exact(100.0), random(150.0, None)), Significance::Unknown);
    }

    #[test]
    fn equal_random_replications_are_compared_by_exact_tests() {
        let equal = |mean, n| random(mean, Some(0.0), n);
        // Two of C(2n, n) assignments separate the values like this: 1/3 for n = 2, 1/10 for 3,
        // 1/35 for 4.
        for (n, expected) in
            [(2, Significance::Unknown), (3, Significance::Unknown), (4, Significance::Differ)]
        {
            assert_eq!(result(equal(2.0, n), equal(3.0, n)), expected, "{n}");
        }
        // All n values on one side: 1/16 for five, 1/32 for six.
        assert_eq!(result(exact(2.0), equal(3.0, 5)), Significance::Unknown);
        assert_eq!(result(exact(2.0), equal(3.0, 6)), Significance::Differ);
    }

    #[test]
    fn comparisons_of_censored_means_are_undetermined() {
        let mut censored = random(100.0, Some(1.0), 5);
        censored.estimate.censored = true;
        let uncensored = random(200.0, Some(1.0), 5);
        assert_eq!(result(censored, uncensored), Significance::Unknown);
        assert_eq!(result(uncensored, censored), Significance::Unknown);
    }

    #[test]
    fn different_backends_agree_within_one_percent() {
        let between = |first, other| Significance::of([&first, &other], false);
        let (a, b) = (random(100.0, Some(0.01), 5), random(100.9, Some(0.01), 5));
        assert_eq!(between(a, b), Significance::Agree);
        assert_eq!(result(a, b), Significance::Differ);
        assert_eq!(between(exact(100.0), exact(100.9)), Significance::Agree);
        assert_eq!(between(exact(100.0), exact(101.1)), Significance::Deterministic);
    }

    #[test]
    fn disagreements_are_significant_or_above_the_tolerance() {
        assert!(Significance::Differ.is_disagreement(Some(0.001)));
        assert!(Significance::Deterministic.is_disagreement(Some(-0.011)));
        assert!(Significance::Deterministic.is_disagreement(None), "a change from zero");
        assert!(!Significance::Deterministic.is_disagreement(Some(0.009)));
        assert!(!Significance::Unknown.is_disagreement(Some(1.0)));
    }
}
