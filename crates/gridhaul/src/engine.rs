//! Who answers.

use anyhow::bail;
use gridhaul_emu::Emu;
use gridhaul_model::{Model, PaperModel};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use crate::args::{Engine, On};
use crate::estimate::ensure_possible;
use crate::failure::Failure;
use crate::interrupt;
use crate::terminal::{Bar, say};

/// Answers a scenario by the one backend that was asked for.
pub(crate) fn answer(
    scenario: &Scenario,
    engine: &Engine,
    label: &str,
    quiet: bool,
) -> Result<Answer, Failure> {
    let mut answers = answers(scenario, engine, label, quiet)?;
    match (answers.pop(), answers.is_empty()) {
        (Some(answer), true) => Ok(answer),
        _ => Err(anyhow::anyhow!("--on: this command takes one backend at a time").into()),
    }
}

/// Answers a scenario by each backend that was asked for, with a progress bar unless `quiet`; prints
/// the warnings of the answers. After an interruption, the answers are those that there are by then.
pub(crate) fn answers(
    scenario: &Scenario,
    engine: &Engine,
    label: &str,
    quiet: bool,
) -> Result<Vec<Answer>, Failure> {
    let backends = backends(engine)?;
    ensure_possible(scenario, engine).map_err(|error| error.context(label.to_owned()))?;
    // All are asked first whether they can, before any takes its time.
    for backend in &backends {
        backend.supports(scenario).map_err(|keys| {
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            let name = backend.name();
            anyhow::anyhow!("backend `{name}` cannot honour every key:\n{}", keys.join("\n"))
        })?;
    }
    let mut answers = Vec::with_capacity(backends.len());
    for backend in &backends {
        let bar = Bar::new(label, quiet);
        let answer = backend.run(scenario, &bar);
        bar.finish();
        let answer = match answer {
            // What the backends before it have answered is kept.
            Err(RunError::Interrupted) if !answers.is_empty() => break,
            answer => answer?,
        };
        let by = if backends.len() > 1 { format!("{}: ", backend.name()) } else { String::new() };
        for warning in &answer.warnings {
            say(format_args!("warning: {by}{}: {}", warning.about, warning.message));
        }
        answers.push(answer);
        if interrupt::is_requested() {
            break;
        }
    }
    Ok(answers)
}

/// The simulator, which refuses runs that would not end or fit by estimate.
pub(crate) struct BoundedSim(pub(crate) Engine);

impl Backend for BoundedSim {
    fn name(&self) -> &'static str {
        self.sim().name()
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        self.sim().supports(scenario)
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let possible = ensure_possible(scenario, &self.0);
        possible.map_err(|error| RunError::Invalid(format!("{error:#}")))?;
        self.sim().run(scenario, progress)
    }
}

impl BoundedSim {
    const fn sim(&self) -> Sim {
        Sim { threads: self.0.threads }
    }
}

fn backends(engine: &Engine) -> anyhow::Result<Vec<Box<dyn Backend>>> {
    let mut backends: Vec<Box<dyn Backend>> = Vec::new();
    for (index, on) in engine.on.iter().enumerate() {
        if engine.on[..index].contains(on) {
            bail!("--on: the same backend twice\n  help: name each once, such as 'sim,model'");
        }
        backends.push(match on {
            On::Sim => Box::new(Sim { threads: engine.threads }),
            On::Emu => Box::new(Emu { beside: engine.beside, ..Emu::default() }),
            On::Model => Box::new(Model),
            On::PaperModel => Box::new(PaperModel),
        });
    }
    Ok(backends)
}
