//! One run of a changed scenario, on the simulator and on the model.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::{Directions, Record, Scenario};
use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

use super::series::{self, SeriesOf};
use crate::cancellation::Cancellation;
use crate::command;
use crate::runner::{Changes, RunBackend, RunFailure, Runner};
use crate::subject::Subject;

/// A request for a run.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RunRequest {
    /// The place of the page in which the run is drawn: a later run in this place cancels it.
    pub(crate) place: String,
    /// `KEY=VALUE`, as after `--set`.
    settings: Vec<String>,
    seed: Option<u64>,
    replications: Option<u32>,
}

/// The answers and series that a page draws.
#[derive(Debug, Serialize)]
pub(crate) struct RunResult {
    /// The command that prints the answers.
    command: String,
    /// The command that records the series.
    series_command: String,
    /// The scenario with the changes.
    toml: String,
    /// As `gridhaul run --json` prints them: the simulator, then the model if it supports the
    /// scenario.
    answers: Vec<Answer>,
    /// Why the model has no answer.
    model_failure: Option<String>,
    /// Rate of each direction of a link, by its name.
    rates_bit_per_s: Vec<(String, f64)>,
    series: Vec<SeriesOf>,
}

/// Samples of a series: more cannot be distinguished on a screen.
const SAMPLES: u64 = 600;

/// Runs the scenario with the changes of the request.
pub(crate) fn run(
    subject: &Subject,
    request: &RunRequest,
    runner: &dyn Runner,
    cancellation: &Cancellation,
) -> Result<RunResult, RunFailure> {
    let changes = Changes {
        settings: request.settings.clone(),
        seed: request.seed,
        replications: Some(request.replications.unwrap_or(1)),
        ..Changes::default()
    };
    let scenario = runner.change(&subject.scenario, &changes).map_err(RunFailure::Refused)?;
    let interval = sampling_interval(scenario.duration);
    let record = Record { interval: Some(interval), ..scenario.record.clone() };
    let recorded = Scenario { record, ..scenario.clone() };
    let mut simulated = runner.run(&recorded, RunBackend::Sim, cancellation)?;
    let series = series::of(&simulated);
    let series = series.map_err(|error| RunFailure::Refused(error.to_string()))?;
    // Recordings do not influence the numbers: they are those of the scenario without them.
    simulated.scenario_sha256 = scenario.sha256();
    simulated.remove_unrecorded(&scenario.record);
    let mut answers = vec![simulated];
    let model_failure = match runner.run(&scenario, RunBackend::Model, cancellation) {
        Ok(mut answer) => {
            answer.remove_unrecorded(&scenario.record);
            answers.push(answer);
            None
        }
        Err(RunFailure::Cancelled) => return Err(RunFailure::Cancelled),
        Err(RunFailure::Refused(message)) => Some(message),
    };
    let backends: Vec<_> = answers.iter().map(|answer| answer.backend.as_str()).collect();
    let directions = Directions::new(&scenario);
    let rates = directions.rows().iter().zip(directions.rates());
    let rates = rates.map(|((name, _), rate)| (name.clone(), rate.as_bits_per_sec() as f64));
    Ok(RunResult {
        command: command::of(subject, &changes, &backends),
        series_command: {
            let changes = Changes { series: Some(interval), ..changes };
            command::of(subject, &changes, &["sim"])
        },
        toml: scenario.to_toml(),
        rates_bit_per_s: rates.collect(),
        answers,
        model_failure,
        series,
    })
}

/// The interval of about [`SAMPLES`] samples: 1, 2 or 5 times a power of ten, at least 1 ms.
fn sampling_interval(duration: Duration) -> Duration {
    let least = (duration / SAMPLES).as_nanos().max(1_000_000);
    let power = 10_u64.pow(least.ilog10());
    let steps = [1, 2, 5, 10].map(|step| step * power);
    let interval = steps.into_iter().find(|interval| *interval >= least);
    Duration::from_nanos(interval.unwrap_or(least))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sampling_interval_is_a_round_number() {
        for (seconds, interval) in
            [(0.1, "1 ms"), (5.0, "10 ms"), (60.0, "100 ms"), (100.0, "200 ms"), (3600.0, "10 s")]
        {
            let duration = Duration::from_secs_f64(seconds);
            assert_eq!(sampling_interval(duration).to_string(), interval, "{seconds} s");
        }
    }
}
