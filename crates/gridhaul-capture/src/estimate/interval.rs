//! Confidence intervals.

use serde::Serialize;

/// An interval and its confidence level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level; null for a range of observations, whose level is unknown. Less than 0.99
    /// if the samples are too few.
    pub level: Option<f64>,
}

/// Level of the intervals.
pub(super) const LEVEL: f64 = 0.99;

/// Quantile of the standard normal distribution for a two-sided interval of 99 %.
const Z: f64 = 2.575_829_303_548_901;

impl Interval {
    /// Whether the interval contains a value.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The interval as a noun phrase, such as "99 % interval".
    #[must_use]
    pub fn name(&self) -> String {
        self.level
            .map_or_else(|| "range".to_owned(), |level| format!("{:.0} % interval", 100.0 * level))
    }

    /// The score interval of a proportion (Wilson, "Probable inference, the law of succession, and
    /// statistical inference", 1927).
    #[must_use]
    pub fn of_proportion(hits: u64, trials: u64) -> Self {
        Self::of_shares(hits.min(trials) as f64, trials as f64)
    }

    /// The same for numbers of independent trials that are not whole.
    pub(super) fn of_shares(hits: f64, n: f64) -> Self {
        if n <= 0.0 {
            return Self { low: 0.0, high: 1.0, level: Some(LEVEL) };
        }
        let proportion = hits / n;
        let denominator = 1.0 + Z * Z / n;
        let centre = (proportion + Z * Z / (2.0 * n)) / denominator;
        let variance = proportion * (1.0 - proportion) / n + Z * Z / (4.0 * n * n);
        let half = Z * variance.sqrt() / denominator;
        // Rounding must not exclude 0 and 1, which the formula has as ends then.
        let low = if hits == 0.0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if hits == n { 1.0 } else { (centre + half).min(1.0) };
        Self { low, high, level: Some(LEVEL) }
    }

    /// The interval of the median of sorted samples between two of them (David and Nagaraja, "Order
    /// Statistics", section 7.1): without an assumption about their distribution. `None` without
    /// samples.
    #[must_use]
    pub fn of_median(sorted: &[f64]) -> Option<Self> {
        let n = sorted.len();
        let tail = (1.0 - LEVEL) / 2.0;
        let last = n.checked_sub(1)?;
        // The largest rank for which less than half of the error is below: by the binomial
        // distribution, for many samples by its normal approximation.
        let mut rank = 0;
        let mut below = 0.5_f64.powi(n.min(1_000) as i32);
        let level = if n > 1_000 {
            rank = ((n as f64 - Z * (n as f64).sqrt()) / 2.0).floor() as usize;
            LEVEL
        } else {
            let mut term = below;
            while below + term * (n - rank) as f64 / (rank + 1) as f64 <= tail {
                term *= (n - rank) as f64 / (rank + 1) as f64;
                rank += 1;
                below += term;
            }
            (1.0 - 2.0 * below).clamp(0.0, LEVEL)
        };
        Some(Self { low: sorted[rank], high: sorted[last - rank], level: Some(level) })
    }

    /// The interval of the lower end point of a distribution from its two smallest samples (Robson
    /// and Whitlock, "Estimation of a truncation point", Biometrika 51, 1964): below the smallest
    /// by at most `level / (1 - level)` times their distance.
    #[must_use]
    pub fn of_lower_end(smallest: f64, second: f64) -> Self {
        let distance = (second - smallest).max(0.0);
        let low = (smallest - distance * LEVEL / (1.0 - LEVEL)).max(0.0);
        Self { low, high: smallest, level: Some(LEVEL) }
    }

    /// The interval of a transformed value; `transform` is increasing.
    pub(super) fn map(self, transform: impl Fn(f64) -> f64) -> Self {
        Self { low: transform(self.low), high: transform(self.high), level: self.level }
    }
}

/// The median of sorted samples.
pub(super) fn middle(sorted: &[f64]) -> Option<f64> {
    let n = sorted.len();
    match n {
        0 => None,
        _ if n % 2 == 1 => Some(sorted[n / 2]),
        _ => Some(f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_proportion_is_that_of_wilsons_formula() {
        // 10 of 100 at 99 %: (0.1 + z²/200 ± z·sqrt(0.09/100 + z²/40000)) / (1 + z²/100).
        let interval = Interval::of_proportion(10, 100);
        assert!((interval.low - 0.046_1).abs() < 1e-3, "{interval:?}");
        assert!((interval.high - 0.203_3).abs() < 1e-3, "{interval:?}");
        assert_eq!(Interval::of_proportion(0, 50).low, 0.0);
        assert_eq!(Interval::of_proportion(50, 50).high, 1.0);
    }

    #[test]
    fn the_interval_of_a_median_is_between_the_samples_whose_ranks_the_binomial_distribution_gives()
    {
        // Eight samples: 2 · 0.5⁸ = 0.8 % are outside the smallest and the largest.
        let samples: Vec<f64> = (1..=8).map(f64::from).collect();
        let interval = Interval::of_median(&samples).unwrap();
        assert_eq!((interval.low, interval.high), (1.0, 8.0));
        assert!((interval.level.unwrap() - 0.992).abs() < 3e-3, "{interval:?}");
        // Four samples cannot reach the level: 2 · 0.5⁴ = 12.5 %.
        let level = Interval::of_median(&samples[..4]).and_then(|interval| interval.level);
        assert!((level.unwrap() - 0.875).abs() < 1e-9);
        assert_eq!(Interval::of_median(&[]), None);
        // 20 samples: ranks 4 and 17 (tables of the sign test at 1 %).
        let samples: Vec<f64> = (1..=20).map(f64::from).collect();
        let interval = Interval::of_median(&samples).unwrap();
        assert_eq!((interval.low, interval.high), (4.0, 17.0));
    }

    #[test]
    fn the_lower_end_of_equal_samples_is_known_exactly() {
        assert_eq!(Interval::of_lower_end(0.1, 0.1).low, 0.1);
        assert!((Interval::of_lower_end(0.2, 0.201).low - 0.101).abs() < 1e-9);
    }
}
