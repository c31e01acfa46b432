//! The answers to the scenarios of a paper, each from one or several backends.

use anyhow::{Context, anyhow};
use clap::ValueEnum;
use gridhaul_scenario::answer::Answer;

use super::{Experiment, Paper};
use crate::args::{Engine, On};
use crate::ask::{self, Vary};
use crate::backends;
use crate::failure::Failure;

/// All answers, in the order of `paper.toml`.
#[derive(Debug, Default)]
pub(crate) struct Answers(Vec<Found>);

/// One answer.
#[derive(Debug)]
struct Found {
    scenario: String,
    backend: String,
    /// Asked for in addition, to draw a smooth line.
    further: bool,
    answer: Answer,
}

impl Answers {
    /// Asks every backend that `paper.toml` names; those of the command line where it names none.
    pub(crate) fn ask(
        paper: &Paper,
        quick: bool,
        engine: &Engine,
        quiet: bool,
    ) -> Result<Self, Failure> {
        let mut all = Vec::new();
        for experiment in &paper.about.scenario {
            let (name, scenario) = paper.scenario(experiment, quick).map_err(Failure::Fault)?;
            for on in experiment.backends(&engine.on).map_err(Failure::Fault)? {
                let engine = Engine { on: vec![on], threads: engine.threads };
                let answer = backends::answer(&scenario, &engine, &name, quiet)?;
                // Two ways to solve one kind of equations are one backend, but two names.
                let backend = name_of(on);
                if let Some(further) = experiment.further.get(&backend) {
                    let further = settings(further).map_err(Failure::Fault)?;
                    let scenario = ask::assign(scenario.clone(), &experiment.file, &further)
                        .map_err(Failure::Fault)?;
                    let answer = backends::answer(&scenario, &engine, &name, quiet)?;
                    let (scenario, backend) = (name.clone(), backend.clone());
                    all.push(Found { scenario, backend, further: true, answer });
                }
                all.push(Found { scenario: name.clone(), backend, further: false, answer });
            }
        }
        Ok(Self(all))
    }

    /// Who answered a scenario.
    pub(crate) fn backends<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.0.iter().filter(move |found| found.scenario == scenario && !found.further);
        own.map(|found| found.backend.as_str())
    }

    /// The answers of one backend to a scenario; two where it was asked for a smooth line as well.
    pub(crate) fn of<'a>(
        &'a self,
        scenario: &'a str,
        backend: &'a str,
    ) -> impl Iterator<Item = &'a Answer> {
        let fits = move |found: &&Found| found.scenario == scenario && found.backend == backend;
        self.0.iter().filter(fits).map(|found| &found.answer)
    }

    /// The answer that published figures are held to: the simulator's, or else the first.
    pub(crate) fn main(&self, scenario: &str) -> Option<&Answer> {
        let own = || self.0.iter().filter(|found| found.scenario == scenario && !found.further);
        let simulated = own().find(|found| found.backend == "sim");
        simulated.or_else(|| own().next()).map(|found| &found.answer)
    }

    /// All answers with a name for a file: that of the scenario, and the backend where several answered.
    pub(crate) fn named(&self) -> impl Iterator<Item = (String, &Answer)> {
        self.0.iter().map(|found| {
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

impl Experiment {
    /// The backends that answer.
    fn backends(&self, default: &[On]) -> anyhow::Result<Vec<On>> {
        if self.on.is_empty() {
            return Ok(default.to_vec());
        }
        let read = |name: &String| {
            On::from_str(name, false).map_err(|_| {
                let known: Vec<_> = On::value_variants().iter().map(|on| name_of(*on)).collect();
                let known = known.join(", ");
                anyhow!("on: there is no backend {name:?}\n  help: choose among: {known}")
            })
        };
        self.on.iter().map(read).collect::<Result<_, _>>().with_context(|| self.file.clone())
    }
}

/// The name of a backend on the command line.
fn name_of(on: On) -> String {
    on.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// Keys and their values, as on the command line.
pub(super) fn settings(texts: &[String]) -> anyhow::Result<Vec<Vary>> {
    texts
        .iter()
        .map(|text| text.parse().map_err(|error: String| anyhow!("{text}: {error}")))
        .collect()
}
