//! Tail probabilities of the binomial distribution.

/// Probabilities relative to the mode below which terms are omitted.
const NEGLIGIBLE: f64 = 1e-18;

/// Distribution of the number of successes in `n` independent trials, from the first to the last
/// number whose probability is not negligible.
#[derive(Debug)]
pub(super) struct Binomial {
    first: u64,
    /// `at_most[i]` is the probability of at most `first + i` successes.
    at_most: Vec<f64>,
}

impl Binomial {
    /// `n` trials with probability `p`. Takes time and memory proportional to the standard
    /// deviation.
    pub(super) fn new(n: u64, p: f64) -> Self {
        if p <= 0.0 || p >= 1.0 {
            return Self { first: if p <= 0.0 { 0 } else { n }, at_most: vec![1.0] };
        }
        // Terms relative to that of the mode avoid factorials: P(k + 1) / P(k) = (n - k) / (k + 1)
        // * p / (1 - p).
        let mode = (((n + 1) as f64 * p) as u64).min(n);
        let odds = p / (1.0 - p);
        let mut below = Vec::new();
        let (mut term, mut at) = (1.0, mode);
        while at > 0 && term > NEGLIGIBLE {
            term *= at as f64 / ((n - at + 1) as f64 * odds);
            at -= 1;
            below.push(term);
        }
        let first = at;
        let mut terms: Vec<f64> = below.into_iter().rev().collect();
        terms.push(1.0);
        let (mut term, mut at) = (1.0, mode);
        while at < n && term > NEGLIGIBLE {
            term *= (n - at) as f64 / (at + 1) as f64 * odds;
            at += 1;
            terms.push(term);
        }
        let sum: f64 = terms.iter().sum();
        let mut so_far = 0.0;
        let at_most = terms.iter().map(|term| {
            so_far += term / sum;
            so_far
        });
        Self { first, at_most: at_most.collect() }
    }

    /// Probability of at most `k` successes.
    pub(super) fn at_most(&self, k: u64) -> f64 {
        match k.checked_sub(self.first) {
            None => 0.0,
            Some(index) => self.at_most.get(index as usize).copied().unwrap_or(1.0),
        }
    }

    /// The smallest `k` with P(at most k) ≥ `probability`.
    pub(super) fn smallest_with(&self, probability: f64) -> u64 {
        self.first + self.at_most.partition_point(|&at_most| at_most < probability) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_coin_thrown_four_times() {
        let coin = Binomial::new(4, 0.5);
        for (k, expected) in [(0, 1.0), (1, 5.0), (2, 11.0), (3, 15.0), (4, 16.0), (9, 16.0)] {
            assert!((coin.at_most(k) - expected / 16.0).abs() < 1e-12, "{k}");
        }
        assert_eq!(coin.smallest_with(0.5), 2);
    }

    #[test]
    fn certain_outcomes_have_one_possible_number_of_successes() {
        assert_eq!(Binomial::new(7, 0.0).smallest_with(0.9), 0);
        assert_eq!(Binomial::new(7, 1.0).smallest_with(0.9), 7);
    }

    #[test]
    fn many_trials_agree_with_the_normal_distribution() {
        // 1.6448536 standard deviations above the mean: 95 %; continuity correction 1/2.
        let many = Binomial::new(10_000_000, 0.5);
        let deviation = (10_000_000.0_f64 * 0.25).sqrt();
        let expected = 5_000_000.0 + 1.644_853_6 * deviation - 0.5;
        assert!((many.smallest_with(0.95) as f64 - expected).abs() <= 1.0);
    }
}
