//! Arguments of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use gridhaul_scenario::units::{Bytes, Duration};

use super::exit_codes::EXIT_CODES;

/// Commands of `import`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Convert the topology of NATIG, a co-simulation with ns-3 and GridLAB-D
    Natig(NatigArgs),
}

/// Arguments of `import natig`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct NatigArgs {
    /// Topology of NATIG: topology.json
    #[arg(value_name = "FILE")]
    pub(crate) topology: PathBuf,
    /// Substations, their elements and the polls: grid.json [default: a substation for each node
    /// but the last, with 100 elements]
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Option<PathBuf>,
    /// Time between two polls of a substation [default: that of grid.json, or 15 ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) poll: Option<Duration>,
    /// Duration of the run [default: that of grid.json, or 60 s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// Size of a poll
    #[arg(long, value_name = "SIZE", default_value = "20 B")]
    pub(crate) request: Bytes,
    /// Size of a response [default: 20 B, and 5 B for each element of the substation]
    #[arg(long, value_name = "SIZE")]
    pub(crate) response: Option<Bytes>,
    /// Poll over each path with at most one further gateway, and not over the shortest only
    #[arg(long)]
    pub(crate) all_paths: bool,
    /// Leave the messages to another program, which steps the simulation
    #[arg(long)]
    pub(crate) external: bool,
    /// File of the scenario [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
