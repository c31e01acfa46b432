//! Planning: the cheapest choice that keeps limits, by equations, and then by simulation.
//!
//! `trial` makes the candidates and their costs, `judge` asks the equations, `search` finds the
//! cheapest, `verify` simulates it; `impossible` says what is in the way where there is none.

mod document;
#[cfg(test)]
mod fake;
mod impossible;
mod judge;
mod limits;
mod picture;
mod search;
mod tables;
mod trial;
mod verify;

use std::collections::BTreeMap;

use anyhow::anyhow;
use gridhaul_report::NamedChart;
use gridhaul_scenario::backend::{Backend, Progress};
use gridhaul_scenario::scenario::{Choice, Choices, Plan, Scenario};

use crate::failure::Failure;
pub(crate) use document::document;
use impossible::{Impossible, impossible};
use judge::{Judge, Judgement, Trouble};
use limits::{Limit, limits};
use search::{Other, Search};
pub(crate) use tables::{finding, tables};
use trial::{Candidate, Item, Prices, candidates};
use verify::{Checked, verify};

/// How the winner is verified.
pub(crate) struct Verification<'a> {
    pub(crate) simulator: &'a dyn Backend,
    /// Most candidates that are simulated.
    pub(crate) tries: usize,
    /// Watches the simulation of this try.
    pub(crate) progress: &'a dyn Fn(usize) -> Box<dyn Progress>,
}

/// What planning found out.
pub(crate) struct Outcome {
    pub(crate) plan: Plan,
    pub(crate) choices: Choices,
    pub(crate) limits: Vec<Limit>,
    /// Number of candidates, and of those that the equations judged.
    pub(crate) candidates: usize,
    pub(crate) judged: usize,
    /// The cheapest that keeps all limits and, where asked for, survived simulation.
    pub(crate) winner: Option<Winner>,
    /// Candidates that were simulated, in this order; `None` where none was to be.
    pub(crate) tried: Option<Vec<Checked>>,
    /// Choices beside the winner, with what the equations say.
    pub(crate) others: Vec<(Other, Judgement)>,
    /// Why there is no winner, where the equations already rule out everything.
    pub(crate) impossible: Option<Impossible>,
    /// Why candidates have no answer by equations, and how many.
    pub(crate) refused: BTreeMap<String, usize>,
    /// Factors by which simulations corrected the equations, for each limit.
    pub(crate) corrections: Vec<f64>,
    pub(crate) pictures: Vec<NamedChart>,
}

/// The chosen candidate.
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
}

/// Finds the cheapest choice. `model` judges candidates; without a verification its word is final.
pub(crate) fn plan(
    scenario: &Scenario,
    model: &dyn Backend,
    verification: Option<&Verification<'_>>,
) -> Result<Outcome, Failure> {
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
    let tried = match (first, verification) {
        (Some(_), Some(how)) => {
            Some(verify(&mut search, &limits, &choices, how.simulator, how.tries, how.progress)?)
        }
        _ => None,
    };
    let chosen = match &tried {
        Some(tried) => tried.iter().find(|t| t.survives).map(|t| t.candidate.clone()),
        None => first.map(|index| candidates[index].clone()),
    };
    let impossible = if first.is_none() { Some(impossible(&mut search)?) } else { None };
    let others = match &chosen {
        Some(winner) => search.others(winner)?,
        None => Vec::new(),
    };
    let others = others
        .into_iter()
        .map(|other| Ok((other.clone(), search.judge.ask(&other.candidate.trial)?.clone())))
        .collect::<Result<Vec<_>, Failure>>()?;
    let anchor = (chosen.clone())
        .or_else(|| Some(tried.as_ref()?.last()?.candidate.clone()))
        .or_else(|| impossible.as_ref()?.nearest.clone());
    let pictures = match &anchor {
        Some(anchor) => picture::pictures(&mut search, &limits, &plan, anchor, chosen.is_some())?,
        None => Vec::new(),
    };
    let refused = refused(&search);
    if !refused.is_empty() && refused.values().sum::<usize>() == candidates.len() {
        let reasons: Vec<_> = refused.into_keys().collect();
        return Err(anyhow!(
            "the equations have no answer to any of the {} candidates:\n{}\n  help: change these \
             keys, or try choices by hand with `gridhaul sweep`",
            candidates.len(),
            reasons.join("\n")
        )
        .into());
    }
    let winner = match chosen {
        Some(candidate) => Some(Winner {
            items: prices.items(&candidate.trial),
            model: search.judge.ask(&candidate.trial)?.clone(),
            scenario: choices.scenario(&candidate.trial.values, candidate.trial.collectors)?,
            candidate,
        }),
        None => None,
    };
    let (judged, corrections) = (search.judge.asked(), search.judge.corrections.clone());
    Ok(Outcome {
        candidates: candidates.len(),
        judged,
        corrections,
        plan,
        limits,
        winner,
        tried,
        others,
        impossible,
        refused,
        pictures,
        choices,
    })
}

/// Why candidates that were asked about have no answer.
fn refused(search: &Search<'_>) -> BTreeMap<String, usize> {
    let mut refused = BTreeMap::new();
    for candidate in search.candidates {
        let Some(judgement) = search.judge.known(&candidate.trial) else { continue };
        if let Some(Trouble::NoAnswer(why)) = &judgement.trouble {
            *refused.entry(why.clone()).or_insert(0) += 1;
        }
    }
    refused
}
