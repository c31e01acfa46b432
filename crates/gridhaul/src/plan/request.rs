//! What is asked of planning.

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_scenario::scenario::Scenario;

use super::verify::{Verification, VerificationDepth};
use super::{PlanOutcome, cheapest};
use crate::engine::{BoundedSim, Engine};
use crate::error::Error;
use crate::observer::Observer;

/// How a plan is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanRequest {
    /// What is simulated; `None`: nothing, the equations decide.
    pub verify: Option<VerificationDepth>,
    /// Most candidates that are simulated, at least 1.
    pub max_candidates: usize,
    /// Threads for the simulations; 0: one for each core. The result does not depend on it.
    pub threads: usize,
    /// Whether a simulation begins even if it is estimated to need more memory than is free, or more than 24 hours.
    pub ignore_estimate: bool,
}

impl Default for PlanRequest {
    /// The cheapest choice is simulated, and at most 64 candidates.
    fn default() -> Self {
        Self {
            verify: Some(VerificationDepth::Winner),
            max_candidates: 64,
            threads: 0,
            ignore_estimate: false,
        }
    }
}

/// Finds the cheapest choice that keeps every limit of the scenario's `[plan]`. `label` names the scenario in messages
/// and progress.
///
/// # Errors
/// A scenario without something to plan ([`check`]), one to which the equations have no answer, and the errors of the
/// simulations. A plan without a choice is no error: [`PlanOutcome::choice`] is `None`.
pub fn plan(
    scenario: &Scenario,
    request: &PlanRequest,
    label: &str,
    observer: &dyn Observer,
) -> Result<PlanOutcome, Error> {
    check(scenario, label)?;
    // Each replication is a job of its own; the plan decides how many run at the same time.
    let simulator = BoundedSim(Engine::sim(1, request.ignore_estimate));
    let progress = |part: &str| observer.begin(&format!("{label}, {part}"));
    let verification = request.verify.map(|depth| Verification {
        simulator: &simulator,
        depth,
        max_candidates: request.max_candidates,
        threads: request.threads,
        progress: &progress,
    });
    cheapest(scenario, &Model, verification.as_ref())
}

/// Checks that there is something to plan, and nothing that would be ignored; `file` names the scenario in errors.
///
/// # Errors
/// There is no `[plan]`, or there is a sweep.
pub fn check(scenario: &Scenario, file: &str) -> Result<(), Error> {
    if scenario.plan.is_none() {
        return Err(anyhow!(
            "{file}: there is no [plan] in this scenario\n  help: add what may be chosen \
             ([plan.choose]), what it costs ([plan.cost]) and what must hold ([plan.limit.<flow>])"
        )
        .into());
    }
    if !scenario.sweep.is_empty() {
        return Err(anyhow!(
            "{file}: sweep: a plan chooses one value for each key, and a sweep wants them all\n  \
             help: move the keys of the sweep to [plan.choose], or remove it"
        )
        .into());
    }
    Ok(())
}
