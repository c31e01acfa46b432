//! Tests of the verification with fake backends.

use gridhaul_scenario::backend::{NoProgress, Progress};
use gridhaul_scenario::scenario::{CongestionControlAlgorithm, Scenario};

use super::candidate::{CostModel, candidates};
use super::evaluate::Evaluator;
use super::evidence::Decision;
use super::limits::limits;
use super::search::Search;
use super::simulation_runs::SimulatedCandidate;
use super::test_backends::{FakeBackend, district, plan_of};
use super::verify::{Basis, Verification, VerificationDepth, verify};
use crate::error::Error;

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

/// Winner and basis of a verification, and the simulated candidates with their numbers of
/// replications.
struct VerificationResult {
    winner: Option<String>,
    basis: Basis,
    not_simulated: usize,
    excluded: usize,
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
        runs: 20,
        threads,
        progress: &progress,
        on_estimate: &|_| (),
    };
    let feasible = search.cheapest(|_| true).unwrap();
    let start = feasible.or_else(|| search.nearest(|_| true).unwrap()).unwrap();
    let start = (start, feasible.is_some());
    let verified = verify(&mut search, &limits, &choices, &verification, start).unwrap();
    let words =
        |checked: &SimulatedCandidate| checked.candidate.parameters.describe(choices.keys());
    VerificationResult {
        winner: verified.winner.map(|at| words(&verified.simulations[at])),
        basis: verified.basis,
        not_simulated: verified.not_simulated,
        excluded: verified.excluded,
        simulations: verified
            .simulations
            .iter()
            .map(|simulation| {
                (words(simulation), simulation.decision.clone(), simulation.evidence.replications())
            })
            .collect(),
    }
}

const WINNER: (VerificationDepth, usize, usize) = (VerificationDepth::Winner, 64, 2);

#[test]
fn a_choice_on_which_model_and_simulation_agree_is_confirmed_by_twenty_runs() {
    let loss = |scenario: &Scenario| 0.099 / count(scenario);
    let result = verification_of(COUNTS, loss, |scenario| 1.05 * loss(scenario) - 0.001, WINNER);
    assert_eq!(result.basis, Basis::Both);
    let cheaper = ("4 collectors".to_owned(), Decision::Violated(vec![0]), 3);
    assert_eq!(result.simulations, [("5 collectors".to_owned(), Decision::Met, 20), cheaper]);
}

#[test]
fn a_confirmed_choice_is_not_final_if_a_cheaper_neighbour_meets_the_limits() {
    // The equations see a loss with fewer than 5 aggregators that the simulation does not have:
    // about 5 aggregators both agree.
    let simulated = |scenario: &Scenario| 0.0099 * 2_f64.max(5.0 - count(scenario)) / 2.0;
    let model = |scenario: &Scenario| match count(scenario) < 5.0 {
        true => 0.03,
        false => simulated(scenario),
    };
    let result = verification_of(COUNTS, model, simulated, WINNER);
    assert_eq!(result.winner.as_deref(), Some("1 collector"));
    assert_eq!((result.basis, result.not_simulated), (Basis::Simulation, 0));
    let (depth, _, threads) = WINNER;
    let result = verification_of(COUNTS, model, simulated, (depth, 1, threads));
    assert_eq!(result.winner.as_deref(), Some("5 collectors"));
    assert_eq!((result.basis, result.not_simulated), (Basis::Both, 1));
}

#[test]
fn if_the_model_rejects_all_and_is_wrong_about_the_closest_candidate_others_are_simulated() {
    // The equations reject every candidate, most clearly those that the simulation accepts.
    let model = |scenario: &Scenario| 0.03 + count(scenario) / 1e4;
    let simulated = |scenario: &Scenario| if count(scenario) < 20.0 { 0.04 } else { 0.01 };
    let result = verification_of(COUNTS, model, simulated, WINNER);
    assert_eq!(result.winner.as_deref(), Some("20 collectors"));
    assert_eq!(result.basis, Basis::Simulation);
    // Where both agree that the closest one fails, no other one is simulated.
    let result = verification_of(COUNTS, model, |_| 0.0301, WINNER);
    assert_eq!((result.winner, result.simulations.len()), (None, 1));
}

#[test]
fn equal_results_with_two_numbers_do_not_exclude_a_third_one() {
    // Both smaller timeouts are below the round-trip time, and the largest one is above it.
    let timeouts = "\"node.collector.count\" = [5, 6]\n\
                    \"stack.upstream.rto_min\" = [\"10 ms\", \"20 ms\", \"3 s\"]";
    let simulated = |scenario: &Scenario| {
        let timeout = scenario.stack["upstream"].rto_min.unwrap().as_secs_f64();
        if count(scenario) < 6.0 && timeout < 1.0 { 0.03 } else { 0.01 }
    };
    let result = verification_of(timeouts, |_| 0.0199, simulated, WINNER);
    assert_eq!(result.winner.as_deref(), Some("5 collectors, rto_min 3 s"));
    assert_eq!(result.excluded, 0);
}

