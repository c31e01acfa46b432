//! Results of several runs: their median, and how far they lie apart.

use super::binomial::Binomial;

/// Confidence of the interval of the median.
const CONFIDENCE: f64 = 0.95;

/// A quantity in several runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Number of runs with a value.
    pub runs: usize,
    /// Median over the runs.
    pub median: f64,
    /// Least value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Interval that contains the median of all possible runs with a confidence of 95 %; `None`
    /// with fewer than six runs.
    pub interval: Option<[f64; 2]>,
}

impl Spread {
    /// `None` without a value.
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<_> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (&min, &max) = (values.first()?, values.last()?);
        let runs = values.len();
        let median = 0.5 * (values[(runs - 1) / 2] + values[runs / 2]);
        Some(Self { runs, median, min, max, interval: interval(&values) })
    }
}

/// The closest order statistics from both ends between which the median lies (David and Nagaraja,
/// Order Statistics, section 7.1): it is below the k-th value if at most k - 1 values are below it,
/// as heads of a coin.
fn interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let coin = Binomial::new(sorted.len() as u64, 0.5);
    let excluded = |&outer: &usize| coin.at_most(outer as u64) <= 0.5 * (1.0 - CONFIDENCE);
    // With `outer` values outside of the interval at each end.
    let outer = (0..sorted.len() / 2).take_while(excluded).last()?;
    Some([sorted[outer], sorted[sorted.len() - 1 - outer]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_both_middle_values() {
        let spread = Spread::of([4.0, 1.0, 2.0, 9.0]).unwrap();
        assert_eq!((spread.runs, spread.median), (4, 3.0));
        assert_eq!((spread.min, spread.max, spread.interval), (1.0, 9.0, None));
        assert_eq!(Spread::of([7.0]).map(|spread| spread.median), Some(7.0));
        assert_eq!(Spread::of([]), None);
    }

    /// With n runs, the least and the largest value contain the median with the probability 1 - 2 /
    /// 2^n: 0.9375 with five, and 0.96875 with six. With nine runs the second values do: 1 - 2 (1 +
    /// 9) / 2^9 = 0.961.
    #[test]
    fn the_interval_has_the_confidence() {
        let interval_of = |runs: u32| Spread::of((1..=runs).map(f64::from)).unwrap().interval;
        assert_eq!(interval_of(5), None);
        assert_eq!(interval_of(6), Some([1.0, 6.0]));
        assert_eq!(interval_of(8), Some([1.0, 8.0]));
        assert_eq!(interval_of(9), Some([2.0, 8.0]));
    }
}
