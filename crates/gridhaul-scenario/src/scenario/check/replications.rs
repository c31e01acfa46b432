//! Consistency of the number of replications.

use super::Report;
use crate::scenario::{NarrowInterval, Replications};

impl Report<'_> {
    pub(super) fn replications(&mut self) {
        match self.scenario.replications {
            Replications::Fixed(0) => self.refuse(
                "replications",
                "there must be at least one replication",
                "write 1, or leave it out",
            ),
            Replications::Fixed(_) => {}
            Replications::Until(rule) => self.narrow_interval(&rule),
        }
        let (recorded, count) =
            (self.scenario.record.replication, self.scenario.replications.min());
        if recorded > 0 && recorded >= count {
            let (message, remedy) = match self.scenario.replications.until() {
                None => (
                    format!(
                        "there is no replication {recorded}: they are counted from 0 to {}",
                        count.saturating_sub(1)
                    ),
                    "choose a lower number, or raise `replications`",
                ),
                Some(_) => (
                    format!(
                        "a point may have no replication {recorded}: each has at least {count}, \
                         counted from 0"
                    ),
                    "choose a lower number, or raise `replications.min`",
                ),
            };
            self.refuse("record.replication", message, remedy);
        }
    }

    fn narrow_interval(&mut self, rule: &NarrowInterval) {
        let NarrowInterval { until, min, max, .. } = *rule;
        if until.ratio() <= 0.0 {
            self.refuse(
                "replications.until",
                "the confidence interval of a random quantity never has a width of 0",
                "write \"5 %\"",
            );
        }
        if min < 2 {
            self.refuse(
                "replications.min",
                "a confidence interval needs at least two replications",
                "write 5, or leave it out",
            );
        } else if max < min {
            self.refuse(
                "replications.max",
                format!("the largest number ({max}) is below the smallest (`min`: {min})"),
                "raise `max`, or lower `min`",
            );
        }
    }
}
