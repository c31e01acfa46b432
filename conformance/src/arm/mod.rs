//! The arms: what can run a case.

mod ends;
mod kernel;
mod route;
mod sim;
mod witness;

use crate::case::Case;
use crate::judge::{Allowance, judge};
use crate::observe::Observation;

pub use kernel::{KernelArm, RegisteredAlgorithms};
pub use sim::{Limits, SimArm};

/// Something that runs a case and says what it saw.
pub trait Arm: Sync {
    /// The name by which cases ask for it.
    fn name(&self) -> &'static str;

    /// What it cannot show more exactly.
    fn allowance(&self) -> Allowance {
        Allowance::EXACT
    }

    /// The case as it is on this arm.
    fn own(&self, case: &Case) -> Case {
        case.clone()
    }

    /// Runs a case, as [`Self::own`] has it, and compares.
    ///
    /// # Errors
    /// Why it cannot be run here, or where what was seen differs from what is expected.
    fn check(&self, case: &Case) -> Result<(), String> {
        let case = self.own(case);
        judge(&case, &self.run(&case)?, &self.allowance())
    }

    /// Runs a case.
    ///
    /// # Errors
    /// Why it cannot be run here.
    fn run(&self, case: &Case) -> Result<Observation, String>;
}

/// Every arm.
#[must_use]
pub fn all() -> [&'static dyn Arm; 2] {
    [&SimArm, &KernelArm]
}
