//! Search for the highest rate that a protocol sustains, with verification.

/// Failing trials at a rate after which the rate has failed, and sustained ones after a failing one
/// that contradict it: one of them may be due to the machine.
const DECIDING: u32 = 2;

/// Disturbed trials at a rate after which this machine is the limit.
const DISTURBED_MAX: u32 = 5;

/// Limits and precision of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateRange {
    /// First rate to try, in messages per second.
    pub first: f64,
    /// Lowest rate.
    pub min: f64,
    /// Highest rate.
    pub max: f64,
    /// Ratio of two neighbouring rates at which the search ends, such as 0.05.
    pub resolution: f64,
    /// Number of additional trials that must confirm the result.
    pub confirmations: u32,
}

/// Outcome of a trial of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialResult {
    /// The rate is sustained.
    Sustained,
    /// The rate is not sustained.
    Failed,
    /// Nothing, because this machine disturbed the trial.
    Disturbed,
}

/// Upper limit of a search, above the highest sustained rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLimit {
    /// Messages were lost or waited at the next higher rate.
    Network,
    /// This machine disturbed every trial at the next higher rate: the network may sustain more.
    Machine,
    /// The end of the range.
    Range,
}

/// A search: doubles the rate until it fails, halves the interval on a logarithmic scale, and
/// repeats trials at the result. A trial that this machine disturbed is repeated, and so is one
/// that fails; a rate has failed if two of at most three trials fail. A rate that fails its
/// confirmation lowers the result, because one lucky trial does not prove that a rate is sustained.
#[derive(Debug, Clone)]
pub struct RateSearch {
    range: RateRange,
    /// Highest rate that was sustained in every trial.
    sustained: Option<f64>,
    /// Lowest rate that failed.
    failed: Option<f64>,
    /// Lowest rate at which this machine was the limit.
    disturbed: Option<f64>,
    /// Trials that the highest sustained rate has passed.
    passed: u32,
    /// Lower rates that were sustained, in ascending order.
    earlier: Vec<f64>,
    /// The rate that its trials have not decided yet.
    open: Option<Open>,
}

/// Trials of a rate that is not decided.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Open {
    rate: f64,
    sustained: u32,
    failed: u32,
    disturbed: u32,
}

impl RateSearch {
    /// A search that has not begun.
    #[must_use]
    pub const fn new(range: RateRange) -> Self {
        Self {
            range,
            sustained: None,
            failed: None,
            disturbed: None,
            passed: 0,
            earlier: Vec::new(),
            open: None,
        }
    }

    /// The rate of the next trial; `None` when the search has ended.
    #[must_use]
    pub fn next_rate(&self) -> Option<f64> {
        let RateRange { first, min, max, resolution, confirmations } = self.range;
        let next = match (self.sustained, self.lowest_excluded()) {
            _ if self.open.is_some() => return self.open.map(|open| open.rate),
            (None, None) => first.clamp(min, max),
            (None, Some(failed)) if failed <= min => return None,
            (None, Some(failed)) => (failed / 2.0).max(min),
            (Some(sustained), None) if sustained < max => (sustained * 2.0).min(max),
            // The geometric mean halves the interval on a logarithmic scale, on which the
            // resolution is constant.
            (Some(sustained), Some(failed)) if failed > sustained * (1.0 + resolution) => {
                (sustained * failed).sqrt()
            }
            (Some(sustained), _) if self.passed <= confirmations => sustained,
            (Some(_), _) => return None,
        };
        Some(next)
    }

    /// The result of the trial at [`next_rate`](Self::next_rate).
    pub fn handle_trial(&mut self, rate: f64, result: TrialResult) {
        let new = Open { rate, sustained: 0, failed: 0, disturbed: 0 };
        let mut open = self.open.take().unwrap_or(new);
        let count = match result {
            TrialResult::Sustained => &mut open.sustained,
            TrialResult::Failed => &mut open.failed,
            TrialResult::Disturbed => &mut open.disturbed,
        };
        *count += 1;
        if result == TrialResult::Sustained && (open.failed == 0 || open.sustained >= DECIDING) {
            self.handle_sustained(rate);
        } else if open.failed >= DECIDING {
            self.failed = Some(self.failed.map_or(rate, |failed| failed.min(rate)));
            self.exclude(rate);
        } else if open.disturbed >= DISTURBED_MAX {
            self.disturbed = Some(self.disturbed.map_or(rate, |lowest| lowest.min(rate)));
            self.exclude(rate);
        } else {
            self.open = Some(open);
        }
    }

    fn handle_sustained(&mut self, rate: f64) {
        if self.sustained == Some(rate) {
            self.passed += 1;
        } else {
            self.earlier.extend(self.sustained.replace(rate));
            self.passed = 1;
        }
    }

