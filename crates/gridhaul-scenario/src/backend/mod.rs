//! The trait that every backend implements, and the queue of runs of backends with replications.

mod run_queue;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::answer::{Answer, RecordingFile};
use crate::scenario::Scenario;

pub use run_queue::{QueuedRun, RunQueue};

/// A backend, which answers scenarios: by an analytical model, by simulation or with real kernels.
pub trait Backend {
    /// Short name, such as `sim`.
    fn name(&self) -> &'static str;

    /// Checks that the backend supports every key of the scenario. A backend never ignores a key.
    ///
    /// # Errors
    /// Each unsupported key, with the reason.
    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>>;

    /// Answers the scenario: all points of its sweep with all replications.
    ///
    /// # Errors
    /// A scenario that is not supported or not valid, or a run that violated an invariant.
    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError>;
}

/// A key that a backend does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Path of the key in the scenario, such as `link.uplink.forward.queue`.
    pub key: String,
    /// The reason, and what to do instead.
    pub reason: String,
}

/// Observer of the progress of a run, and the storage of its recordings.
pub trait Progress: Sync {
    /// Reports that `done` of `total` work items are finished.
    fn advance(&self, done: u64, total: u64);

    /// Whether to stop early. A backend then starts no further run, aborts those in progress and
    /// returns an answer with the finished ones (see [`Answer::incomplete`]).
    fn is_interrupted(&self) -> bool {
        false
    }

    /// The file of recorded data, which may exceed the memory. Without a file, recordings are kept in
    /// memory.
    ///
    /// # Errors
    /// The file cannot be created.
    fn recording_file(&self) -> io::Result<Option<Arc<RecordingFile>>> {
        Ok(None)
    }
}

/// Ignores the progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn advance(&self, _done: u64, _total: u64) {}
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Keys that the backend does not support.
    #[error("{}", list(.0))]
    Unsupported(Vec<Unsupported>),
    /// The scenario is not valid.
    #[error("{0}")]
    Invalid(String),
    /// The machine lacks a feature that a run with real kernels needs, or an operation of it failed.
    #[error("{0}")]
    Machine(String),
    /// Recorded data could not be stored.
    #[error("cannot store recorded data: {0}")]
    Storage(#[from] io::Error),
    /// The run was interrupted before the first replication was finished.
    #[error("interrupted before the first run was finished")]
    Interrupted,
    /// The audit found a violated invariant, which is a defect of gridhaul, not of the scenario. The
    /// error comes from the backend.
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
