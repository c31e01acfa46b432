//! Entry point of planning.

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_scenario::scenario::Scenario;

use super::confidence::RUNS_DEFAULT;
use super::verify::{Verification, VerificationDepth};
use super::{PlanOutcome, cheapest};
use crate::engine::Engine;
use crate::error::Error;
use crate::estimate::BoundedSim;
use crate::observer::Observer;

/// Options of planning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanRequest {
    /// Candidates to simulate; `None`: none, the model decides.
    pub verify: Option<VerificationDepth>,
    /// Maximum number of candidates to simulate, at least 1.
    pub max_candidates: usize,
    /// Runs of the choice with different seeds, all of which must meet every limit: with 95 %
    /// confidence, 20 of 20 show that at least 86 % of runs do, and 59 of 59 at least 95 %.
    pub runs: usize,
    /// Threads for the simulations; 0: one per core. The result does not depend on this number.
    pub threads: usize,
    /// Whether a simulation begins even if it is estimated to need more memory than is free, or
    /// more than 24 hours.
    pub ignore_estimate: bool,
}

impl Default for PlanRequest {
    /// Simulate the cheapest candidate, and at most 64 in total.
    fn default() -> Self {
        Self {
            verify: Some(VerificationDepth::Winner),
            max_candidates: 64,
            runs: RUNS_DEFAULT,
            threads: 0,
            ignore_estimate: false,
        }
    }
}

/// Finds the cheapest candidate that meets every limit of the scenario's `[plan]`. `label` names
/// the scenario in messages and progress.
///
/// # Errors
/// A scenario without a plan ([`check`]), one that the analytical model does not support, and
/// errors of the simulations. A plan without a feasible candidate is not an error:
/// [`PlanOutcome::choice`] is `None`.
pub fn plan(
    scenario: &Scenario,
    request: &PlanRequest,
    label: &str,
    observer: &dyn Observer,
) -> Result<PlanOutcome, Error> {
    check(scenario, label)?;
    // Each replication is a run of its own; the planner decides how many run concurrently.
    let simulator = BoundedSim(Engine::sim(1, request.ignore_estimate));
    let progress = |part: &str| observer.begin(&format!("{label}, {part}"));
    let on_estimate = |estimate: &str| observer.on_estimate(estimate);
    let verification = request.verify.map(|depth| Verification {
        simulator: &simulator,
        depth,
        max_candidates: request.max_candidates,
        runs: request.runs,
        threads: request.threads,
        progress: &progress,
        on_estimate: &on_estimate,
    });
    cheapest(scenario, &Model::REFINED, verification.as_ref())
}

/// Checks that the scenario has a plan and no sweep, which planning would ignore; `file` names the
/// scenario in errors.
///
/// # Errors
/// There is no `[plan]`, or there is a sweep.
pub fn check(scenario: &Scenario, file: &str) -> Result<(), Error> {
    if scenario.plan.is_none() {
        return Err(anyhow!(
            "{file}: there is no [plan] in this scenario\n  help: add candidate values \
             ([plan.choose]), costs ([plan.cost]) and limits ([plan.limit.<flow>])"
        )
        .into());
    }
    if !scenario.sweep.is_empty() {
        return Err(anyhow!(
            "{file}: sweep: a plan chooses one value of each key and cannot be combined with a \
             sweep\n  help: move the keys of the sweep to [plan.choose], or remove it"
        )
        .into());
    }
    Ok(())
}
