//! Checking what the equations chose by simulation.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress};
use gridhaul_scenario::scenario::Choices;

use super::judge::Judgement;
use super::limits::{Limit, Measured, State};
use super::search::Search;
use super::trial::Candidate;
use crate::failure::Failure;

/// A candidate that was simulated.
#[derive(Debug, Clone)]
pub(crate) struct Checked {
    pub(crate) candidate: Candidate,
    /// What the equations said.
    pub(crate) model: Judgement,
    /// What the simulation says about each limit.
    pub(crate) measured: Vec<Measured>,
    /// Whether it breaks no limit.
    pub(crate) survives: bool,
    pub(crate) answer: Answer,
}

/// Simulates the cheapest candidates until one survives or `tries` are used up.
///
/// Where one fails, the equations were too hopeful about a limit: from then on they are taken to be
/// that many times too low everywhere, so that the next try is not the next failure.
pub(crate) fn verify(
    search: &mut Search<'_>,
    limits: &[Limit],
    choices: &Choices,
    simulator: &dyn Backend,
    tries: usize,
    progress: &dyn Fn(usize) -> Box<dyn Progress>,
) -> Result<Vec<Checked>, Failure> {
    let mut tried: Vec<Checked> = Vec::new();
    while tried.len() < tries {
        let Some(next) = next(search, &tried)? else { break };
        let candidate = search.candidates[next].clone();
        let scenario = choices.scenario(&candidate.trial.values, candidate.trial.collectors)?;
        simulator.supports(&scenario).map_err(|keys| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            anyhow::anyhow!(
                "the choice cannot be verified by simulation:\n{}\n  help: leave verification out \
                 with --no-verify",
                keys.join("\n")
            )
        })?;
        let answer = simulator.run(&scenario, &*progress(tried.len()))?;
        let Some(point) = answer.points.first() else { break };
        let measured: Vec<_> = limits.iter().map(|limit| limit.measure(point)).collect();
        let broken =
            |(limit, measured): (&Limit, &Measured)| limit.state(measured, 1.0) == State::Broken;
        let survives = !limits.iter().zip(&measured).any(broken);
        let model = search.judge.ask(&candidate.trial)?.clone();
        for (at, limit) in limits.iter().enumerate() {
            let correction = correction(limit, &model.measured[at], &measured[at]);
            let known = &mut search.judge.corrections[at];
            *known = known.max(correction);
        }
        tried.push(Checked { candidate, model, measured, survives, answer });
        if survives {
            break;
        }
    }
    Ok(tried)
}

/// The cheapest candidate not yet tried; without corrections, where they leave none.
fn next(search: &mut Search<'_>, tried: &[Checked]) -> Result<Option<usize>, Failure> {
    let fresh = |candidate: &Candidate| tried.iter().all(|t| t.candidate.trial != candidate.trial);
    if let Some(found) = search.cheapest(fresh)? {
        return Ok(Some(found));
    }
    if search.judge.corrections.iter().all(|correction| *correction <= 1.0) {
        return Ok(None);
    }
    search.judge.corrections.fill(1.0);
    search.cheapest(fresh)
}

/// How many times too low the equations are, where a limit is broken; else 1.
fn correction(limit: &Limit, model: &Measured, measured: &Measured) -> f64 {
    if limit.state(measured, 1.0) != State::Broken {
        return 1.0;
    }
    match (model.value.or(model.floor), measured.value.or(measured.floor)) {
        (Some(model), Some(measured)) if model > 0.0 && measured.is_finite() => {
            (measured / model).max(1.0)
        }
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::backend::Quiet;
    use gridhaul_scenario::scenario::Scenario;

    use super::super::fake::{Fake, district, plan_of};
    use super::super::judge::Judge;
    use super::super::limits::limits;
    use super::super::trial::{Prices, candidates};
    use super::*;

    fn count(scenario: &Scenario) -> f64 {
        f64::from(scenario.node["collector"].count)
    }

    /// What is tried, where the simulation sees so many times the loss that the equations see.
    fn tried(factor: f64, tries: usize) -> Vec<(String, bool)> {
        let scenario = district(
            "\"node.collector.count\" = { linear = [1, 40], points = 40 }",
            "\"node.collector.count\" = 900",
        );
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let candidates = candidates(&scenario, &plan, choices.keys());
        let model = Fake::new(|scenario| Some(0.1 / count(scenario)));
        let simulator = Fake::new(move |scenario| Some(factor * 0.1 / count(scenario)));
        let mut search = Search {
            candidates: &candidates,
            choices: choices.keys(),
            prices: Prices::new(&scenario, &plan, choices.keys()),
            judge: Judge::new(&model, &choices, &limits),
        };
        let quiet = |_| Box::new(Quiet) as Box<dyn Progress>;
        let tried = verify(&mut search, &limits, &choices, &simulator, tries, &quiet).unwrap();
        let words = |t: &Checked| (t.candidate.trial.words(choices.keys()), t.survives);
        tried.iter().map(words).collect()
    }

    #[test]
    fn the_first_that_survives_is_the_last_that_is_tried() {
        assert_eq!(tried(1.0, 5), [("5 collectors".to_owned(), true)]);
    }

    #[test]
    fn a_failure_corrects_the_equations() {
        // Nearly three times the loss: five collectors fail, and fifteen are enough.
        let all = tried(2.9, 5);
        assert_eq!(all, [("5 collectors".to_owned(), false), ("15 collectors".to_owned(), true)]);
    }

    #[test]
    fn tries_are_bounded_and_hopeless_corrections_are_dropped() {
        let all = tried(100.0, 3);
        let words: Vec<_> = all.iter().map(|(words, _)| words.as_str()).collect();
        assert_eq!(words, ["5 collectors", "6 collectors", "7 collectors"]);
        assert!(all.iter().all(|(_, survives)| !survives));
    }
}
