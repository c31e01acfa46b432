//! The trait that every backend implements.

use std::error::Error;
use std::fmt;

use crate::answer::Answer;
use crate::scenario::Scenario;

/// Something that answers scenarios: by equations, by simulation or on real kernels.
pub trait Backend {
    /// Short name, as in `--on sim`.
    fn name(&self) -> &'static str;

    /// Whether every key of the scenario can be honoured. A backend never ignores a key.
    ///
    /// # Errors
    /// Each key that cannot be honoured, and why.
    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>>;

    /// Answers the scenario, all its sweep points and repeats.
    ///
    /// # Errors
    /// A scenario that is not supported or not valid, or a run that broke an invariant.
    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError>;
}

/// A key that a backend cannot honour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Path of the key in the scenario, such as `link.uplink.forward.queue`.
    pub key: String,
    /// Why, and what to do instead.
    pub reason: String,
}

/// Is told how far a run has come.
pub trait Progress: Sync {
    /// `done` of `total` units of work are finished.
    fn advance(&self, done: u64, total: u64);

    /// Whether the run is to end early. A backend then begins no further run, abandons those that
    /// are under way and answers with what is finished (see [`Answer::incomplete`]).
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn advance(&self, _done: u64, _total: u64) {}
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Keys that this backend cannot honour.
    #[error("{}", list(.0))]
    Unsupported(Vec<Unsupported>),
    /// The scenario contradicts itself.
    #[error("{0}")]
    Invalid(String),
    /// The machine did not do what a run on real kernels needs.
    #[error("{0}")]
    Machine(String),
    /// The run was interrupted before a first replication was finished.
    #[error("interrupted before a first run was finished")]
    Interrupted,
    /// The auditor found that a run broke an invariant: a defect of gridhaul, not of the scenario. The
    /// error is that of the backend.
    #[error("the run broke an invariant, which is a fault of gridhaul; please report it:\n{0}")]
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
