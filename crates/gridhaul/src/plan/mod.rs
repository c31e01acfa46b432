//! Planning: search for the cheapest candidate that meets the limits, by the analytical model and
//! then by simulation.
//!
//! `candidate` lists the candidates and their costs, `evaluate` applies the model, `search` finds
//! the cheapest feasible candidate. `verify` simulates it and continues the search by simulation if
//! model and simulation disagree: `simulation_runs` runs the replications, `evidence` decides when
//! they are enough, `dominance` names candidates that need no simulation, `agreement` compares
//! model and simulation, `neighbours` measures the distance between candidates. `infeasible`
//! explains why no candidate is feasible.

mod agreement;
mod candidate;
mod charts;
mod confidence;
mod document;
mod dominance;
mod evaluate;
mod evidence;
mod infeasible;
mod limits;
mod neighbours;
mod request;
mod search;
mod simulation_runs;
mod simulation_tables;
mod summary;
mod tables;
#[cfg(test)]
mod test_backends;
mod verify;
#[cfg(test)]
mod verify_tests;

use std::collections::BTreeMap;

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_report::{NamedChart, TextTable};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::{Choice, Choices, PlanSpecification, Scenario};

use crate::error::Error;
use candidate::{Candidate, CostItem, CostModel, candidates};
use evaluate::{CandidateError, Evaluation, Evaluator};
use infeasible::{Infeasible, infeasible};
use limits::{Limit, limits};
pub use request::{PlanRequest, check, plan};
use search::{Alternative, Search};
use simulation_runs::SimulatedCandidate;
pub use verify::VerificationDepth;
use verify::{Basis, Verification};
use verify::{Verified, verify};

/// The outcome of planning.
#[derive(Debug)]
pub struct PlanOutcome {
    pub(crate) plan: PlanSpecification,
    pub(crate) choices: Choices,
    pub(crate) limits: Vec<Limit>,
    /// Number of candidates, and of those that the model evaluated.
    pub(crate) candidates: usize,
    pub(crate) evaluated: usize,
    /// The cheapest candidate that meets all limits: in its simulation or, without verification, by
    /// the model.
    pub(crate) winner: Option<Winner>,
    /// Basis of the choice.
    pub(crate) basis: Basis,
    /// Simulated candidates in this order; `None` without verification.
    pub(crate) simulations: Option<Vec<SimulatedCandidate>>,
    /// Whether the model rejects every candidate.
    pub(crate) rejected: bool,
    /// Cheaper neighbours of the winner that were not simulated, because the maximum number was
    /// reached.
    pub(crate) not_simulated: usize,
    /// Candidates that were not simulated, because a simulated one excludes them.
    pub(crate) excluded: usize,
    /// Alternatives to the winner, with their evaluation by the model.
    pub(crate) alternatives: Vec<(Alternative, Evaluation)>,
    /// Why there is no winner, if the model rejects every candidate.
    pub(crate) infeasible: Option<Infeasible>,
    /// Number of candidates without an answer of the model, by reason.
    pub(crate) without_answer: BTreeMap<String, usize>,
    pub(crate) charts: Vec<NamedChart>,
}

/// The chosen candidate.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) candidate: Candidate,
    pub(crate) items: Vec<CostItem>,
    /// Evaluation by the model.
    pub(crate) model: Evaluation,
    /// The scenario with the chosen values, which can be run.
    pub(crate) scenario: Scenario,
}

impl PlanOutcome {
    pub(crate) fn keys(&self) -> &[Choice] {
        self.choices.keys()
    }

    /// The simulation of the winner.
    pub(crate) fn verified(&self) -> Option<&SimulatedCandidate> {
        let winner = self.winner.as_ref()?;
        let mut simulations = self.simulations.iter().flatten();
        simulations.find(|checked| checked.candidate == winner.candidate)
    }

    /// The simulation of a candidate.
    pub(crate) fn simulated(&self, candidate: &Candidate) -> Option<&SimulatedCandidate> {
        self.simulations
            .iter()
            .flatten()
            .find(|checked| checked.candidate.parameters == candidate.parameters)
    }

    /// The scenario with the chosen values; `None` if no candidate meets every limit.
    #[must_use]
    pub fn choice(&self) -> Option<&Scenario> {
        self.winner.as_ref().map(|winner| &winner.scenario)
    }

    /// The result in a few sentences.
    #[must_use]
    pub fn summary(&self) -> String {
        summary::summary(self)
    }

    /// Tables of the choice, its costs, limits and alternatives, in the order of the report.
    #[must_use]
    pub fn tables(&self) -> Vec<TextTable> {
        tables::tables(self)
    }

    /// Charts of the limits around the choice.
    #[must_use]
    pub fn charts(&self) -> &[NamedChart] {
        &self.charts
    }

    /// The outcome as JSON: the file `plan.json`. `scenario` is the planned scenario.
    #[must_use]
    pub fn document(&self, scenario: &Scenario) -> serde_json::Value {
        document::document(scenario, self)
    }

    /// The answers of the model and, if it was simulated, of the simulator to the choice; empty
    /// without a choice.
    ///
    /// # Errors
    /// The model has no answer.
    pub fn answers(&self) -> Result<Vec<Answer>, Error> {
        let Some(choice) = self.choice() else { return Ok(Vec::new()) };
        let mut answers = vec![Model::REFINED.run(choice, &NoProgress)?];
        answers.extend(self.simulation());
        // A report has warnings of other candidates as well, so that each names its candidate.
        let candidate =
            self.winner.as_ref().map(|winner| winner.candidate.parameters.describe(self.keys()));
        for warning in answers.iter_mut().flat_map(|answer| &mut answer.warnings) {
            warning.about =
                format!("{}: {}", candidate.as_deref().unwrap_or_default(), warning.about);
        }
        Ok(answers)
    }

