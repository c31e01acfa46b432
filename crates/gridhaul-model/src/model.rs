//! The backend: which equations answer which scenario.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;

use crate::steady;

/// Equations: bulk flows and transfers by the formulas of the steady state.
#[derive(Debug, Clone, Copy, Default)]
pub struct Model;

impl Backend for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        steady::supports(scenario)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        steady::answer(scenario, progress)
    }
}
