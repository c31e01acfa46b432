//! The simulation of the load of a capture over its estimated link.

use std::sync::{Arc, Mutex, PoisonError};

use gridhaul_capture::ConnectionComparison;
use gridhaul_scenario::units::{BitRate, Probability};
use serde::{Deserialize, Serialize};

use crate::cancellation::Cancellation;
use crate::command;
use crate::http::Response;
use crate::runner::{CaptureOptions, RunFailure, Runner, SimulatedCapture};
use crate::subject::Capture;

/// A request for a simulation. Absent values are those of the command line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SimulationRequest {
    /// The place of the page: a later simulation in this place cancels it.
    pub(crate) place: String,
    seed: Option<u64>,
    /// Rate of the link, such as `3 Mbit/s`.
    rate: Option<String>,
    /// Share of the data, such as `10 %`.
    tolerance: Option<String>,
}

/// The latest simulation, whose packets a page requests connection by connection.
#[derive(Debug, Default)]
pub(crate) struct KeptSimulation(Mutex<Option<Kept>>);

#[derive(Debug)]
struct Kept {
    options: CaptureOptions,
    simulated: Arc<SimulatedCapture>,
}

/// The comparison of all connections.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    /// The command that prints it.
    command: String,
    csv_command: String,
    /// The scenario of the simulation.
    scenario: &'a str,
    headings: [&'static str; 6],
    connections: Vec<Row<'a>>,
    csv: String,
}

#[derive(Debug, Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    comparison: &'a ConnectionComparison,
    /// As `gridhaul explain --simulate` prints them.
    cells: [String; 6],
    sentence: String,
}

impl SimulationRequest {
    fn options(&self) -> Result<CaptureOptions, String> {
        let defaults = CaptureOptions::default();
        let rate = self.rate.as_deref().filter(|text| !text.trim().is_empty());
        let rate = rate
            .map(|text| text.parse::<BitRate>().map_err(|error| format!("rate {text:?}: {error}")));
        let tolerance = self.tolerance.as_deref().map(|text| {
            text.parse::<Probability>().map_err(|error| format!("tolerance {text:?}: {error}"))
        });
        Ok(CaptureOptions {
            seed: self.seed.unwrap_or(defaults.seed),
            rate: rate.transpose()?,
            tolerance: tolerance.transpose()?.unwrap_or(defaults.tolerance),
        })
    }
}

/// The comparison of all connections as an answer.
pub(crate) fn summary(
    capture: &Capture,
    request: &SimulationRequest,
    kept: &KeptSimulation,
    runner: &dyn Runner,
    cancellation: &Cancellation,
) -> Result<Response, RunFailure> {
    let simulated = simulation(capture, request, kept, runner, cancellation)?;
    let options = request.options().map_err(RunFailure::Refused)?;
    let words = command_options(&options);
    let with_format = [&words[..], &["--format csv".to_owned()]].concat();
    let comparison = &simulated.comparison;
    let row =
        |comparison| Row { comparison, cells: comparison.cells(), sentence: comparison.sentence() };
    let summary = Summary {
        command: command::explain(&capture.files, &words),
        csv_command: command::explain(&capture.files, &with_format),
        scenario: &simulated.scenario,
        headings: ConnectionComparison::HEADINGS,
        connections: comparison.connections.iter().map(row).collect(),
        csv: comparison.csv(),
    };
    Ok(Response::json("200 OK", &summary))
}

/// The simulation of a request: the latest one if it had the same options.
pub(super) fn simulation(
    capture: &Capture,
    request: &SimulationRequest,
    kept: &KeptSimulation,
    runner: &dyn Runner,
    cancellation: &Cancellation,
) -> Result<Arc<SimulatedCapture>, RunFailure> {
    let options = request.options().map_err(RunFailure::Refused)?;
    let lock = || kept.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(latest) = &*lock()
        && latest.options == options
    {
        return Ok(Arc::clone(&latest.simulated));
    }
    let simulated = Arc::new(runner.simulate_capture(capture, &options, cancellation)?);
    *lock() = Some(Kept { options, simulated: Arc::clone(&simulated) });
    Ok(simulated)
}

/// The options of `gridhaul explain` that differ from its defaults.
fn command_options(options: &CaptureOptions) -> Vec<String> {
    let defaults = CaptureOptions::default();
    let mut words = vec!["--simulate".to_owned()];
    if options.seed != defaults.seed {
        words.push(format!("--seed {}", options.seed));
    }
    words.extend(options.rate.map(|rate| format!("--rate {}", command::quoted(&rate.to_string()))));
    if options.tolerance != defaults.tolerance {
        let tolerance = command::quoted(&options.tolerance.to_string());
        words.push(format!("--tolerance {tolerance}"));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_options_of_the_command() {
        let request = SimulationRequest {
            seed: Some(7),
            rate: Some("3 Mbit/s".to_owned()),
            tolerance: Some("5 %".to_owned()),
            ..SimulationRequest::default()
        };
        let options = request.options().unwrap();
        let words = command_options(&options).join(" ");
        assert_eq!(words, "--simulate --seed 7 --rate '3 Mbit/s' --tolerance '5 %'");
        let empty = SimulationRequest { rate: Some(" ".to_owned()), ..Default::default() };
        assert_eq!(command_options(&empty.options().unwrap()), ["--simulate"]);
    }

    #[test]
    fn a_value_without_its_unit_is_refused_with_the_expected_form() {
        let rate = SimulationRequest { rate: Some("3".to_owned()), ..Default::default() };
        let message = rate.options().unwrap_err();
        assert!(message.contains("rate \"3\"") && message.contains("Mbit/s"), "{message}");
        let share = SimulationRequest { tolerance: Some("10".to_owned()), ..Default::default() };
        assert!(share.options().unwrap_err().contains("tolerance \"10\""));
    }
}
