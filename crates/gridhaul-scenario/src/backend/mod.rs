//! The trait that every backend implements, and the queue of runs of backends with replications.

mod run_queue;

use std::io;
use std::sync::Arc;

use crate::answer::{Answer, RecordingFile};
use crate::scenario::{Load, Scenario};

pub use crate::run_error::{RunError, Unsupported};
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

/// The flows whose messages another program sends, as keys that a backend does not support.
#[must_use]
pub fn external_loads(scenario: &Scenario) -> Vec<Unsupported> {
    let external = scenario.flow.iter().filter(|(_, flow)| flow.load == Load::External);
    let unsupported = |(name, _): (&String, _)| Unsupported {
        key: format!("flow.{name}.load"),
        reason: "a run has no program that sends the messages of load `external`; step the \
                 simulation with a `Session`, or use load `trace`"
            .to_owned(),
    };
    external.map(unsupported).collect()
}

/// The attacks of a scenario, as keys that a backend does not support.
#[must_use]
pub fn attacks(scenario: &Scenario) -> Vec<Unsupported> {
    let unsupported = |name: &String| Unsupported {
        key: format!("attack.{name}"),
        reason: "only the simulator has attacks; use backend `sim`, or remove this table"
            .to_owned(),
    };
    scenario.attack.keys().map(unsupported).collect()
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

    /// The file of recorded data, which may exceed the memory. Without a file, recordings are kept
    /// in memory.
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
