//! Runs and sweeps of scenarios.

use anyhow::anyhow;
use gridhaul_data::trace;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Scenario, ScenarioError};

use crate::engine::{BackendName, Engine};
use crate::error::{Error, UnsupportedKeys};
use crate::estimate::ensure_possible;
use crate::observer::Observer;
use crate::request::{self, Changes, Vary};

/// Runs a scenario with each backend of the engine. `label` names the scenario in messages and
/// progress.
///
/// Returns one answer for each backend, in the order of the engine; each has one point for each
/// combination of swept values, and a point has a row for each flow and each direction of a link.
/// The names of metrics end in their unit. After an interruption there may be fewer answers, and
/// the last one may be incomplete ([`Answer::incomplete`]).
///
/// # Errors
/// A key that a backend does not support, a trace that cannot be read, a run that is estimated to
/// need more memory or time than allowed, a machine without what a backend needs, or an
/// interruption before anything was finished. The keys, for all backends, and the traces are
/// checked before the first run begins.
pub fn run(
    scenario: &Scenario,
    engine: &Engine,
    label: &str,
    observer: &dyn Observer,
) -> Result<Vec<Answer>, Error> {
    let backends = engine.backends()?;
    ensure_possible(scenario, engine).map_err(|error| error.context(label.to_owned()))?;
    // Every backend checks the keys before the first one runs: a run may take hours.
    for backend in &backends {
        let unsupported = |keys| UnsupportedKeys {
            backend: backend.name(),
            keys,
            supported_by: supporting(scenario),
        };
        backend.supports(scenario).map_err(|keys| anyhow::Error::new(unsupported(keys)))?;
    }
    trace::check(scenario).map_err(|error| ScenarioError { file: label.to_owned(), ..error })?;
    let mut answers = Vec::with_capacity(backends.len());
    for backend in &backends {
        let progress = observer.begin(label);
        let answer = backend.run(scenario, progress.as_ref());
        let interrupted = progress.is_interrupted();
        drop(progress);
        let answer = match answer {
            // The answers of the earlier backends are kept.
            Err(RunError::Interrupted) if !answers.is_empty() => break,
            answer => answer?,
        };
        observer.on_answer(&answer, backends.len() == 1);
        answers.push(answer);
        if interrupted {
            break;
        }
    }
    Ok(answers)
}

/// The simulator, the model and the emulator, as far as they support every key of a scenario.
fn supporting(scenario: &Scenario) -> Vec<BackendName> {
    let supports = |name: &BackendName| {
        let engine = Engine { backends: vec![*name], ..Engine::default() };
        let backends = engine.backends().unwrap_or_default();
        backends.iter().any(|backend| backend.supports(scenario).is_ok())
    };
    [BackendName::Sim, BackendName::Model, BackendName::Emu].into_iter().filter(supports).collect()
}

/// Runs a scenario as [`run`] does, for several values of keys: `"link.a.both.rate=1 Mbit/s,2
/// Mbit/s"` or `"link.a.both.delay=lin:10 ms:100 ms:10"`, parsed into [`Vary`]. Several keys, and
/// the sweeps of the scenario, are combined (Cartesian product). Each answer has one point for each
/// combination, the last key changing fastest.
///
/// # Errors
/// A key or a value that the scenario does not have, and the errors of [`run`].
pub fn sweep(
    scenario: Scenario,
    vary: &[Vary],
    engine: &Engine,
    label: &str,
    observer: &dyn Observer,
) -> Result<Vec<Answer>, Error> {
    let (scenario, _) = request::change(scenario, label, &Changes::default(), vary)?;
    run(&scenario, engine, label, observer)
}

/// Runs a scenario with the only backend of the engine.
pub(crate) fn answer(
    scenario: &Scenario,
    engine: &Engine,
    label: &str,
    observer: &dyn Observer,
) -> Result<Answer, Error> {
    let mut answers = run(scenario, engine, label, observer)?;
    match (answers.pop(), answers.is_empty()) {
        (Some(answer), true) => Ok(answer),
        _ => {
            Err(anyhow!("several backends are given: this command takes one backend at a time")
                .into())
        }
    }
}
