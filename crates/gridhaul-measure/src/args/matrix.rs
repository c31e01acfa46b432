//! Arguments of `matrix`.

use clap::Args;
use gridhaul_scenario::units::Duration;

use super::OutputArgs;
use super::exit_codes::EXIT_CODES;
use super::value_parsers::positive_duration;

/// Arguments of `matrix`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct MatrixArgs {
    /// An option of `gridhaul measure latency` and its values, such as `qos=0,1`, or one of
    /// `protocol`, `values` (numbers in a message) and `encoding` (json, protobuf,
    /// protobuf-float32, protobuf-received, float32, float64, xer or dlms). All combinations are
    /// measured; an option that a protocol does not have is left out
    #[arg(long, value_name = "OPTION=VALUE,…", required = true)]
    pub(crate) vary: Vec<String>,

    /// Length of each measurement after its warm-up, unless the number of messages is given; at
    /// least 200 messages
    #[arg(long, default_value = "6 s", value_parser = positive_duration)]
    pub(crate) time: Duration,

    /// Print the commands and do not run them
    #[arg(long)]
    pub(crate) list: bool,

    /// Where the results go.
    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Options of every measurement, after `--`, such as `-- --subscriber to`
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
}
