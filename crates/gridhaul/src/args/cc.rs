//! Arguments of `cc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::command::error::EXIT_CODES;

/// What `cc` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum CcCommand {
    /// Load algorithms into the kernel; they stay until `cc unload` or the next start of the machine
    Load(CcLoadArgs),
    /// Take algorithms out again; connections that have them keep them until they close
    Unload(CcUnloadArgs),
    /// List the algorithms: which are loaded, by whom, and how many connections have them
    List,
    /// Show what the loaded algorithms have counted
    Status,
}

/// Arguments of `cc load`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcLoadArgs {
    /// Which; without any, all
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
    /// Stay, and take them out when this command ends, however it ends
    #[arg(long)]
    pub(crate) hold: bool,
    /// Vegas: the window grows while fewer segments than this wait in queues [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_alpha: Option<u32>,
    /// Vegas: the window shrinks while more segments than this wait [default: 3]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_beta: Option<u32>,
    /// Vegas: slow start ends when more segments than this wait [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_gamma: Option<u32>,
    /// MEDX: how much of the average delay stays when another arrives [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    pub(crate) medx_alpha: Option<f64>,
    /// MEDX: a delay beyond this many times the average may mean congestion [default: 1.2]
    #[arg(long, allow_negative_numbers = true, value_name = "FACTOR")]
    pub(crate) medx_beta: Option<f64>,
    /// MEDX: so many delays must keep rising as well (2 to 8) [default: 4]
    #[arg(long, allow_negative_numbers = true, value_name = "DELAYS")]
    pub(crate) medx_buffer: Option<u32>,
    /// MEDX: control group (version 2) whose connections may carry its TCP option; by default all may
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cgroup: Option<PathBuf>,
}

/// Arguments of `cc unload`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcUnloadArgs {
    /// Which; without any, all
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
}

/// An algorithm for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CcAlgorithm {
    /// TCP Vegas: `gh_vegas`
    #[value(alias = "gh_vegas")]
    Vegas,
    /// TCP-MEDX: `gh_medx`
    #[value(alias = "gh_medx")]
    Medx,
}
