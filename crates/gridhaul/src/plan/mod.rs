//! Planning: the cheapest choice that keeps limits, by equations, and then by simulation.
//!
//! `parameters` makes the candidates and their costs, `judge` asks the equations, `search` finds the
//! cheapest. `verify` simulates it and searches on by simulation where the two differ: `simulation_runs` runs the
//! replications, `evidence` decides when they are enough, `agreement` compares, `neighbours` says what lies
//! beside a candidate. `infeasible` says which limit rules out every candidate.

mod agreement;
mod candidate;
mod charts;
mod document;
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

use std::collections::BTreeMap;

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_report::{NamedChart, TextTable};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Quiet};
use gridhaul_scenario::scenario::{Choice, Choices, Plan, Scenario};

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

/// What planning found out.
#[derive(Debug)]
pub struct PlanOutcome {
    pub(crate) plan: Plan,
    pub(crate) choices: Choices,
    pub(crate) limits: Vec<Limit>,
    /// Number of candidates, and of those that the equations evaluated.
    pub(crate) candidates: usize,
    pub(crate) evaluated: usize,
    /// The cheapest that keeps all limits: in its simulation, or by equations where nothing was to be
    /// simulated.
    pub(crate) winner: Option<Winner>,
    /// What the winner rests on.
    pub(crate) basis: Basis,
    /// Candidates that were simulated, in this order; `None` where none was to be.
    pub(crate) simulations: Option<Vec<SimulatedCandidate>>,
    /// Whether the equations reject every candidate.
    pub(crate) rejected: bool,
    /// Cheaper neighbours of the winner that were not simulated, because no more might be.
    pub(crate) not_simulated: usize,
    /// Choices beside the winner, with what the equations say.
    pub(crate) alternatives: Vec<(Alternative, Evaluation)>,
    /// Why there is no winner, where the equations already rule out everything.
    pub(crate) infeasible: Option<Infeasible>,
    /// Why candidates have no answer by equations, and how many.
    pub(crate) without_answer: BTreeMap<String, usize>,
    pub(crate) charts: Vec<NamedChart>,
}

/// The chosen candidate.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) candidate: Candidate,
    pub(crate) items: Vec<CostItem>,
    /// What the equations say.
    pub(crate) model: Evaluation,
    /// The scenario with its values, which can be run.
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

    /// The scenario with the values that were chosen; `None` if no choice keeps every limit.
    #[must_use]
    pub fn choice(&self) -> Option<&Scenario> {
        self.winner.as_ref().map(|winner| &winner.scenario)
    }

    /// The finding in a few sentences.
    #[must_use]
    pub fn summary(&self) -> String {
        summary::summary(self)
    }

    /// Tables of the choice, its costs, its limits and its neighbours, in the order in which they are read.
    #[must_use]
    pub fn tables(&self) -> Vec<TextTable> {
        tables::tables(self)
    }

    /// Charts of the limits around the choice.
    #[must_use]
    pub fn charts(&self) -> &[NamedChart] {
        &self.charts
    }

    /// Everything as JSON: the file `plan.json`. `scenario` is the one that was planned.
    #[must_use]
    pub fn document(&self, scenario: &Scenario) -> serde_json::Value {
        document::document(scenario, self)
    }

    /// What the equations answer to the choice and, if it was simulated, what the simulation answers; empty without a
    /// choice.
    ///
    /// # Errors
    /// The equations do not answer.
    pub fn answers(&self) -> Result<Vec<Answer>, Error> {
        let Some(choice) = self.choice() else { return Ok(Vec::new()) };
        let mut answers = vec![Model.run(choice, &Quiet)?];
        answers.extend(self.simulation());
        Ok(answers)
    }

    /// The answer of the winner's simulation, over its replications.
    fn simulation(&self) -> Option<Answer> {
        self.verified()?.evidence.answer()
    }
}

/// Finds the cheapest choice. `model` judges candidates; without a verification its word is final.
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
    answerable(&refused(&search), candidates.len())?;
    let verified = match verification {
        Some(how) => simulate(&mut search, &limits, &choices, how, first)?,
        None => None,
    };
    let (mut basis, mut not_simulated, mut simulations) = (Basis::Equations, 0, None);
    let mut chosen = first.map(|index| candidates[index].clone());
    if let Some(verified) = verified {
        let winner = verified.winner.map(|index| verified.simulations[index].candidate.clone());
        (basis, not_simulated, chosen) = (verified.basis, verified.not_simulated, winner);
        simulations = Some(verified.simulations);
    }
    let hopeless = first.is_none() && chosen.is_none();
    let infeasible = if hopeless { Some(infeasible(&mut search)?) } else { None };
    let others = match &chosen {
        Some(winner) => search.others(winner)?,
        None => Vec::new(),
    };
    let others = others
        .into_iter()
        .map(|other| {
            Ok((other.clone(), search.evaluator.evaluate(&other.candidate.parameters)?.clone()))
        })
        .collect::<Result<Vec<_>, Error>>()?;
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
    let (evaluated, refused) = (search.evaluator.evaluated(), refused(&search));
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
        alternatives: others,
        infeasible,
        without_answer: refused,
        charts,
        choices,
    })
}

/// Simulates the choice of the equations or, where they reject every candidate, the one that comes nearest.
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

/// An error where the equations have no answer to any of so many candidates.
fn answerable(refused: &BTreeMap<String, usize>, candidates: usize) -> Result<(), Error> {
    if refused.is_empty() || refused.values().sum::<usize>() < candidates {
        return Ok(());
    }
    let reasons: Vec<_> = refused.keys().map(String::as_str).collect();
    Err(anyhow!(
        "the equations have no answer to any of the {candidates} candidates:\n{}\n  help: change these \
         keys, or try choices by hand with `gridhaul sweep`",
        reasons.join("\n")
    )
    .into())
}

/// Why candidates that were asked about have no answer.
fn refused(search: &Search<'_>) -> BTreeMap<String, usize> {
    let mut refused = BTreeMap::new();
    for candidate in search.candidates {
        let Some(evaluation) = search.evaluator.known(&candidate.parameters) else { continue };
        if let Some(CandidateError::NoAnswer(why)) = &evaluation.error {
            *refused.entry(why.clone()).or_insert(0) += 1;
        }
    }
    refused
}
