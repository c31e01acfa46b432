//! The simulator with limits of memory and time.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use super::ensure_possible;
use crate::engine::Engine;

/// The simulator, which rejects runs that are estimated to exceed the memory or the time limit.
pub(crate) struct BoundedSim(pub(crate) Engine);

impl Backend for BoundedSim {
    fn name(&self) -> &'static str {
        self.sim().name()
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        self.sim().supports(scenario)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let possible = ensure_possible(scenario, &self.0);
        possible.map_err(|error| RunError::Invalid(format!("{error:#}")))?;
        self.sim().run(scenario, progress)
    }
}

impl BoundedSim {
    const fn sim(&self) -> Sim {
        Sim { threads: self.0.threads }
    }
}
