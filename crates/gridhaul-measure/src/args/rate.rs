//! Arguments of a search of the highest rate.

use clap::Args;
use gridhaul_scenario::units::Duration;

use super::exit_codes::EXIT_CODES;
use super::value_parsers::{positive_duration, rate, resolution, share};
use super::{IdleStateArgs, ProtocolArgs, RemoteArgs};

/// Arguments of `rate`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RateArgs {
    /// First rate of the search, in messages per second
    #[arg(long, default_value_t = 100.0, value_parser = rate)]
    pub(crate) rate: f64,

    /// Lowest rate of the search, in messages per second
    #[arg(long, default_value_t = 1.0, value_parser = rate)]
    pub(crate) rate_min: f64,

    /// Highest rate of the search, in messages per second
    #[arg(long, default_value_t = 100_000.0, value_parser = rate)]
    pub(crate) rate_max: f64,

    /// Ratio between the result and the lowest rate that failed, less 1
    #[arg(long, default_value_t = 0.05, value_parser = resolution)]
    pub(crate) resolution: f64,

    /// Share of messages that may be lost, corrupt or refused, such as 0.01 or "1 %"
    #[arg(long, default_value_t = 0.0, value_parser = share)]
    pub(crate) loss: f64,

    /// Time of a trial after its warm-up
    #[arg(long, default_value = "2 s", value_parser = positive_duration)]
    pub(crate) trial: Duration,

    /// Further trials that must confirm the result
    #[arg(long, default_value_t = 2)]
    pub(crate) confirmations: u32,

    /// Idle states of the processors.
    #[command(flatten)]
    pub(crate) idle_states: IdleStateArgs,

    /// Settings that `rate` shares with a run.
    #[command(flatten)]
    pub(crate) common: ProtocolArgs,

    /// The other machine.
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}
