//! The reason for a missing answer.

use std::error::Error;
use std::fmt;
use std::io;

/// A key that a backend does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Path of the key in the scenario, such as `link.uplink.forward.queue`.
    pub key: String,
    /// The reason, and what to do instead.
    pub reason: String,
}

/// The reason for a missing answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Keys that the backend does not support.
    #[error("{}", list(.0))]
    Unsupported(Vec<Unsupported>),
    /// The scenario is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The machine lacks a feature that a run with real kernels needs, or an operation of it
    /// failed.
    #[error("{0}")]
    Machine(String),
    /// Recorded data could not be stored.
    #[error("cannot store recorded data: {0}")]
    Storage(#[from] io::Error),
    /// The run was interrupted before the first replication was finished.
    #[error("interrupted before the first run was finished")]
    Interrupted,
    /// The audit found a violated invariant, which is a defect of gridhaul, not of the scenario.
    /// The error comes from the backend.
    #[error("the run violated an invariant, which is a defect of gridhaul; please report it:\n{0}")]
    Audit(Box<dyn Error + Send + Sync>),
}

fn list(keys: &[Unsupported]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.reason)
    }
}
