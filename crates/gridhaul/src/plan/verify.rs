//! Verification: the model's choice is simulated; if model and simulation disagree, the cheapest candidate is searched
//! for by simulation.

use std::collections::BTreeSet;

use gridhaul_scenario::backend::{Backend, Progress};
use gridhaul_scenario::scenario::Choices;

use super::limits::Limit;
use super::neighbours::{differing, steps};
use super::search::Search;
use super::simulation_runs::{SimulatedCandidate, SimulationRuns, StopRule};
use crate::error::Error;

/// How the model's choice is verified.
pub(crate) struct Verification<'a> {
    pub(crate) simulator: &'a (dyn Backend + Sync),
    pub(crate) depth: VerificationDepth,
    /// Maximum number of candidates to simulate.
    pub(crate) max_candidates: usize,
    /// Threads; 0: one per core. The result does not depend on this number.
    pub(crate) threads: usize,
    /// Creates the progress of some replications from a label.
    pub(crate) progress: &'a dyn Fn(&str) -> Box<dyn Progress>,
}

/// Candidates that are simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerificationDepth {
    /// The model's choice; further candidates only if the simulation does not confirm it.
    Winner,
    /// All candidates of the shortlist.
    Full,
}

/// What the choice is based on.
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
    /// Cheaper neighbours of the choice that were not simulated, because the maximum number was reached.
    pub(crate) not_simulated: usize,
}

/// Simulates `start`, and continues the search by simulation unless model and simulation agree about it.
///
/// `feasible` says whether `start` meets every limit by the model. If no candidate does, `start` is the closest
/// one, and more expensive candidates are not searched except for those of the shortlist.
pub(crate) fn verify(
    search: &mut Search<'_>,
    limits: &[Limit],
    choices: &Choices,
    verification: &Verification<'_>,
    (start, feasible): (usize, bool),
) -> Result<Verified, Error> {
    let mut runs = SimulationRuns::new(verification, choices, limits)?;
    let found = runs.simulate(search, &[start], StopRule::FirstFeasible)?;
    let confirmed =
        runs.simulations.first().is_some_and(|first| first.meets_limits() && first.agrees());
    if verification.depth == VerificationDepth::Full {
        let list = shortlist(search, start)?;
        runs.simulate(search, &list, StopRule::All)?;
    } else if confirmed {
        let SimulationRuns { simulations, .. } = runs;
        return Ok(Verified { simulations, winner: found, basis: Basis::Both, not_simulated: 0 });
    }
    let mut winner = cheapest(&runs.simulations);
    if winner.is_none() && feasible {
        winner = search_more_expensive(search, &mut runs, start)?;
    }
    let not_simulated = search_cheaper(search, &mut runs, &mut winner)?;
    let own = winner == found && confirmed;
    let basis = if own { Basis::Both } else { Basis::Simulation };
    Ok(Verified { simulations: runs.simulations, winner, basis, not_simulated })
}

/// The cheapest simulated candidate that meets every limit; the first one among equal costs.
fn cheapest(simulations: &[SimulatedCandidate]) -> Option<usize> {
    let kept = simulations.iter().enumerate().filter(|(_, checked)| checked.meets_limits());
    let cost = |checked: &SimulatedCandidate| checked.candidate.cost;
    kept.min_by(|(_, one), (_, other)| cost(one).total_cmp(&cost(other))).map(|(index, _)| index)
}

/// Candidates that [`VerificationDepth::Full`] always simulates: the alternatives, and all candidates that differ from
/// the choice by one step of one key.
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

