//! Evaluation of candidates by the analytical model.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Answer, Metric, Point};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::{Choices, Load, Scenario};

use super::candidate::ParameterSet;
use super::limits::{Limit, LimitState, Measured};
use crate::error::Error;

/// Evaluation of a candidate by a backend.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Evaluation {
    /// One for each limit.
    pub(crate) measured: Vec<Measured>,
    /// Why the values are invalid.
    pub(crate) error: Option<CandidateError>,
}

/// Why the values of a candidate are invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CandidateError {
    /// The backend has no answer.
    #[error("{0}")]
    NoAnswer(String),
    /// The offered load exceeds the capacity: there is no steady state.
    #[error("{0}")]
    Overload(String),
}

/// Evaluates candidates with a backend, each once.
pub(crate) struct Evaluator<'a> {
    backend: &'a dyn Backend,
    choices: &'a Choices,
    limits: &'a [Limit],
    known: BTreeMap<ParameterSet, Evaluation>,
    /// Simulated candidates, and whether the simulation meets every limit. A simulation takes
    /// precedence over the model.
    simulated: BTreeMap<ParameterSet, bool>,
}

/// Smallest ratio of goodput to offered load in a steady state. The difference to 1 is rounding:
/// messages are split into segments of whole bytes.
const CARRIED: f64 = 0.95;

impl<'a> Evaluator<'a> {
    pub(crate) fn new(backend: &'a dyn Backend, choices: &'a Choices, limits: &'a [Limit]) -> Self {
        let (known, simulated) = (BTreeMap::new(), BTreeMap::new());
        Self { backend, choices, limits, known, simulated }
    }

