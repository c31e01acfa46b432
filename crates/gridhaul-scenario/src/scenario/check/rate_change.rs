//! Checks of rates that change at stated times.

use super::Report;
use crate::scenario::{Direction, RateSchedule};

impl Report<'_> {
    pub(super) fn rate_changes(&mut self, key: &str, direction: &Direction) {
        let before = self.diagnostics.len();
        for (index, change) in direction.rate_change.iter().enumerate() {
            let key = format!("{key}.rate_change[{index}]");
            if change.rate.as_bits_per_sec() == 0 {
                self.refuse(
                    format!("{key}.rate"),
                    "a change needs a rate above 0",
                    "write \"1 Mbit/s\"; for a time without transmission use `outage` with \
                     mode = \"hold\"",
                );
            }
            if change.every.is_some_and(|every| every.is_zero()) {
                self.refuse(
                    format!("{key}.every"),
                    "the period of a recurring change must be above 0",
                    "write \"24 h\", or leave it out for a single change",
                );
            }
        }
        if self.diagnostics.len() > before {
            return;
        }
        let occurrences = direction
            .rate_change
            .iter()
            .map(|change| change.occurrences(self.scenario.duration))
            .fold(0, u64::saturating_add);
        if occurrences > RateSchedule::CHANGES_MAX {
            self.refuse(
                format!("{key}.rate_change"),
                format!("the rate changes {occurrences} times in {}", self.scenario.duration),
                format!(
                    "the limit is {} changes of a direction; use a longer `every`, or the \
                     mean rate",
                    RateSchedule::CHANGES_MAX
                ),
            );
        }
    }
}
