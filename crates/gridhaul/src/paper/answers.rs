//! Answers to the scenarios of a paper from one or several backends.

use anyhow::{Context, anyhow};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use serde::Serialize;

use super::{Experiment, Paper};
use crate::emulation;
use crate::engine::{BackendName, Engine};
use crate::error::Error;
use crate::observer::Observer;
use crate::request::{self, Vary};
use crate::run;

/// All answers, in the order of `paper.toml`.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    answers: Vec<ScenarioAnswer>,
    skipped: Vec<SkippedScenario>,
}

/// A scenario for backend `emu` that this machine cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SkippedScenario {
    /// Name of the scenario.
    pub(crate) scenario: String,
    /// Missing part.
    pub(crate) reason: String,
}

/// Functions that run scenarios, which tests replace.
struct Runner<'a> {
    /// Prerequisite for emulation that this machine lacks, if any.
    lacking: &'a dyn Fn(&Scenario) -> Option<String>,
    /// Runs a scenario on the only backend of the engine; the text is its name for the progress
    /// bar.
    answer: &'a dyn Fn(&Scenario, &Engine, &str) -> Result<Answer, Error>,
    /// Reports a skipped scenario.
    note: &'a dyn Fn(&str),
}

impl Runner<'_> {
    /// The answer of a backend, or why this machine cannot run the emulation.
    fn answer(
        &self,
        scenario: &Scenario,
        on: BackendName,
        engine: &Engine,
        name: &str,
    ) -> Result<Result<Answer, String>, Error> {
        if on != BackendName::Emu {
            return (self.answer)(scenario, engine, name).map(Ok);
        }
        if let Some(lacking) = (self.lacking)(scenario) {
            return Ok(Err(lacking));
        }
        match (self.answer)(scenario, engine, name) {
            // Some features of the machine can only be checked by use.
            Err(Error::Input(error)) => match error.downcast_ref() {
                Some(RunError::Machine(reason)) => Ok(Err(reason.clone())),
                _ => Err(Error::Input(error)),
            },
            answered => answered.map(Ok),
        }
    }
}

/// One answer.
#[derive(Debug)]
struct ScenarioAnswer {
    scenario: String,
    backend: String,
    /// Whether it has additional points for a smooth curve.
    further: bool,
    answer: Answer,
}

impl Answers {
    /// Runs every backend that `paper.toml` names, or those of the command line if it names none.
    /// Emulations that this machine cannot run are skipped with a note.
    pub(crate) fn collect(
        paper: &Paper,
        quick: bool,
        engine: &Engine,
        observer: &dyn Observer,
    ) -> Result<Self, Error> {
        Self::collect_with(
            paper,
            quick,
            engine,
            &Runner {
                lacking: &emulation::lacking,
                answer: &|scenario, engine, name| run::answer(scenario, engine, name, observer),
                note: &|note| observer.on_note(note),
            },
        )
    }

    fn collect_with(
        paper: &Paper,
        quick: bool,
        engine: &Engine,
        machine: &Runner<'_>,
    ) -> Result<Self, Error> {
        let mut all = Self::default();
        for experiment in &paper.definition.scenario {
            let (name, scenario) = paper.scenario(experiment, quick).map_err(Error::Internal)?;
            for on in experiment.backends(&engine.backends, quick).map_err(Error::Internal)? {
                let concurrent_runs = engine.concurrent_runs.max(experiment.concurrent_runs);
                let engine = Engine {
                    backends: vec![on],
                    concurrent_runs,
                    emulation_repetitions: EMULATION_REPETITIONS,
                    ..engine.clone()
                };
                let answer = match machine.answer(&scenario, on, &engine, &name)? {
                    Ok(answer) => answer,
                    Err(reason) => {
                        (machine.note)(&format!("{name} is not run on backend emu: {reason}"));
                        all.skipped.push(SkippedScenario { scenario: name.clone(), reason });
                        continue;
                    }
                };
                // `model` and `paper-model` report the same backend in their answers, so the name
                // is taken from the engine.
                let backend = on.to_string();
                if let Some(further) = experiment.further.get(&backend) {
                    let further = settings(further).map_err(Error::Internal)?;
                    let scenario = request::assign(scenario.clone(), &experiment.file, &further)
                        .map_err(Error::Internal)?;
                    let answer = (machine.answer)(&scenario, &engine, &name)?;
                    let (scenario, backend) = (name.clone(), backend.clone());
                    all.answers.push(ScenarioAnswer { scenario, backend, further: true, answer });
                }
                all.answers.push(ScenarioAnswer {
                    scenario: name.clone(),
                    backend,
                    further: false,
                    answer,
                });
            }
        }
        Ok(all)
    }

    /// Scenarios that were not run on real kernels.
    pub(crate) fn skipped(&self) -> &[SkippedScenario] {
        &self.skipped
    }