#[test]
fn a_met_limit_does_not_confirm_a_choice_on_which_model_and_simulation_differ() {
    // The simulated loss is a quarter of the model's: the choice meets its limit, and cheaper
    // candidates do as well.
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
    // A mean of 1.9 % with 5 aggregators and a limit of 2 %: 1.7 % with odd seeds, 2.1 % with even
    // ones.
    let noisy = |scenario: &Scenario| {
        let odd = scenario.seed % 2 == 1;
        0.095 / count(scenario) + if odd { -0.002 } else { 0.002 }
    };
    let result = verification_of(COUNTS, |scenario| 0.095 / count(scenario), noisy, WINNER);
    assert_eq!(result.simulations[0], ("5 collectors".to_owned(), Decision::TooClose(vec![0]), 10));
    // A mean of 0.95 %: a margin of five times the variation between seeds.
    let winner: u32 = result.winner.unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((6..=8).contains(&winner), "{winner}");
}

#[test]
fn a_choice_that_a_few_seeds_violate_is_not_met() {
    // One seed of ten violates the limit with fewer than 8 aggregators: three replications do not
    // show this.
    let rare = |scenario: &Scenario| match scenario.seed % 10 {
        7 if count(scenario) < 8.0 => 0.03,
        _ => 0.099 / count(scenario),
    };
    let result = verification_of(COUNTS, |scenario| 0.099 / count(scenario), rare, WINNER);
    let occasional = Decision::Occasional { limits: vec![0], runs: 1 };
    assert_eq!(result.simulations[0].0, "5 collectors");
    assert_eq!(result.simulations[0].1, occasional);
    assert_eq!(result.winner.as_deref(), Some("8 collectors"));
    let winner =
        result.simulations.iter().find(|simulation| simulation.0 == "8 collectors").unwrap();
    assert_eq!((winner.1.clone(), winner.2), (Decision::Met, 20));
}

#[test]
fn an_interrupted_search_names_the_best_candidate_so_far() {
    struct Interrupted;
    impl Progress for Interrupted {
        fn advance(&self, _done: u64, _total: u64) {}
        fn is_interrupted(&self) -> bool {
            true
        }
    }
    let scenario = district(COUNTS, "\"node.collector.count\" = 900");
    let (plan, choices) = plan_of(&scenario);
    let limits = limits(&scenario, &plan);
    let candidates = candidates(&scenario, &plan, choices.keys());
    let model = FakeBackend::new(|_: &Scenario| Some(0.01));
    let mut search = Search {
        candidates: &candidates,
        choices: choices.keys(),
        cost_model: CostModel::new(&scenario, &plan, choices.keys()),
        evaluator: Evaluator::new(&model, &choices, &limits),
    };
    // The user interrupts while the choice is being confirmed.
    let progress = |part: &str| match part.starts_with("confirming") {
        true => Box::new(Interrupted) as Box<dyn Progress>,
        false => Box::new(NoProgress),
    };
    let verification = Verification {
        simulator: &model,
        depth: VerificationDepth::Winner,
        max_candidates: 64,
        runs: 20,
        threads: 1,
        progress: &progress,
        on_estimate: &|_| (),
    };
    let verified = verify(&mut search, &limits, &choices, &verification, (0, true));
    let Err(Error::Interrupted(message)) = verified else { panic!("not interrupted") };
    assert!(message.contains("after the simulation of 1 candidate"), "{message}");
    assert!(message.contains("1 collector for 900 (3 of 3 runs"), "{message}");
}

#[test]
fn a_buffer_without_influence_is_not_simulated_again() {
    // The loss depends on the number of aggregators only; buffers are free.
    let buffers = "\"node.collector.count\" = [5, 6, 7, 8]\n\
                   \"node.collector.aggregator.buffer\" = \
                   [\"50 messages\", \"100 messages\", \"200 messages\", \"400 messages\"]";
    let loss = |scenario: &Scenario| 0.099 / count(scenario);
    let result = verification_of(buffers, loss, |scenario| 1.5 * loss(scenario), WINNER);
    assert!(result.winner.unwrap().starts_with("8 collectors"));
    // Three failing designs with two buffers each, and the winner; without exclusion at least 13.
    assert!(result.simulations.len() <= 8, "{:?}", result.simulations);
    assert!(result.excluded >= 5, "{}", result.excluded);
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

#[test]
fn candidates_with_the_values_of_one_that_fails_need_three_replications() {
    // The loss depends on the seed and the number of aggregators, and not on the rate.
    let noisy = |scenario: &Scenario| {
        let odd = scenario.seed % 2 == 1;
        0.076 / count(scenario) + if odd { -0.002 } else { 0.002 }
    };
    let model = |scenario: &Scenario| 0.076 / count(scenario) * (1.0 + 1e-6 / rate(scenario));
    let result = verification_of(GRID, model, noisy, WINNER);
    let four: Vec<_> =
        result.simulations.iter().filter(|(words, ..)| words.starts_with("4 ")).collect();
    // A mean of 1.9 %: the limit of 2 % is violated with every second seed.
    assert_eq!((&four[0].1, four[0].2), (&Decision::TooClose(vec![0]), 10));
    assert!(four.len() > 2);
    for (words, decision, runs) in &four[1..] {
        let Decision::Equal { decision, .. } = decision else { panic!("{words}: {decision:?}") };
        assert_eq!((decision.as_ref(), *runs), (&Decision::TooClose(vec![0]), 3), "{words}");
    }
    assert!(result.winner.unwrap().starts_with("8 collectors"));
}
