//! Verification: the choice of the equations is simulated, and where the two differ, the cheapest choice is
//! searched for by simulation.

use std::collections::BTreeSet;

use gridhaul_scenario::backend::{Backend, Progress};
use gridhaul_scenario::scenario::Choices;

use super::bench::{Bench, Checked, Until};
use super::limits::Limit;
use super::neighbours::{differing, steps};
use super::search::Search;
use crate::failure::Failure;

/// How the choice of the equations is verified.
pub(crate) struct Verification<'a> {
    pub(crate) simulator: &'a (dyn Backend + Sync),
    pub(crate) depth: Depth,
    /// Most candidates that are simulated.
    pub(crate) tries: usize,
    /// Threads; 0: one for each core. The result does not depend on it.
    pub(crate) threads: usize,
    /// Makes what watches some replications, from a label.
    pub(crate) progress: &'a dyn Fn(&str) -> Box<dyn Progress>,
}

/// How much is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// The choice of the equations; more only where the simulation does not confirm it.
    Winner,
    /// Every candidate of the shortlist.
    Full,
}

/// What the choice rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// Equations alone: nothing was simulated.
    Equations,
    /// The choice of the equations, with which its simulation agrees.
    Both,
    /// A search by simulation.
    Simulation,
}

/// What was simulated, and the choice.
pub(crate) struct Verified {
    pub(crate) tried: Vec<Checked>,
    /// The choice, as an index into `tried`.
    pub(crate) winner: Option<usize>,
    pub(crate) basis: Basis,
    /// Cheaper neighbours of the choice that were not simulated, because no more might be.
    pub(crate) left: usize,
}

/// Simulates `start` and searches on by simulation unless equations and simulation agree about it.
///
/// `allowed` says whether `start` keeps every limit by equations. Where no candidate does, `start` is the one
/// that comes nearest, and dearer ones are not searched unless all of the shortlist are wanted.
pub(crate) fn verify(
    search: &mut Search<'_>,
    limits: &[Limit],
    choices: &Choices,
    how: &Verification<'_>,
    (start, allowed): (usize, bool),
) -> Result<Verified, Failure> {
    let mut bench = Bench::new(how, choices, limits)?;
    let found = bench.simulate(search, &[start], Until::Found)?;
    let confirmed = bench.tried.first().is_some_and(|first| first.keeps() && first.agrees());
    if how.depth == Depth::Full {
        let list = shortlist(search, start)?;
        bench.simulate(search, &list, Until::All)?;
    } else if confirmed {
        let Bench { tried, .. } = bench;
        return Ok(Verified { tried, winner: found, basis: Basis::Both, left: 0 });
    }
    let mut winner = cheapest(&bench.tried);
    if winner.is_none() && allowed {
        winner = dearer(search, &mut bench, start)?;
    }
    let left = cheaper(search, &mut bench, &mut winner)?;
    let own = winner == found && confirmed;
    let basis = if own { Basis::Both } else { Basis::Simulation };
    Ok(Verified { tried: bench.tried, winner, basis, left })
}

/// The cheapest simulated candidate that keeps every limit; of equally expensive ones the first.
fn cheapest(tried: &[Checked]) -> Option<usize> {
    let kept = tried.iter().enumerate().filter(|(_, checked)| checked.keeps());
    let cost = |checked: &Checked| checked.candidate.cost;
    kept.min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other))).map(|(index, _)| index)
}

/// What is simulated in any case with [`Depth::Full`]: what the table of other choices names, and whatever
/// differs from the choice by one step of one key.
fn shortlist(search: &mut Search<'_>, start: usize) -> Result<Vec<usize>, Failure> {
    let candidates = search.candidates;
    let others = search.others(&candidates[start])?;
    let from = &candidates[start].trial;
    let beside = |at: &usize| {
        let trial = &candidates[*at].trial;
        let named = others.iter().any(|other| other.candidate.trial == *trial);
        let next = differing(from, trial) == 1 && steps(from, trial, search.choices) == 1;
        *at != start && (named || next)
    };
    Ok((0..candidates.len()).filter(beside).collect())
}

/// Searches among candidates that cost at least as much as `start`, in the order of their cost: first those
/// within one step of every key, then within two, and so on. Returns the first that keeps every limit.
fn dearer(
    search: &mut Search<'_>,
    bench: &mut Bench<'_>,
    start: usize,
) -> Result<Option<usize>, Failure> {
    let from = search.candidates[start].clone();
    let mut radii: BTreeSet<usize> = BTreeSet::new();
    for candidate in search.candidates {
        radii.insert(steps(&from.trial, &candidate.trial, search.choices));
    }
    for radius in radii {
        let near = untried(search, bench, |search, at| {
            let candidate = &search.candidates[at];
            candidate.cost >= from.cost
                && steps(&from.trial, &candidate.trial, search.choices) <= radius
        });
        if let Some(found) = bench.simulate(search, &near, Until::Found)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Goes on to cheaper candidates within one step of every key of the best one, for as long as one of them
/// keeps every limit. Returns how many of the last neighbours were not simulated.
fn cheaper(
    search: &mut Search<'_>,
    bench: &mut Bench<'_>,
    winner: &mut Option<usize>,
) -> Result<usize, Failure> {
    while let Some(best) = *winner {
        let best = bench.tried[best].candidate.clone();
        let near = untried(search, bench, |search, at| {
            let candidate = &search.candidates[at];
            candidate.cost < best.cost
                && steps(&best.trial, &candidate.trial, search.choices) <= 1
        });
        let may = bench.left();
        match bench.simulate(search, &near, Until::Found)? {
            Some(found) => *winner = Some(found),
            None => return Ok(near.len().saturating_sub(may)),
        }
    }
    Ok(0)
}

fn untried(
    search: &Search<'_>,
    bench: &Bench<'_>,
    accept: impl Fn(&Search<'_>, usize) -> bool,
) -> Vec<usize> {
    let new = |at: &usize| {
        let trial = &search.candidates[*at].trial;
        bench.tried.iter().all(|checked| checked.candidate.trial != *trial)
    };
    (0..search.candidates.len()).filter(|at| accept(search, *at)).filter(new).collect()
}
