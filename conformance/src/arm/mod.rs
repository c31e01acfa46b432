//! The arms: what can run a case.

mod ends;
mod route;
mod sim;

use crate::case::Case;
use crate::observe::Observation;

pub use sim::{Limits, SimArm};

/// Something that runs a case and says what it saw.
pub trait Arm: Sync {
    /// The name by which cases ask for it.
    fn name(&self) -> &'static str;

    /// Runs a case.
    ///
    /// # Errors
    /// Why it cannot be run here.
    fn run(&self, case: &Case) -> Result<Observation, String>;
}

/// Every arm.
#[must_use]
pub fn all() -> [&'static dyn Arm; 1] {
    [&SimArm]
}
