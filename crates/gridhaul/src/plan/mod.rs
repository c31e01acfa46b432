//! Planning: the cheapest choice that keeps limits, by equations, and then by simulation.
//!
//! `trial` makes the candidates and their costs, `judge` asks the equations, `search` finds the
//! cheapest. `verify` simulates it and searches on by simulation where the two differ: `bench` runs the
//! replications, `evidence` decides when they are enough, `agreement` compares, `neighbours` says what lies
//! beside a candidate. `impossible` says which limit rules out every candidate.

mod agreement;
mod bench;
mod document;
mod evidence;
#[cfg(test)]
mod fake;
mod finding;
mod impossible;
mod judge;
mod limits;
mod neighbours;
mod picture;
mod request;
mod search;
mod simulated;
mod tables;
mod trial;
mod verify;

use std::collections::BTreeMap;

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_report::{NamedChart, TextTable};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::{Choice, Choices, PlanSpecification, Scenario};

use crate::error::Error;
use bench::Checked;
use impossible::{Impossible, impossible};
use judge::{CandidateError, Judge, Judgement};
use limits::{Limit, limits};
pub use request::{PlanRequest, check, plan};
use search::{Other, Search};
use trial::{Candidate, Item, Prices, candidates};
pub use verify::Depth;
use verify::{Basis, Verification};
use verify::{Verified, verify};

/// What planning found out.
#[derive(Debug)]
pub struct Outcome {
    pub(crate) plan: PlanSpecification,
    pub(crate) choices: Choices,
    pub(crate) limits: Vec<Limit>,
    /// Number of candidates, and of those that the equations judged.
    pub(crate) candidates: usize,
    pub(crate) judged: usize,
    /// The cheapest that keeps all limits: in its simulation, or by equations where nothing was to be
    /// simulated.
    pub(crate) winner: Option<Winner>,
    /// What the winner rests on.
    pub(crate) basis: Basis,
    /// Candidates that were simulated, in this order; `None` where none was to be.
    pub(crate) tried: Option<Vec<Checked>>,
    /// Whether the equations reject every candidate.
    pub(crate) rejected: bool,
    /// Cheaper neighbours of the winner that were not simulated, because no more might be.
    pub(crate) left: usize,
    /// Choices beside the winner, with what the equations say.
    pub(crate) others: Vec<(Other, Judgement)>,
    /// Why there is no winner, where the equations already rule out everything.
    pub(crate) impossible: Option<Impossible>,
    /// Why candidates have no answer by equations, and how many.
    pub(crate) refused: BTreeMap<String, usize>,
    pub(crate) pictures: Vec<NamedChart>,
}

/// The chosen candidate.
#[derive(Debug)]
pub(crate) struct Winner {
    pub(crate) candidate: Candidate,
    pub(crate) items: Vec<Item>,
    /// What the equations say.
    pub(crate) model: Judgement,
    /// The scenario with its values, which can be run.
    pub(crate) scenario: Scenario,
}

impl Outcome {
    pub(crate) fn keys(&self) -> &[Choice] {
        self.choices.keys()
    }

    /// The simulation of the winner.
    pub(crate) fn verified(&self) -> Option<&Checked> {
        let winner = self.winner.as_ref()?;
        let mut tried = self.tried.iter().flatten();
        tried.find(|checked| checked.candidate == winner.candidate)
    }

    /// The simulation of a candidate.
    pub(crate) fn simulated(&self, candidate: &Candidate) -> Option<&Checked> {
        self.tried.iter().flatten().find(|checked| checked.candidate.trial == candidate.trial)
    }

    /// The scenario with the values that were chosen; `None` if no choice keeps every limit.
    #[must_use]
    pub fn choice(&self) -> Option<&Scenario> {
        self.winner.as_ref().map(|winner| &winner.scenario)
    }

    /// The finding in a few sentences.
    #[must_use]
    pub fn finding(&self) -> String {
        finding::finding(self)
    }

    /// Tables of the choice, its costs, its limits and its neighbours, in the order in which they are read.
    #[must_use]
    pub fn tables(&self) -> Vec<TextTable> {
        tables::tables(self)
    }

    /// Charts of the limits around the choice.
    #[must_use]
    pub fn charts(&self) -> &[NamedChart] {
        &self.pictures
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
        let mut answers = vec![Model.run(choice, &NoProgress)?];
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
) -> Result<Outcome, Error> {
    let plan = scenario.plan.clone().unwrap_or_default();
    let choices = scenario.choices()?;
    let limits = limits(scenario, &plan);
    let candidates = candidates(scenario, &plan, choices.keys());
    let prices = Prices::new(scenario, &plan, choices.keys());
    let mut search = Search {
        candidates: &candidates,
        choices: choices.keys(),
        prices,
        judge: Judge::new(model, &choices, &limits),
    };
    let first = search.cheapest(|_| true)?;
    answerable(&refused(&search), candidates.len())?;
    let verified = match verification {
        Some(how) => simulate(&mut search, &limits, &choices, how, first)?,
        None => None,
    };
    let (mut basis, mut left, mut tried) = (Basis::Equations, 0, None);
    let mut chosen = first.map(|index| candidates[index].clone());
    if let Some(verified) = verified {
        let winner = verified.winner.map(|index| verified.tried[index].candidate.clone());
        (basis, left, chosen) = (verified.basis, verified.left, winner);
        tried = Some(verified.tried);
    }
    let hopeless = first.is_none() && chosen.is_none();
    let impossible = if hopeless { Some(impossible(&mut search)?) } else { None };
    let others = match &chosen {
        Some(winner) => search.others(winner)?,
        None => Vec::new(),
    };
    let others = others
        .into_iter()
        .map(|other| Ok((other.clone(), search.judge.ask(&other.candidate.trial)?.clone())))
        .collect::<Result<Vec<_>, Error>>()?;
    let anchor = (chosen.clone())
        .or_else(|| impossible.as_ref()?.nearest.clone())
        .or_else(|| Some(tried.as_ref()?.last()?.candidate.clone()));
    let pictures = match &anchor {
        Some(anchor) => picture::pictures(&mut search, &limits, &plan, anchor, chosen.is_some())?,
        None => Vec::new(),
    };
    let winner = match chosen {
        Some(candidate) => Some(Winner {
            items: prices.items(&candidate.trial),
            model: search.judge.ask(&candidate.trial)?.clone(),
            scenario: choices.scenario(&candidate.trial.values, candidate.trial.collectors)?,
            candidate,
        }),
        None => None,
    };
    let (judged, refused) = (search.judge.asked(), refused(&search));
    Ok(Outcome {
        candidates: candidates.len(),
        judged,
        plan,
        limits,
        winner,
        basis,
        tried,
        rejected: first.is_none(),
        left,
        others,
        impossible,
        refused,
        pictures,
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
        let Some(judgement) = search.judge.known(&candidate.trial) else { continue };
        if let Some(CandidateError::NoAnswer(why)) = &judgement.error {
            *refused.entry(why.clone()).or_insert(0) += 1;
        }
    }
    refused
}
