//! The program that runs scenarios, as this crate sees it.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::units::Duration;

use crate::cancellation::Cancellation;

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
