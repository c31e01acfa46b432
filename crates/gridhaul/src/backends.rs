//! Who answers.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use crate::args::{Engine, On};
use crate::failure::Failure;
use crate::terminal::Bar;

/// Answers a scenario, with a progress bar unless `quiet`; prints the warnings of the answer.
pub(crate) fn answer(
    scenario: &Scenario,
    engine: &Engine,
    label: &str,
    quiet: bool,
) -> Result<Answer, Failure> {
    let backend = backend(engine);
    backend.supports(scenario).map_err(|keys| {
        let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
        let name = backend.name();
        anyhow::anyhow!("backend `{name}` cannot honour every key:\n{}", keys.join("\n"))
    })?;
    let bar = Bar::new(label, quiet);
    let answer = backend.run(scenario, &bar);
    bar.finish();
    let answer = answer?;
    for warning in &answer.warnings {
        eprintln!("warning: {}: {}", warning.about, warning.message);
    }
    Ok(answer)
}

fn backend(engine: &Engine) -> Box<dyn Backend> {
    match engine.on {
        On::Sim => Box::new(Sim { threads: engine.threads }),
    }
}