/// Searches the candidates that cost at least as much as `start`, in the order of their cost: first those within
/// one step of every key, then within two, and so on. Returns the first one that meets every limit.
fn search_more_expensive(
    search: &mut Search<'_>,
    runs: &mut SimulationRuns<'_>,
    start: usize,
) -> Result<Option<usize>, Error> {
    let from = search.candidates[start].clone();
    let mut radii: BTreeSet<usize> = BTreeSet::new();
    for candidate in search.candidates {
        radii.insert(steps(&from.parameters, &candidate.parameters, search.choices));
    }
    for radius in radii {
        let neighbours = not_yet_simulated(search, runs, |search, at| {
            let candidate = &search.candidates[at];
            candidate.cost >= from.cost
                && steps(&from.parameters, &candidate.parameters, search.choices) <= radius
        });
        if let Some(found) = runs.simulate(search, &neighbours, StopRule::FirstFeasible)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Searches cheaper candidates as long as one of them meets every limit: those within one step of every key of the
/// best one, then those that the model accepts. Returns the number of such candidates that were not simulated.
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
        runs.simulations.iter().all(|checked| checked.candidate.parameters != *parameters)
    };
    (0..search.candidates.len()).filter(|at| accept(search, *at)).filter(new).collect()
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::backend::NoProgress;
    use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Scenario};

    use super::super::candidate::{CostModel, candidates};
    use super::super::evaluate::Evaluator;
    use super::super::evidence::Decision;
    use super::super::limits::limits;
    use super::super::test_backends::{FakeBackend, district, plan_of};
    use super::*;

    const COUNTS: &str = "\"node.collector.count\" = { linear = [1, 40], points = 40 }";
    const GRID: &str = "\"node.collector.count\" = [1, 2, 4, 8, 16]\n\
        \"link.wan.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\", \"4 Mbit/s\", \"8 Mbit/s\"]\n\
        \"stack.upstream.congestion_control\" = [\"reno\", \"vegas\"]";
    const COST: &str = "\"node.collector.count\" = 900\n\"link.wan.both.rate\" = 150";

    fn count(scenario: &Scenario) -> f64 {
        f64::from(scenario.node["collector"].count)
    }

    fn rate(scenario: &Scenario) -> f64 {
        scenario.link["wan"].forward().unwrap().rate.as_bits_per_sec() as f64 / 1e6
    }

    /// Winner and basis of a verification, and the simulated candidates with their numbers of replications.
    struct VerificationResult {
        winner: Option<String>,
        basis: Basis,
        not_simulated: usize,
        simulations: Vec<(String, Decision, usize)>,
    }

    fn verification_of(
        choose: &str,
        model: impl Fn(&Scenario) -> f64 + Sync,
        simulated: impl Fn(&Scenario) -> f64 + Sync,
        (depth, max_candidates, threads): (VerificationDepth, usize, usize),
    ) -> VerificationResult {
        let cost = if choose.contains("rate") { COST } else { "\"node.collector.count\" = 900" };
        let scenario = district(choose, cost);
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let candidates = candidates(&scenario, &plan, choices.keys());
        let model = FakeBackend::new(|scenario: &Scenario| Some(model(scenario)));
        let simulator = FakeBackend::new(|scenario: &Scenario| Some(simulated(scenario)));
        let mut search = Search {
            candidates: &candidates,
            choices: choices.keys(),
            cost_model: CostModel::new(&scenario, &plan, choices.keys()),
            evaluator: Evaluator::new(&model, &choices, &limits),
        };
        let progress = |_: &str| Box::new(NoProgress) as Box<dyn Progress>;
        let verification = Verification {
            simulator: &simulator,
            depth,
            max_candidates,
            threads,
            progress: &progress,
        };
        let start = search.cheapest(|_| true).unwrap().unwrap();
        let verified =
            verify(&mut search, &limits, &choices, &verification, (start, true)).unwrap();
        let words =
            |checked: &SimulatedCandidate| checked.candidate.parameters.describe(choices.keys());
        VerificationResult {
            winner: verified.winner.map(|at| words(&verified.simulations[at])),
            basis: verified.basis,
            not_simulated: verified.not_simulated,
            simulations: verified
                .simulations
                .iter()
                .map(|it| (words(it), it.decision.clone(), it.evidence.replications()))
                .collect(),
        }
    }

    const WINNER: (VerificationDepth, usize, usize) = (VerificationDepth::Winner, 64, 2);

    #[test]
    fn a_choice_on_which_model_and_simulation_agree_is_confirmed_by_three_replications() {
        let loss = |scenario: &Scenario| 0.099 / count(scenario);
        let result =
            verification_of(COUNTS, loss, |scenario| 1.05 * loss(scenario) - 0.001, WINNER);
        assert_eq!(result.basis, Basis::Both);
        assert_eq!(result.simulations, [("5 collectors".to_owned(), Decision::Met, 3)]);
    }

    #[test]
    fn a_met_limit_does_not_confirm_a_choice_on_which_model_and_simulation_differ() {
        // The simulated loss is a quarter of the model's: the choice meets its limit, and cheaper candidates do as well.
        let loss = |scenario: &Scenario| 0.099 / count(scenario);
        let result = verification_of(COUNTS, loss, |scenario| loss(scenario) / 4.0, WINNER);
        assert_eq!(result.basis, Basis::Simulation);
        assert_eq!(result.winner.as_deref(), Some("2 collectors"));
        assert!(result.simulations.iter().any(|(words, ..)| words == "1 collector"));
    }

    #[test]
    fn if_the_model_is_too_optimistic_the_next_feasible_candidate_is_found() {
        let loss = |scenario: &Scenario| 0.099 / count(scenario);
        let result = verification_of(COUNTS, loss, |scenario| 2.9 * loss(scenario), WINNER);
        assert_eq!(result.winner.as_deref(), Some("15 collectors"));
        assert_eq!(result.simulations[0].1, Decision::Violated(vec![0]));
        assert_eq!(result.not_simulated, 0);
    }

    #[test]
    fn a_limit_that_other_seeds_violate_is_not_met() {
        // A mean of 1.9 % with 5 aggregators and a limit of 2 %: 1.7 % with odd seeds, 2.1 % with even ones.
        let noisy = |scenario: &Scenario| {
            let odd = scenario.seed % 2 == 1;
            0.095 / count(scenario) + if odd { -0.002 } else { 0.002 }
        };
        let result = verification_of(COUNTS, |scenario| 0.095 / count(scenario), noisy, WINNER);
        assert_eq!(
            result.simulations[0],
            ("5 collectors".to_owned(), Decision::TooClose(vec![0]), 10)
        );
        // A mean of 0.95 %: a margin of five times the variation between seeds.
        let winner: u32 = result.winner.unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((6..=8).contains(&winner), "{winner}");
    }

    /// The product of aggregators and rate must reach `product`; with Reno twice as much.
    fn needs(scenario: &Scenario, product: f64) -> f64 {
        let reno =
            scenario.stack["upstream"].congestion_control == Some(CongestionControlAlgorithm::Reno);
        let needed = if reno { 2.0 * product } else { product };
        0.0199 * needed / (count(scenario) * rate(scenario))
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let simulated =
            |scenario: &Scenario| needs(scenario, 16.0) * (1.0 + (scenario.seed % 3) as f64 / 50.0);
        let run = |threads| {
            verification_of(
                GRID,
                |s| needs(s, 4.0),
                simulated,
                (VerificationDepth::Winner, 64, threads),
            )
        };
        let (one, four) = (run(1), run(4));
        assert_eq!((one.winner.clone(), one.simulations), (four.winner, four.simulations));
        assert!(one.winner.is_some());
    }

    #[test]
    fn several_keys_are_changed_together() {
        // By the model 1 × 4 is sufficient; 16 is necessary: 2 × 8 with Vegas is the cheapest.
        let result = verification_of(GRID, |s| needs(s, 4.0), |s| needs(s, 15.9), WINNER);
        assert_eq!(result.winner.as_deref(), Some("2 collectors, wan 8 Mbit/s, vegas"));
    }

    #[test]
    fn the_number_of_simulations_is_bounded() {
        let (depth, _, threads) = WINNER;
        let result = verification_of(GRID, |s| needs(s, 4.0), |_| 1.0, (depth, 7, threads));
        assert_eq!((result.winner, result.simulations.len()), (None, 7));
    }

    #[test]
    fn full_simulates_the_whole_shortlist_over_three_seeds() {
        let (_, max_candidates, threads) = WINNER;
        let loss = |s: &Scenario| needs(s, 7.9);
        let result =
            verification_of(GRID, loss, loss, (VerificationDepth::Full, max_candidates, threads));
        assert_eq!(result.basis, Basis::Both);
        assert_eq!(result.winner.as_deref(), Some("1 collector, wan 8 Mbit/s, vegas"));
        let words: Vec<_> = result.simulations.iter().map(|(words, ..)| words.as_str()).collect();
        for other in [
            "1 collector, wan 4 Mbit/s, vegas",
            "1 collector, wan 8 Mbit/s, reno",
            "2 collectors, wan 8 Mbit/s, vegas",
            "2 collectors, wan 4 Mbit/s, vegas",
        ] {
            assert!(words.contains(&other), "{other} is not in {words:?}");
        }
        assert!(result.simulations.iter().all(|(_, _, replications)| *replications >= 3));
    }
}
