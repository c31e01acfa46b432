//! Arguments of an outage.

use clap::{Args, ValueEnum};
use gridhaul_scenario::units::Duration;

use super::RunArgs;
use super::value_parsers::duration;

/// What fails in an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailingPart {
    /// All links of the scenario, in both directions
    Links,
    /// The broker that is started: it is killed, and started again
    Broker,
}

impl FailingPart {
    /// Name in documents.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::Broker => "broker",
        }
    }
}

/// Arguments of an outage.
#[derive(Debug, Args)]
pub(crate) struct OutageArgs {
    /// What fails
    #[arg(long = "of", value_enum, value_name = "PART", default_value = "links")]
    pub(crate) part: FailingPart,

    /// Length of the outage
    #[arg(long, default_value = "10 s", value_parser = duration)]
    pub(crate) length: Duration,

    /// Start of the outage, after the start of the network, or after the warm-up of the messages for --of broker
    #[arg(long, default_value = "5 s", value_parser = duration)]
    pub(crate) start: Duration,

    /// The run.
    #[command(flatten)]
    pub(crate) run: RunArgs,
}