    /// The backends with an answer to a scenario.
    pub(crate) fn backends<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a str> {
        let own =
            self.answers.iter().filter(move |found| found.scenario == scenario && !found.further);
        own.map(|found| found.backend.as_str())
    }

    /// The answers of one backend to a scenario; two if it has additional points for a smooth
    /// curve.
    pub(crate) fn of<'a>(
        &'a self,
        scenario: &'a str,
        backend: &'a str,
    ) -> impl Iterator<Item = &'a Answer> {
        let fits =
            move |found: &&ScenarioAnswer| found.scenario == scenario && found.backend == backend;
        self.answers.iter().filter(fits).map(|found| &found.answer)
    }

    /// The answer that is compared with published figures: of the emulator, else of the simulator,
    /// else the first.
    pub(crate) fn main(&self, scenario: &str) -> Option<&Answer> {
        self.judged(scenario).map(|(_, answer)| answer)
    }

    /// The answer that is compared with published figures, as [`Self::main`], and the name of its
    /// backend.
    pub(crate) fn judged(&self, scenario: &str) -> Option<(&str, &Answer)> {
        let own =
            || self.answers.iter().filter(|found| found.scenario == scenario && !found.further);
        let by = |backend| own().find(|found| found.backend == backend);
        let found = by("emu").or_else(|| by("sim")).or_else(|| own().next())?;
        Some((&found.backend, &found.answer))
    }

    /// All answers with a file name: the scenario, and the backend if there are several.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, &Answer)> {
        self.answers.iter().map(|found| {
            let mut name = found.scenario.clone();
            if self.backends(&found.scenario).count() > 1 {
                name += &format!("-{}", found.backend);
            }
            if found.further {
                name += "-line";
            }
            (name, &found.answer)
        })
    }
}

/// A measured value decides about a statement, so a replication that the machine disturbed is
/// repeated.
const EMULATION_REPETITIONS: u32 = 2;

impl Experiment {
    /// The backends that run the scenario.
    fn backends(&self, default: &[BackendName], quick: bool) -> anyhow::Result<Vec<BackendName>> {
        let names = self.quick_on.as_ref().filter(|_| quick).unwrap_or(&self.on);
        if names.is_empty() {
            return Ok(default.to_vec());
        }
        let read = |name: &String| name.parse().map_err(|error: String| anyhow!("on: {error}"));
        names.iter().map(read).collect::<Result<_, _>>().with_context(|| self.file.clone())
    }
}

/// Keys and their values, as on the command line.
pub(super) fn settings(texts: &[String]) -> anyhow::Result<Vec<Vary>> {
    texts
        .iter()
        .map(|text| text.parse().map_err(|error: String| anyhow!("{text}: {error}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects the answers to a paper with a runner that returns empty answers.
    fn collected(
        lacking: Option<&str>,
        failure: Option<fn(&Scenario) -> Error>,
    ) -> Result<Answers, Error> {
        let papers = Paper::all().expect("papers can be read");
        let paper = papers.iter().find(|paper| paper.name == "medx").expect("a paper with kernels");
        let engine = Engine::sim(1, false);
        let answer = |scenario: &Scenario, engine: &Engine, _: &str| match failure {
            Some(failure) if engine.backends == [BackendName::Emu] => Err(failure(scenario)),
            _ => Ok(Answer::without_points(scenario, engine.backends[0].name())),
        };
        let lacking = |_: &Scenario| lacking.map(str::to_owned);
        Answers::collect_with(
            paper,
            true,
            &engine,
            &Runner { lacking: &lacking, answer: &answer, note: &|_| () },
        )
    }

    fn kernels(answers: &Answers) -> usize {
        answers.answers.iter().filter(|found| found.backend == "emu").count()
    }

    #[test]
    fn a_missing_kernel_feature_skips_only_the_emulation() {
        let all = collected(None, None).unwrap();
        assert!(kernels(&all) > 0 && all.skipped.is_empty(), "{:?}", all.skipped);
        let rest = collected(Some("permission (CAP_BPF)"), None).unwrap();
        assert_eq!(kernels(&rest), 0);
        assert_eq!(
            rest.answers.len(),
            all.answers.len() - kernels(&all),
            "answers of other backends"
        );
        assert_eq!(rest.skipped.len(), kernels(&all));
        assert!(rest.skipped.iter().all(|skipped| skipped.reason.contains("CAP_BPF")));
    }

    #[test]
    fn a_feature_that_fails_later_skips_only_the_emulation() {
        let rest =
            collected(None, Some(|_| RunError::Machine("no /dev/net/tun".into()).into())).unwrap();
        assert_eq!((kernels(&rest), rest.skipped[0].reason.as_str()), (0, "no /dev/net/tun"));
        assert!(!rest.answers.is_empty());
    }

    #[test]
    fn other_errors_of_the_emulation_remain_errors() {
        let failed = collected(None, Some(|_| RunError::Invalid("no route".into()).into()));
        assert!(matches!(failed, Err(Error::Input(_))), "{failed:?}");
    }
}
