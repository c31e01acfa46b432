//! The program that runs scenarios, as this crate sees it.

use std::io;

use gridhaul_capture::{CaptureError, CaptureFile, Comparison, Explanation};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, Capture as RecordedCapture};
use gridhaul_scenario::units::{BitRate, Duration, Probability};

use crate::cancellation::Cancellation;
use crate::subject::Capture;

/// Runs scenarios. Implemented by the program with its library, so that the page shows the numbers
/// of the command line.
pub trait Runner: Send + Sync {
    /// A scenario with changes.
    ///
    /// # Errors
    /// Changes that do not apply to the scenario: the message of the command line.
    fn change(&self, scenario: &Scenario, changes: &Changes) -> Result<Scenario, String>;

    /// The answer of one backend.
    ///
    /// # Errors
    /// See [`RunFailure`].
    fn run(
        &self,
        scenario: &Scenario,
        backend: RunBackend,
        cancellation: &Cancellation,
    ) -> Result<Answer, RunFailure>;

    /// Opens the files of a capture.
    ///
    /// # Errors
    /// A file that cannot be read: the message of the command line.
    fn open_captures(&self, files: &[String]) -> Result<Vec<CaptureFile>, String>;

    /// Simulates the load of a capture over its estimated link.
    ///
    /// # Errors
    /// See [`RunFailure`].
    fn simulate_capture(
        &self,
        capture: &Capture,
        options: &CaptureOptions,
        cancellation: &Cancellation,
    ) -> Result<SimulatedCapture, RunFailure>;
}

/// Options of the simulation of a capture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CaptureOptions {
    /// Random seed.
    pub seed: u64,
    /// Rate of the link, if no connection shows it.
    pub rate: Option<BitRate>,
    /// Share of the data of a connection by which the acknowledged bytes may differ.
    pub tolerance: Probability,
}

/// A simulation of the load of a capture.
#[derive(Debug, Clone)]
pub struct SimulatedCapture {
    /// The connections of the capture, compared with the simulated ones.
    pub comparison: Comparison,
    /// The simulation, explained as the capture is.
    pub explanation: Explanation,
    /// The packets of the simulation.
    pub captures: Vec<RecordedCapture>,
    /// The scenario, as TOML.
    pub scenario: String,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        let tolerance = Probability::new(0.1).unwrap_or(Probability::ZERO);
        Self { seed: 1, rate: None, tolerance }
    }
}

/// A backend that answers while a slider moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunBackend {
    /// Packet simulation.
    Sim,
    /// Equations.
    Model,
}

/// Changes to a scenario, as options of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// `KEY=VALUE`, as after `--set`.
    pub settings: Vec<String>,
    /// Random seed.
    pub seed: Option<u64>,
    /// Number of replications.
    pub replications: Option<u32>,
    /// Sampling interval of recorded series.
    pub series: Option<Duration>,
    /// Links whose packets are captured.
    pub pcap: Vec<String>,
    /// Flows whose events are logged.
    pub events: Vec<String>,
}

/// Why a run has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFailure {
    /// A later request of the same page has replaced this one.
    Cancelled,
    /// The scenario is not supported or cannot run: the message of the command line.
    Refused(String),
}

impl From<CaptureError> for RunFailure {
    fn from(error: CaptureError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<io::Error> for RunFailure {
    fn from(error: io::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

/// A program without scenarios and captures, for tests: it refuses all settings, and its runs end
/// when the function does.
#[cfg(test)]
pub(crate) struct CancelledRunner(pub fn(&Cancellation));

#[cfg(test)]
impl Runner for CancelledRunner {
    fn change(&self, scenario: &Scenario, changes: &Changes) -> Result<Scenario, String> {
        match changes.settings.first() {
            Some(setting) => Err(format!("there is no key {setting}")),
            None => Ok(scenario.clone()),
        }
    }

    fn run(
        &self,
        _: &Scenario,
        _: RunBackend,
        cancellation: &Cancellation,
    ) -> Result<Answer, RunFailure> {
        self.0(cancellation);
        Err(RunFailure::Cancelled)
    }

    fn open_captures(&self, _: &[String]) -> Result<Vec<CaptureFile>, String> {
        Err("there are no captures".to_owned())
    }

    fn simulate_capture(
        &self,
        _: &Capture,
        _: &CaptureOptions,
        _: &Cancellation,
    ) -> Result<SimulatedCapture, RunFailure> {
        Err(RunFailure::Cancelled)
    }
}
