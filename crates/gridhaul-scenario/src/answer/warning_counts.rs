//! Warnings of runs: one that only some replications have states how many these are.

use indexmap::IndexMap;

use super::{Run, Warning};

/// The warnings of the runs of all points.
#[derive(Debug, Default)]
pub(super) struct WarningCounts {
    counts: IndexMap<Warning, Count>,
}

/// The replications with a warning, and all replications of the points where it occurs.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    with_warning: usize,
    all: usize,
}

impl WarningCounts {
    /// Takes the warnings of the replications of a point.
    pub(super) fn take(&mut self, runs: &mut [Run]) {
        let all = runs.len();
        let mut at_point: IndexMap<Warning, usize> = IndexMap::new();
        for run in runs {
            let mut own = std::mem::take(&mut run.warnings);
            own.sort();
            own.dedup();
            for warning in own {
                *at_point.entry(warning).or_default() += 1;
            }
        }
        for (warning, with_warning) in at_point {
            let count = self.counts.entry(warning).or_default();
            count.with_warning += with_warning;
            count.all += all;
        }
    }

    /// The warnings. Without the number of replications, the warning of a single one would read as
    /// a statement about all.
    pub(super) fn into_warnings(self) -> impl Iterator<Item = Warning> {
        self.counts.into_iter().map(|(warning, Count { with_warning, all })| {
            if with_warning == all {
                return warning;
            }
            let message = format!("in {with_warning} of {all} replications: {}", warning.message);
            Warning { message, ..warning }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(messages: &[&str]) -> Run {
        let warning = |text: &&str| Warning { about: "f".to_owned(), message: (*text).to_owned() };
        Run { warnings: messages.iter().map(warning).collect(), ..Run::default() }
    }

    #[test]
    fn a_warning_of_some_replications_states_their_number() {
        let mut counts = WarningCounts::default();
        counts.take(&mut [run(&["late", "late", "slow"]), run(&["slow"]), run(&["slow"])]);
        // At another point, where all replications have it or none.
        counts.take(&mut [run(&["slow"]), run(&["slow"])]);
        let messages: Vec<_> = counts.into_warnings().map(|own| own.message).collect();
        assert_eq!(messages, ["in 1 of 3 replications: late", "slow"]);
    }
}