    /// The limits of the plan.
    pub(crate) const fn limits(&self) -> &'a [Limit] {
        self.limits
    }

    /// Number of evaluated candidates.
    pub(crate) fn evaluated(&self) -> usize {
        self.known.len()
    }

    /// The evaluation of a candidate, if there is one.
    pub(crate) fn known(&self, parameters: &ParameterSet) -> Option<&Evaluation> {
        self.known.get(parameters)
    }

    /// The evaluation of a candidate, computed at the first call.
    pub(crate) fn evaluate(&mut self, parameters: &ParameterSet) -> Result<&Evaluation, Error> {
        if !self.known.contains_key(parameters) {
            let evaluation = self.by_equations(parameters)?;
            self.known.insert(parameters.clone(), evaluation);
        }
        Ok(&self.known[parameters])
    }

    /// Records whether a candidate meets every limit in its simulation.
    pub(crate) fn record_simulation(&mut self, parameters: &ParameterSet, meets_limits: bool) {
        self.simulated.insert(parameters.clone(), meets_limits);
    }

    /// Whether a candidate meets every limit in its simulation, if it was simulated.
    pub(crate) fn simulated(&self, parameters: &ParameterSet) -> Option<bool> {
        self.simulated.get(parameters).copied()
    }

    /// Whether no limit is known to be violated.
    pub(crate) fn meets_limits(&mut self, parameters: &ParameterSet) -> Result<bool, Error> {
        self.evaluate(parameters)?;
        if let Some(meets_limits) = self.simulated(parameters) {
            return Ok(meets_limits);
        }
        let evaluation = &self.known[parameters];
        Ok(evaluation.error.is_none()
            && (0..self.limits.len()).all(|at| self.state(evaluation, at) != LimitState::Violated))
    }

    /// Largest ratio of a value of the model to its limit, and the index of this limit.
    pub(crate) fn worst(
        &mut self,
        parameters: &ParameterSet,
    ) -> Result<(f64, Option<usize>), Error> {
        self.evaluate(parameters)?;
        let evaluation = &self.known[parameters];
        if evaluation.error.is_some() {
            return Ok((f64::INFINITY, None));
        }
        let mut worst = (0.0, None);
        for (at, limit) in self.limits.iter().enumerate() {
            let measured = &evaluation.measured[at];
            let Some(value) = measured.value.or(measured.floor) else { continue };
            let used = limit.utilisation(value);
            if used > worst.0 || worst.1.is_none() {
                worst = (used, Some(at));
            }
        }
        Ok(worst)
    }

    pub(crate) fn state(&self, evaluation: &Evaluation, limit: usize) -> LimitState {
        self.limits[limit].state(&evaluation.measured[limit])
    }

    /// The backend's answer to a scenario, if it has one.
    pub(crate) fn answer(&self, scenario: &Scenario) -> Result<Option<Answer>, Error> {
        if self.backend.supports(scenario).is_err() {
            return Ok(None);
        }
        match self.backend.run(scenario, &NoProgress) {
            Ok(answer) => Ok(Some(answer)),
            Err(RunError::Unsupported(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn by_equations(&self, parameters: &ParameterSet) -> Result<Evaluation, Error> {
        let scenario = self.choices.scenario(&parameters.values, parameters.aggregators)?;
        if let Err(keys) = self.backend.supports(&scenario) {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            return Ok(self.without_answer(keys.join("; ")));
        }
        let answer = match self.backend.run(&scenario, &NoProgress) {
            Ok(answer) => answer,
            Err(RunError::Unsupported(keys)) => {
                let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
                return Ok(self.without_answer(keys.join("; ")));
            }
            Err(error) => return Err(error.into()),
        };
        // A warning about `model` means that the solver did not converge.
        if let Some(warning) = answer.warnings.iter().find(|warning| warning.about == "model") {
            return Ok(self.without_answer(warning.message.clone()));
        }
        let Some(point) = answer.points.first() else {
            return Ok(self.without_answer("the answer is empty".to_owned()));
        };
        Ok(Evaluation {
            measured: self.limits.iter().map(|limit| limit.measure(point)).collect(),
            error: overload(&scenario, point).map(CandidateError::Overload),
        })
    }

    fn without_answer(&self, why: String) -> Evaluation {
        let measured = vec![Measured::default(); self.limits.len()];
        Evaluation { measured, error: Some(CandidateError::NoAnswer(why)) }
    }
}

/// The first flow whose goodput is below its offered load, as a message.
fn overload(scenario: &Scenario, point: &Point) -> Option<String> {
    scenario.flow.iter().find_map(|(name, flow)| {
        let each = match &*flow.load.plain() {
            Load::Periodic(load) => load.size.bits() as f64 / load.every.as_secs_f64(),
            Load::Poisson(load) => load.size.bits() as f64 / load.every.as_secs_f64(),
            Load::OnOff(load) => {
                let (on, off) = (load.on.as_secs_f64(), load.off.as_secs_f64());
                load.rate?.as_bits_per_sec() as f64 * on / (on + off)
            }
            _ => return None,
        };
        let row = point.flows.iter().find(|row| row.name == *name)?;
        let carried = row.mean(Metric::Goodput)? / (each * scenario.connections(flow) as f64);
        (carried < CARRIED).then(|| {
            format!("{name} is overloaded: goodput is {:.0} % of the offered load", carried * 100.0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::candidate::candidates;
    use super::super::limits::limits;
    use super::super::test_backends::{FakeBackend, district, plan_of};
    use super::*;

    #[test]
    fn each_candidate_is_evaluated_once_and_unsupported_keys_are_errors() {
        let scenario = district(
            "\"node.collector.count\" = [1, 2]\n\"stack.upstream.congestion_control\" = \
             [\"reno\", \"bbr\"]",
            "\"node.collector.count\" = 900",
        );
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let fake = FakeBackend::new(|_| Some(0.01));
        let mut evaluator = Evaluator::new(&fake, &choices, &limits);
        for _ in 0..2 {
            for candidate in candidates(&scenario, &plan, choices.keys()) {
                let bbr = candidate.parameters.values[1].as_deref() == Some("bbr");
                assert_eq!(evaluator.meets_limits(&candidate.parameters).unwrap(), !bbr);
                let error = evaluator.evaluate(&candidate.parameters).unwrap().error.clone();
                assert_eq!(error.is_some_and(|error| error.to_string().contains("bbr")), bbr);
            }
        }
        assert_eq!((evaluator.evaluated(), fake.runs()), (4, 2));
    }

    /// With flow control the meters wait instead of losing segments, so that only this behaviour
    /// meets a limit on the loss.
    #[test]
    fn the_behaviour_at_a_full_buffer_is_a_choice() {
        let text = r#"
title = "Meters that offer several times the capacity of the path"
duration = "60 s"
[node]
meter.count = 20000
head = {}
[node.collector]
count = 20
aggregator = { buffer = "1000 messages", stack = "upstream" }
[link]
access = { from = "meter", to = "collector", shared = true, both.rate = "1 Gbit/s" }
wan = { from = "collector", to = "head", shared = true, both.rate = "1 Mbit/s" }
[stack]
upstream = { profile = "ns2", congestion_control = "vegas", mss = "200 B" }
meter = { profile = "ns2", mss = "200 B", receive_window = "2 segments" }
[flow.reading]
from = "meter"
to = "head"
stack = "meter"
load.on_off = { on = "100 ms", off = "10 s", size = "200 B" }
[plan]
limit.reading.loss = "15 %"
[plan.choose]
"node.collector.aggregator.when_full" = ["drop", "backpressure"]
"node.collector.count" = [20]
[plan.cost]
"node.collector.count" = 1
"#;
        let scenario = Scenario::from_toml(text, "plan.toml").unwrap();
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let mut evaluator = Evaluator::new(&gridhaul_model::Model::REFINED, &choices, &limits);
        let found = candidates(&scenario, &plan, choices.keys());
        let feasible = |evaluator: &mut Evaluator<'_>, policy: &str| {
            let is_wanted = |candidate: &&super::super::candidate::Candidate| {
                candidate.parameters.values[0].as_deref() == Some(policy)
            };
            let parameters = &found.iter().find(is_wanted).unwrap().parameters;
            let error = evaluator.evaluate(parameters).unwrap().error.clone();
            assert_eq!(error, None, "{policy}");
            evaluator.meets_limits(parameters).unwrap()
        };
        assert!(!feasible(&mut evaluator, "drop"));
        assert!(feasible(&mut evaluator, "backpressure"));
    }

    #[test]
    fn an_overload_meets_no_limit() {
        let scenario = district("seed = [1]", "seed = 1");
        let point = |goodput| super::super::test_backends::point(&[(Metric::Goodput, goodput)]);
        // 1000 meters with 200 B every 10 s: 160 kbit/s.
        assert_eq!(overload(&scenario, &point(159e3)), None);
        let message = overload(&scenario, &point(80e3)).unwrap();
        assert_eq!(message, "reading is overloaded: goodput is 50 % of the offered load");
    }
}
