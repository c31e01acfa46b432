//! Verification: the model's choice is simulated; if model and simulation disagree, the cheapest
//! candidate is searched for by simulation.

use std::collections::BTreeSet;

use gridhaul_scenario::backend::{Backend, Progress};
use gridhaul_scenario::scenario::Choices;
use gridhaul_scenario::units::counted;

use super::charts::money;
use super::confidence::statement;
use super::limits::Limit;
use super::neighbours::{differing, steps};
use super::search::Search;
use super::simulation_runs::{SimulatedCandidate, SimulationRuns, StopRule};
use crate::error::Error;
use crate::estimate::{concurrent_threads, simulation_seconds, time};

/// How the model's choice is verified.
pub(crate) struct Verification<'a> {
    pub(crate) simulator: &'a (dyn Backend + Sync),
    pub(crate) depth: VerificationDepth,
    /// Maximum number of candidates to simulate.
    pub(crate) max_candidates: usize,
    /// Runs of the choice, all of which must meet every limit.
    pub(crate) runs: usize,
    /// Threads; 0: one per core. The result does not depend on this number.
    pub(crate) threads: usize,
    /// Creates the progress of some replications from a label.
    pub(crate) progress: &'a dyn Fn(&str) -> Box<dyn Progress>,
    /// Reports the expected time.
    pub(crate) on_estimate: &'a dyn Fn(&str),
}

/// Candidates that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationDepth {
    /// The model's choice; further candidates only if the simulation does not confirm it.
    Winner,
    /// All candidates of the shortlist.
    Full,
}

/// Basis of the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    /// The model only: nothing was simulated.
    Model,
    /// The model, confirmed by simulation.
    Both,
    /// A search by simulation.
    Simulation,
}

/// The simulated candidates, and the choice.
pub(crate) struct Verified {
    pub(crate) simulations: Vec<SimulatedCandidate>,
    /// The choice, as an index into `simulations`.
    pub(crate) winner: Option<usize>,
    pub(crate) basis: Basis,
    /// Cheaper neighbours of the choice that were not simulated, because the maximum number was
    /// reached.
    pub(crate) not_simulated: usize,
    /// Candidates that were not simulated, because a simulated one excludes them.
    pub(crate) excluded: usize,
}

/// Simulates `start`, and the cheaper candidates around the best one. The search covers further
/// candidates if the simulation rejects `start`.
///
/// `feasible` says whether `start` meets every limit by the model. If no candidate does, `start` is
/// the closest one, and the search covers further candidates only if model and simulation disagree
/// about it: otherwise the equations, which reject them, are right.
pub(crate) fn verify(
    search: &mut Search<'_>,
    limits: &[Limit],
    choices: &Choices,
    verification: &Verification<'_>,
    (start, feasible): (usize, bool),
) -> Result<Verified, Error> {
    let mut runs = SimulationRuns::new(verification, choices, limits)?;
    estimate(search, &runs, start)?;
    let found = find(search, &mut runs, (start, feasible)).map_err(|error| match error {
        Error::Interrupted(_) => Error::Interrupted(best_so_far(search, &runs.simulations)),
        other => other,
    })?;
    let (winner, basis, not_simulated) = found;
    let (simulations, excluded) = (runs.simulations, runs.excluded.len());
    Ok(Verified { simulations, winner, basis, not_simulated, excluded })
}

/// The choice, its basis, and the number of cheaper candidates that were not simulated.
fn find(
    search: &mut Search<'_>,
    runs: &mut SimulationRuns<'_>,
    (start, feasible): (usize, bool),
) -> Result<(Option<usize>, Basis, usize), Error> {
    let first = runs.simulate(search, &[start], StopRule::FirstFeasible)?;
    let is_agreed = |runs: &SimulationRuns<'_>| {
        runs.simulations.first().is_some_and(|first| first.meets_limits() && first.agrees())
    };
    if runs.verification.depth == VerificationDepth::Full {
        let list = shortlist(search, start)?;
        runs.simulate(search, &list, StopRule::All)?;
    }
    let is_disputed = runs.simulations.first().is_some_and(|first| !first.agrees());
    loop {
        let mut winner = cheapest(&runs.simulations);
        if winner.is_none() && (feasible || is_disputed) {
            winner = search_around(search, runs, (start, feasible))?;
        }
        // A choice on which model and simulation agree may have a cheaper neighbour on which they
        // do not.
        let not_simulated = search_cheaper(search, runs, &mut winner)?;
        // A choice that is not confirmed no longer counts as one that meets the limits: the search
        // goes on.
        if let Some(place) = winner
            && !runs.confirm(search, place)?
        {
            continue;
        }
        let own = winner.is_some() && winner == first && is_agreed(runs);
        let basis = if own { Basis::Both } else { Basis::Simulation };
        return Ok((winner, basis, not_simulated));
    }
}

/// Reports the expected time before the first simulation.
fn estimate(search: &Search<'_>, runs: &SimulationRuns<'_>, start: usize) -> Result<(), Error> {
    let parameters = &search.candidates[start].parameters;
    let scenario = runs.choices.scenario(&parameters.values, parameters.aggregators)?;
    let Verification { runs: required, max_candidates, threads, on_estimate, .. } =
        runs.verification;
    let seconds = simulation_seconds(&scenario);
    let concurrent = concurrent_threads(*threads).min(*required as f64);
    on_estimate(&format!(
        "estimate: a run of the model's choice takes {}, and the {required} runs that confirm it \
         {} on {}. If it is not confirmed, the search simulates at most {max_candidates} \
         candidates, most of them in two or three runs",
        rough(seconds),
        rough(seconds * *required as f64 / concurrent),
        counted(concurrent as u64, "thread"),
    ));
    Ok(())
}

