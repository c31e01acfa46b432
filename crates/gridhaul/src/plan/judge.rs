//! Judging candidates by equations.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Answer, Metric, Point};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::{Choices, Load, Scenario};

use super::limits::{Limit, Measured, State};
use super::trial::Trial;
use crate::error::Error;

/// What a backend says about a candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Judgement {
    /// One for each limit.
    pub(crate) measured: Vec<Measured>,
    /// Why the numbers cannot be used, whatever they are.
    pub(crate) error: Option<CandidateError>,
}

/// Why the numbers of a candidate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CandidateError {
    /// The backend has no answer.
    #[error("{0}")]
    NoAnswer(String),
    /// More is sent than is carried: there is no steady state.
    #[error("{0}")]
    Overload(String),
}

/// Asks a backend, each candidate once.
pub(crate) struct Judge<'a> {
    backend: &'a dyn Backend,
    choices: &'a Choices,
    limits: &'a [Limit],
    known: BTreeMap<Trial, Judgement>,
    /// Candidates that were simulated, and whether they keep every limit there. A simulation overrules
    /// the equations.
    simulated: BTreeMap<Trial, bool>,
}

/// Share of what the application sends that must get through in a steady state. The rest is
/// rounding: a message is cut into segments of whole bytes.
const CARRIED: f64 = 0.95;

impl<'a> Judge<'a> {
    pub(crate) fn new(backend: &'a dyn Backend, choices: &'a Choices, limits: &'a [Limit]) -> Self {
        let (known, simulated) = (BTreeMap::new(), BTreeMap::new());
        Self { backend, choices, limits, known, simulated }
    }

    /// The limits that are judged.
    pub(crate) const fn limits(&self) -> &'a [Limit] {
        self.limits
    }

    /// Number of candidates that were asked about.
    pub(crate) fn asked(&self) -> usize {
        self.known.len()
    }

    /// What the backend said about a candidate, if it was asked.
    pub(crate) fn known(&self, trial: &Trial) -> Option<&Judgement> {
        self.known.get(trial)
    }

    /// What the backend says about a candidate.
    pub(crate) fn ask(&mut self, trial: &Trial) -> Result<&Judgement, Error> {
        if !self.known.contains_key(trial) {
            let judgement = self.judge(trial)?;
            self.known.insert(trial.clone(), judgement);
        }
        Ok(&self.known[trial])
    }

    /// Notes whether a candidate keeps every limit in its simulation.
    pub(crate) fn overrule(&mut self, trial: &Trial, keeps: bool) {
        self.simulated.insert(trial.clone(), keeps);
    }

    /// Whether a candidate keeps every limit in its simulation, if it was simulated.
    pub(crate) fn simulated(&self, trial: &Trial) -> Option<bool> {
        self.simulated.get(trial).copied()
    }

    /// Whether no limit is known to be broken.
    pub(crate) fn keeps(&mut self, trial: &Trial) -> Result<bool, Error> {
        self.ask(trial)?;
        if let Some(keeps) = self.simulated(trial) {
            return Ok(keeps);
        }
        let judgement = &self.known[trial];
        Ok(judgement.error.is_none()
            && (0..self.limits.len()).all(|at| self.state(judgement, at) != State::Broken))
    }

    /// Largest share of a limit that is used up by equations, and which limit it is.
    pub(crate) fn worst(&mut self, trial: &Trial) -> Result<(f64, Option<usize>), Error> {
        self.ask(trial)?;
        let judgement = &self.known[trial];
        if judgement.error.is_some() {
            return Ok((f64::INFINITY, None));
        }
        let mut worst = (0.0, None);
        for (at, limit) in self.limits.iter().enumerate() {
            let measured = &judgement.measured[at];
            let Some(value) = measured.value.or(measured.floor) else { continue };
            let used = limit.used(value);
            if used > worst.0 || worst.1.is_none() {
                worst = (used, Some(at));
            }
        }
        Ok(worst)
    }

    pub(crate) fn state(&self, judgement: &Judgement, limit: usize) -> State {
        self.limits[limit].state(&judgement.measured[limit])
    }

    /// The backend's answer to a scenario, where it has one.
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

    fn judge(&self, trial: &Trial) -> Result<Judgement, Error> {
        let scenario = self.choices.scenario(&trial.values, trial.collectors)?;
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
        // The equations warn about themselves where their solver did not converge.
        if let Some(warning) = answer.warnings.iter().find(|warning| warning.about == "model") {
            return Ok(self.without_answer(warning.message.clone()));
        }
        let Some(point) = answer.points.first() else {
            return Ok(self.without_answer("the answer is empty".to_owned()));
        };
        Ok(Judgement {
            measured: self.limits.iter().map(|limit| limit.measure(point)).collect(),
            error: overload(&scenario, point).map(CandidateError::Overload),
        })
    }

    fn without_answer(&self, why: String) -> Judgement {
        let measured = vec![Measured::default(); self.limits.len()];
        Judgement { measured, error: Some(CandidateError::NoAnswer(why)) }
    }
}

/// Which flow does not get through what its application sends.
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
            format!("{name} sends more than is carried ({:.0} % gets through)", carried * 100.0)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::fake::{Fake, district, plan_of};
    use super::super::limits::limits;
    use super::super::trial::candidates;
    use super::*;

    #[test]
    fn each_candidate_is_asked_once_and_refusals_are_no_answers() {
        let scenario = district(
            "\"node.collector.count\" = [1, 2]\n\"stack.upstream.congestion_control\" = [\"reno\", \"bbr\"]",
            "\"node.collector.count\" = 900",
        );
        let (plan, choices) = plan_of(&scenario);
        let limits = limits(&scenario, &plan);
        let fake = Fake::new(|_| Some(0.01));
        let mut judge = Judge::new(&fake, &choices, &limits);
        for _ in 0..2 {
            for candidate in candidates(&scenario, &plan, choices.keys()) {
                let bbr = candidate.trial.values[1].as_deref() == Some("bbr");
                assert_eq!(judge.keeps(&candidate.trial).unwrap(), !bbr);
                let error = judge.ask(&candidate.trial).unwrap().error.clone();
                assert_eq!(error.is_some_and(|error| error.to_string().contains("bbr")), bbr);
            }
        }
        assert_eq!((judge.asked(), fake.runs()), (4, 2));
    }

    #[test]
    fn a_backlog_that_grows_keeps_nothing() {
        let scenario = district("seed = [1]", "seed = 1");
        let point = |goodput| super::super::fake::point(&[(Metric::Goodput, goodput)]);
        // 1000 meters with 200 B every 10 s: 160 kbit/s.
        assert_eq!(overload(&scenario, &point(159e3)), None);
        let told = overload(&scenario, &point(80e3)).unwrap();
        assert_eq!(told, "reading sends more than is carried (50 % gets through)");
    }
}
