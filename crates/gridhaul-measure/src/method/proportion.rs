//! A share of messages, with confidence bounds.

use super::binomial::Binomial;

/// `count` of `of` messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proportion {
    /// Number of messages with the property.
    pub count: u64,
    /// Number of messages.
    pub of: u64,
}

impl Proportion {
    /// The share; `None` of no messages.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.of > 0).then(|| self.count as f64 / self.of as f64)
    }

    /// Lower and upper bound of the probability (Clopper & Pearson 1934, Biometrika 26, 404), each
    /// of which holds with the given confidence. They assume independent messages; losses in bursts
    /// widen the true interval.
    #[must_use]
    pub fn bounds(&self, confidence: f64) -> [f64; 2] {
        let Self { count, of } = *self;
        // At the lower bound, `count` or more would have the probability 1 - confidence.
        let lower = if count == 0 {
            0.0
        } else {
            bisect(|p| 1.0 - Binomial::new(of, p).at_most(count - 1) > 1.0 - confidence)
        };
        let upper = if count == of {
            1.0
        } else {
            bisect(|p| Binomial::new(of, p).at_most(count) < 1.0 - confidence)
        };
        [lower, upper]
    }
}

/// The probability at which a monotonic condition becomes true.
fn bisect(is_above: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if is_above(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_a_loss_the_upper_bound_is_three_over_n() {
        let [low, high] = Proportion { count: 0, of: 1_000 }.bounds(0.95);
        // 1 - 0.05^(1/N), which is about 3/N.
        assert!((high - (1.0 - 0.05_f64.powf(1e-3))).abs() < 1e-9, "{high}");
        assert!(low == 0.0 && (high - 3e-3).abs() < 1e-5);
    }

    #[test]
    fn the_bounds_of_ten_in_a_hundred_are_those_of_the_beta_distribution() {
        // scipy.stats.beta.ppf(0.025, 10, 91) and ppf(0.975, 11, 90).
        let [low, high] = Proportion { count: 10, of: 100 }.bounds(0.975);
        assert!((low - 0.049_005).abs() < 1e-5 && (high - 0.176_223).abs() < 1e-5, "{low} {high}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn the_share_is_within_its_bounds(of in 1_u64..5_000, part in 0.0..1.0_f64) {
            let count = (of as f64 * part) as u64;
            let proportion = Proportion { count, of };
            let [low, high] = proportion.bounds(0.95);
            let share = proportion.share().unwrap();
            prop_assert!(low <= share && share <= high, "{low} {share} {high}");
        }
    }
}
