//! Backend sim: packets on a virtual clock, every run audited.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;

/// The packet simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sim {
    /// Threads for repeats and sweep points; 0: one for each core.
    pub threads: usize,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn supports(&self, _scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        Ok(())
    }

    fn run(&self, _scenario: &Scenario, _progress: &dyn Progress) -> Result<Answer, RunError> {
        Err(RunError::Invalid("not wired yet".into()))
    }
}