    /// A rate is not shown to be sustained. If the confirmation of the result has failed, the
    /// search continues between this rate and the one below.
    fn exclude(&mut self, rate: f64) {
        if self.sustained == Some(rate) {
            self.sustained = self.earlier.pop();
            self.passed = u32::from(self.sustained.is_some());
        }
    }

    fn lowest_excluded(&self) -> Option<f64> {
        let lower = |one: f64, other: Option<f64>| other.map_or(one, |other| other.min(one));
        self.failed.map(|failed| lower(failed, self.disturbed)).or(self.disturbed)
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

    /// The lowest rate at which this machine disturbed every trial; `None` if there is none.
    #[must_use]
    pub const fn disturbed(&self) -> Option<f64> {
        self.disturbed
    }

    /// Upper limit of the search, above the highest sustained rate.
    #[must_use]
    pub fn limit(&self) -> RateLimit {
        match (self.failed, self.disturbed) {
            (None, None) => RateLimit::Range,
            (Some(failed), Some(disturbed)) if failed <= disturbed => RateLimit::Network,
            (Some(_), None) => RateLimit::Network,
            (_, Some(_)) => RateLimit::Machine,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RANGE: RateRange =
        RateRange { first: 100.0, min: 1.0, max: 1e6, resolution: 0.05, confirmations: 2 };

    /// Searches, with trials that `trial` decides by their rate and number. Returns the result and
    /// the number of trials.
    fn search_with(trial: impl Fn(f64, u32) -> TrialResult) -> (RateSearch, u32) {
        let mut search = RateSearch::new(RANGE);
        let mut trials = 0;
        while let Some(rate) = search.next_rate() {
            search.handle_trial(rate, trial(rate, trials));
            trials += 1;
            assert!(trials < 200, "the search ends");
        }
        (search, trials)
    }

    fn search(trial: impl Fn(f64, u32) -> bool) -> (RateSearch, u32) {
        search_with(
            |rate, number| {
                if trial(rate, number) { TrialResult::Sustained } else { TrialResult::Failed }
            },
        )
    }

    #[test]
    fn a_rate_above_the_range_is_the_end_of_the_range() {
        let (found, _) = search(|_, _| true);
        assert_eq!((found.sustained(), found.limit()), (Some(1e6), RateLimit::Range));
        let (found, _) = search(|_, _| false);
        assert_eq!((found.sustained(), found.limit()), (None, RateLimit::Network));
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

    #[test]
    fn trials_that_fail_now_and_then_do_not_lower_the_result() {
        // Every third trial fails, as after a pause of the machine.
        let (found, _) = search(|rate, number| rate <= 1_000.0 && number % 3 != 0);
        let sustained = found.sustained().unwrap();
        assert!((950.0..=1_000.0).contains(&sustained), "{sustained}");
        assert_eq!(found.limit(), RateLimit::Network);
    }

    #[test]
    fn disturbed_trials_are_repeated_and_decide_nothing() {
        // Four of five trials are disturbed.
        let (found, _) = search_with(|rate, number| match number % 5 {
            4 if rate <= 1_000.0 => TrialResult::Sustained,
            4 => TrialResult::Failed,
            _ => TrialResult::Disturbed,
        });
        // A failing rate needs two undisturbed trials, which five disturbed ones prevent: the
        // machine is the limit, and says so.
        let sustained = found.sustained().unwrap();
        assert!((950.0..=1_000.0).contains(&sustained), "{sustained}");
        assert_eq!((found.limit(), found.failed()), (RateLimit::Machine, None));
    }

    #[test]
    fn a_machine_that_is_too_slow_is_the_limit_and_not_the_network() {
        let (found, _) = search_with(|rate, _| match rate {
            _ if rate <= 500.0 => TrialResult::Sustained,
            _ => TrialResult::Disturbed,
        });
        let sustained = found.sustained().unwrap();
        assert!((470.0..=500.0).contains(&sustained), "{sustained}");
        assert_eq!((found.limit(), found.failed()), (RateLimit::Machine, None));
        assert!(found.disturbed().unwrap() > 500.0);
        // The network fails below the limit of the machine.
        let (found, _) = search_with(|rate, _| match rate {
            _ if rate <= 300.0 => TrialResult::Sustained,
            _ if rate <= 500.0 => TrialResult::Failed,
            _ => TrialResult::Disturbed,
        });
        assert_eq!(found.limit(), RateLimit::Network);
        let (found, _) = search_with(|_, _| TrialResult::Disturbed);
        assert_eq!((found.sustained(), found.limit()), (None, RateLimit::Machine));
    }

    proptest! {
        #[test]
        fn a_limit_is_found_with_the_resolution(limit in 1.0..9e5_f64) {
            let (found, trials) = search(|rate, _| rate <= limit);
            let sustained = found.sustained().unwrap();
            prop_assert!(sustained <= limit && sustained * 1.051 >= limit, "{sustained}");
            prop_assert!(found.failed().unwrap() > limit);
            prop_assert!(trials < 50, "{trials}");
        }
    }
}
