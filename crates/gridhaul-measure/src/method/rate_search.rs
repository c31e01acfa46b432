//! Search for the highest rate that a protocol sustains, with verification.

/// Limits and precision of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRange {
    /// First rate to try, in messages per second.
    pub start: f64,
    /// Lowest rate.
    pub least: f64,
    /// Highest rate.
    pub most: f64,
    /// Ratio of two neighbouring rates at which the search ends, such as 0.05.
    pub resolution: f64,
    /// Number of additional trials that must confirm the result.
    pub confirmations: u32,
}

/// A search: doubles the rate until a trial fails, halves the interval on a logarithmic scale, and repeats trials at the result.
/// A trial that fails there lowers the result, because a rate that is sustained by chance is none.
#[derive(Debug, Clone)]
pub struct RateSearch {
    range: RateRange,
    /// Highest rate that was sustained in every trial.
    sustained: Option<f64>,
    /// Lowest rate that failed in a trial.
    failed: Option<f64>,
    /// Trials that the highest sustained rate has passed.
    passed: u32,
    /// Lower rates that were sustained, in ascending order.
    earlier: Vec<f64>,
}

impl RateSearch {
    /// A search that has not begun.
    #[must_use]
    pub const fn new(range: RateRange) -> Self {
        Self { range, sustained: None, failed: None, passed: 0, earlier: Vec::new() }
    }

    /// The rate of the next trial; `None` when the search has ended.
    #[must_use]
    pub fn next_rate(&self) -> Option<f64> {
        let RateRange { start, least, most, resolution, confirmations } = self.range;
        let next = match (self.sustained, self.failed) {
            (None, None) => start.clamp(least, most),
            (None, Some(failed)) if failed <= least => return None,
            (None, Some(failed)) => (failed / 2.0).max(least),
            (Some(sustained), None) if sustained < most => (sustained * 2.0).min(most),
            (Some(sustained), Some(failed)) if failed > sustained * (1.0 + resolution) => {
                (sustained * failed).sqrt()
            }
            (Some(sustained), _) if self.passed <= confirmations => sustained,
            (Some(_), _) => return None,
        };
        Some(next)
    }

    /// The result of the trial at [`next_rate`](Self::next_rate).
    pub fn handle_trial(&mut self, rate: f64, is_sustained: bool) {
        if is_sustained {
            if self.sustained == Some(rate) {
                self.passed += 1;
            } else {
                self.earlier.extend(self.sustained.replace(rate));
                self.passed = 1;
            }
            return;
        }
        self.failed = Some(self.failed.map_or(rate, |failed| failed.min(rate)));
        if self.sustained == Some(rate) {
            // The confirmation failed: the search continues between this rate and the one below.
            self.sustained = self.earlier.pop();
            self.passed = u32::from(self.sustained.is_some());
        }
    }

    /// The highest rate that was sustained in every trial; `None` if there is none.
    #[must_use]
    pub const fn sustained(&self) -> Option<f64> {
        self.sustained
    }

    /// The lowest rate that failed; `None` if none did.
    #[must_use]
    pub const fn failed(&self) -> Option<f64> {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANGE: RateRange =
        RateRange { start: 100.0, least: 1.0, most: 1e6, resolution: 0.05, confirmations: 2 };

    /// Searches, with trials that `trial` decides by their rate and number. Returns the result and the number of trials.
    fn search(trial: impl Fn(f64, u32) -> bool) -> (RateSearch, u32) {
        let mut search = RateSearch::new(RANGE);
        let mut trials = 0;
        while let Some(rate) = search.next_rate() {
            search.handle_trial(rate, trial(rate, trials));
            trials += 1;
            assert!(trials < 200, "the search ends");
        }
        (search, trials)
    }

    #[test]
    fn a_rate_above_the_range_is_the_end_of_the_range() {
        assert_eq!(search(|_, _| true).0.sustained(), Some(1e6));
        assert_eq!(search(|_, _| false).0.sustained(), None);
    }

    #[test]
    fn a_rate_that_fails_its_confirmation_is_not_the_result() {
        // The first trial above 1,000/s passes by chance.
        let first = std::cell::Cell::new(true);
        let (found, _) =
            search(|rate, _| rate <= 1_000.0 || rate < 1_700.0 && first.replace(false));
        let sustained = found.sustained().unwrap();
        assert!((950.0..=1_000.0).contains(&sustained), "{sustained}");
    }

    proptest! {
        #[test]
        fn a_limit_is_found_with_the_resolution(limit in 1.0..9e5_f64) {
            let (found, trials) = search(|rate, _| rate <= limit);
            let sustained = found.sustained().unwrap();
            prop_assert!(sustained <= limit && sustained * 1.051 >= limit, "{sustained}");
            prop_assert!(found.failed().unwrap() > limit);
            prop_assert!(trials < 30, "{trials}");
        }
    }
}
