//! The backends that run cases.

mod endpoints;
mod kernel;
mod path;
mod recorder;
mod sim;

use crate::case::Case;
use crate::compare::{BackendTolerance, compare};
use crate::observation::Observation;

pub use kernel::{KernelBackend, RegisteredAlgorithms};
pub use sim::{RunOptions, SimBackend};

/// Runs a case and returns the observation.
pub trait CaseBackend: Sync {
    /// The name in `backends` of a case.
    fn name(&self) -> &'static str;

    /// Tolerance of the comparison.
    fn tolerance(&self) -> BackendTolerance {
        BackendTolerance::EXACT
    }

    /// The case with its differences on this backend applied.
    fn adapt_case(&self, case: &Case) -> Case {
        case.clone()
    }

    /// Adapts a case with [`Self::adapt_case`], runs it, and compares the observation.
    ///
    /// # Errors
    /// The reason why the case cannot be run, or the differences from the expectation.
    fn check(&self, case: &Case) -> Result<(), String> {
        let case = self.adapt_case(case);
        compare(&case, &self.run(&case)?, &self.tolerance())
    }

    /// Runs a case.
    ///
    /// # Errors
    /// The reason why the case cannot be run.
    fn run(&self, case: &Case) -> Result<Observation, String>;
}

/// All backends.
#[must_use]
pub fn all() -> [&'static dyn CaseBackend; 2] {
    [&SimBackend, &KernelBackend]
}