/// A time, without a value below ten seconds.
fn rough(seconds: f64) -> String {
    if seconds < 10.0 { "less than 10 s".to_owned() } else { time(seconds) }
}

/// The state of an interrupted search.
fn best_so_far(search: &Search<'_>, simulations: &[SimulatedCandidate]) -> String {
    let simulated = counted(simulations.len(), "candidate");
    let Some(best) = cheapest(simulations).map(|place| &simulations[place]) else {
        return format!(
            "interrupted after the simulation of {simulated}: none meets every limit so far"
        );
    };
    format!(
        "interrupted after the simulation of {simulated}; the cheapest one that meets every limit \
         so far, not confirmed: {} for {} ({})",
        best.candidate.parameters.describe(search.choices),
        money(best.candidate.cost, search.cost_model.plan()),
        statement(best.evidence.replications()),
    )
}

/// The cheapest simulated candidate that meets every limit; the first one among equal costs.
fn cheapest(simulations: &[SimulatedCandidate]) -> Option<usize> {
    let kept = simulations.iter().enumerate().filter(|(_, checked)| checked.meets_limits());
    let cost = |checked: &SimulatedCandidate| checked.candidate.cost;
    kept.min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other))).map(|(index, _)| index)
}

/// Candidates that [`VerificationDepth::Full`] always simulates: the alternatives, and all
/// candidates that differ from the choice by one step of one key.
fn shortlist(search: &mut Search<'_>, start: usize) -> Result<Vec<usize>, Error> {
    let candidates = search.candidates;
    let others = search.others(&candidates[start])?;
    let from = &candidates[start].parameters;
    let in_shortlist = |at: &usize| {
        let parameters = &candidates[*at].parameters;
        let named = others.iter().any(|other| other.candidate.parameters == *parameters);
        let next = differing(from, parameters) == 1 && steps(from, parameters, search.choices) == 1;
        *at != start && (named || next)
    };
    Ok((0..candidates.len()).filter(in_shortlist).collect())
}

/// Searches candidates around `start` in the order of their cost: first those within one step of
/// every key, then within two, and so on. Returns the first one that meets every limit. If `start`
/// is feasible by the model, cheaper candidates follow later.
fn search_around(
    search: &mut Search<'_>,
    runs: &mut SimulationRuns<'_>,
    (start, feasible): (usize, bool),
) -> Result<Option<usize>, Error> {
    let from = search.candidates[start].clone();
    let mut radii: BTreeSet<usize> = BTreeSet::new();
    for candidate in search.candidates {
        radii.insert(steps(&from.parameters, &candidate.parameters, search.choices));
    }
    for radius in radii {
        let neighbours = not_yet_simulated(search, runs, |search, at| {
            let candidate = &search.candidates[at];
            (candidate.cost >= from.cost || !feasible)
                && steps(&from.parameters, &candidate.parameters, search.choices) <= radius
        });
        if let Some(found) = runs.simulate(search, &neighbours, StopRule::FirstFeasible)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Searches cheaper candidates as long as one of them meets every limit: those within one step of
/// every key of the best one, then those that the model accepts. Returns the number of such
/// candidates that were not simulated.
fn search_cheaper(
    search: &mut Search<'_>,
    runs: &mut SimulationRuns<'_>,
    winner: &mut Option<usize>,
) -> Result<usize, Error> {
    while let Some(best) = *winner {
        let best = runs.simulations[best].candidate.clone();
        let neighbours = not_yet_simulated(search, runs, |search, at| {
            let candidate = &search.candidates[at];
            candidate.cost < best.cost
                && steps(&best.parameters, &candidate.parameters, search.choices) <= 1
        });
        let mut found = runs.simulate(search, &neighbours, StopRule::FirstFeasible)?;
        let mut not_simulated = 0;
        if found.is_none() {
            let mut candidates_left = not_yet_simulated(search, runs, |search, at| {
                search.candidates[at].cost < best.cost
            });
            let candidates = search.candidates;
            let mut feasible = Vec::new();
            for at in candidates_left.drain(..) {
                if neighbours.contains(&at)
                    || search.evaluator.meets_limits(&candidates[at].parameters)?
                {
                    feasible.push(at);
                }
            }
            not_simulated = feasible.len().saturating_sub(runs.remaining());
            found = runs.simulate(search, &feasible, StopRule::FirstFeasible)?;
        }
        match found {
            Some(found) => *winner = Some(found),
            None => return Ok(not_simulated),
        }
    }
    Ok(0)
}

fn not_yet_simulated(
    search: &Search<'_>,
    runs: &SimulationRuns<'_>,
    accept: impl Fn(&Search<'_>, usize) -> bool,
) -> Vec<usize> {
    let new = |at: &usize| {
        let parameters = &search.candidates[*at].parameters;
        !runs.excluded.contains(at)
            && runs.simulations.iter().all(|checked| checked.candidate.parameters != *parameters)
    };
    (0..search.candidates.len()).filter(|at| accept(search, *at)).filter(new).collect()
}
