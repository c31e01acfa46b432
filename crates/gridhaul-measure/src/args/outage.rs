//! Arguments of an outage.

use clap::{Args, ValueEnum};
use gridhaul_scenario::units::Duration;

use super::exit_codes::EXIT_CODES;
use super::value_parsers::duration;
use super::{RemoteArgs, RunArgs};

/// Failing part of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailingPart {
    /// All links of the scenario, in both directions
    Links,
    /// The broker that is started: it is killed, and started again
    Broker,
    /// Nothing: the user interrupts the network, and the outage is found in the times of arrival
    Observed,
}

/// Arguments of an outage.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct OutageArgs {
    /// Failing part; by default `links`, and `observed` with --agent
    #[arg(long = "of", value_enum, value_name = "PART")]
    pub(crate) part: Option<FailingPart>,

    /// Length of the outage; with `observed`, the longest that is expected. Messages that arrive
    /// later than --horizon and twice this length are lost
    #[arg(long, default_value = "10 s", value_parser = duration)]
    pub(crate) length: Duration,

    /// Start of the outage, after the start of the network, or after the warm-up of the messages
    /// for --of broker
    #[arg(long, default_value = "5 s", value_parser = duration)]
    pub(crate) start: Duration,

    /// The run.
    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// The other machine.
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

impl OutageArgs {
    /// Failing part.
    pub(crate) fn part(&self) -> FailingPart {
        let default =
            if self.remote.agent.is_some() { FailingPart::Observed } else { FailingPart::Links };
        self.part.unwrap_or(default)
    }
}