    /// The answer of the winner's simulation over its replications.
    fn simulation(&self) -> Option<Answer> {
        self.verified()?.evidence.answer()
    }
}

/// Finds the cheapest feasible candidate. `model` evaluates candidates; without a verification, its
/// result is final.
pub(crate) fn cheapest(
    scenario: &Scenario,
    model: &dyn Backend,
    verification: Option<&Verification<'_>>,
) -> Result<PlanOutcome, Error> {
    let plan = scenario.plan.clone().unwrap_or_default();
    let choices = scenario.choices()?;
    let limits = limits(scenario, &plan);
    let candidates = candidates(scenario, &plan, choices.keys());
    let cost_model = CostModel::new(scenario, &plan, choices.keys());
    let mut search = Search {
        candidates: &candidates,
        choices: choices.keys(),
        cost_model,
        evaluator: Evaluator::new(model, &choices, &limits),
    };
    let first = search.cheapest(|_| true)?;
    ensure_answers(&without_answer(&search), candidates.len())?;
    let verified = match verification {
        Some(how) => simulate(&mut search, &limits, &choices, how, first)?,
        None => None,
    };
    let (mut basis, mut not_simulated, mut excluded) = (Basis::Model, 0, 0);
    let mut simulations = None;
    let mut chosen = first.map(|index| candidates[index].clone());
    if let Some(verified) = verified {
        let winner = verified.winner.map(|index| verified.simulations[index].candidate.clone());
        (basis, chosen) = (verified.basis, winner);
        (not_simulated, excluded) = (verified.not_simulated, verified.excluded);
        simulations = Some(verified.simulations);
    }
    let rejected_all = first.is_none() && chosen.is_none();
    let infeasible = if rejected_all { Some(infeasible(&mut search)?) } else { None };
    let others = match &chosen {
        Some(winner) => search.others(winner)?,
        None => Vec::new(),
    };
    let others = evaluated(&mut search, others)?;
    let anchor = (chosen.clone())
        .or_else(|| infeasible.as_ref()?.nearest.clone())
        .or_else(|| Some(simulations.as_ref()?.last()?.candidate.clone()));
    let charts = match &anchor {
        Some(anchor) => charts::charts(&mut search, &limits, &plan, anchor, chosen.is_some())?,
        None => Vec::new(),
    };
    let winner = match chosen {
        Some(candidate) => Some(Winner {
            items: cost_model.items(&candidate.parameters),
            model: search.evaluator.evaluate(&candidate.parameters)?.clone(),
            scenario: choices
                .scenario(&candidate.parameters.values, candidate.parameters.aggregators)?,
            candidate,
        }),
        None => None,
    };
    let (evaluated, without_answer) = (search.evaluator.evaluated(), without_answer(&search));
    Ok(PlanOutcome {
        candidates: candidates.len(),
        evaluated,
        plan,
        limits,
        winner,
        basis,
        simulations,
        rejected: first.is_none(),
        not_simulated,
        excluded,
        alternatives: others,
        infeasible,
        without_answer,
        charts,
        choices,
    })
}

/// Alternatives with their evaluation by the model.
fn evaluated(
    search: &mut Search<'_>,
    others: Vec<Alternative>,
) -> Result<Vec<(Alternative, Evaluation)>, Error> {
    let evaluate = |other: Alternative| {
        let evaluation = search.evaluator.evaluate(&other.candidate.parameters)?.clone();
        Ok((other, evaluation))
    };
    others.into_iter().map(evaluate).collect()
}

/// Simulates the model's choice or, if the model rejects every candidate, the one closest to the
/// limits.
fn simulate(
    search: &mut Search<'_>,
    limits: &[Limit],
    choices: &Choices,
    how: &Verification<'_>,
    first: Option<usize>,
) -> Result<Option<Verified>, Error> {
    let start = match first {
        Some(first) => Some(first),
        None => search.nearest(|_| true)?,
    };
    let Some(start) = start else { return Ok(None) };
    verify(search, limits, choices, how, (start, first.is_some())).map(Some)
}

/// Returns an error if the model has no answer to any candidate.
fn ensure_answers(reasons: &BTreeMap<String, usize>, candidates: usize) -> Result<(), Error> {
    if reasons.is_empty() || reasons.values().sum::<usize>() < candidates {
        return Ok(());
    }
    let reasons: Vec<_> = reasons.keys().map(String::as_str).collect();
    Err(anyhow!(
        "the analytical model supports none of the {candidates} candidates:\n{}\n  help: change \
         these keys, or simulate candidates with `gridhaul sweep`",
        reasons.join("\n")
    )
    .into())
}

/// Number of evaluated candidates without an answer, by reason.
fn without_answer(search: &Search<'_>) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    for candidate in search.candidates {
        let Some(evaluation) = search.evaluator.known(&candidate.parameters) else { continue };
        if let Some(CandidateError::NoAnswer(why)) = &evaluation.error {
            *reasons.entry(why.clone()).or_insert(0) += 1;
        }
    }
    reasons
}
