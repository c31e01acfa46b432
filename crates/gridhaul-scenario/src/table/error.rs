//! Tables that an answer does not have.

use thiserror::Error;

/// Why an answer has no table of a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TableError {
    /// The answer has the means of the replications, and not their values.
    #[error(
        "{answer}: point {point} has the means of {count} replications, and not the value of \
         each\n  help: run the scenario again with `record.each_replication = true`"
    )]
    NoReplications {
        /// Label of the answer.
        answer: String,
        /// Number of the point.
        point: usize,
        /// Number of its replications.
        count: u32,
    },
}
