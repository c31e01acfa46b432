//! Arguments of `cc`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::exit_codes::EXIT_CODES;

/// Commands of `cc`.
#[derive(Debug, Subcommand)]
pub(crate) enum CcCommand {
    /// Load algorithms into the kernel; they remain until `cc unload` or a reboot
    Load(CcLoadArgs),
    /// Unload algorithms; existing connections keep using them until they close
    Unload(CcUnloadArgs),
    /// List the algorithms: whether loaded, by which process, and number of connections
    List,
    /// Show parameters and counters of the loaded algorithms
    Status,
}

/// Arguments of `cc load`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcLoadArgs {
    /// Algorithms to load [default: all]
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
    /// Keep running, and unload the algorithms when this command ends, even if it is killed
    #[arg(long)]
    pub(crate) hold: bool,
    /// Vegas: increase the window while fewer segments than this are queued [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_alpha: Option<u32>,
    /// Vegas: decrease the window while more segments than this are queued [default: 3]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_beta: Option<u32>,
    /// Vegas: leave slow start when more segments than this are queued [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_gamma: Option<u32>,
    /// MEDX: weight of the previous mean delay in the moving average [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "WEIGHT")]
    pub(crate) medx_alpha: Option<f64>,
    /// MEDX: a delay above this multiple of the mean may indicate congestion [default: 1.2]
    #[arg(long, allow_negative_numbers = true, value_name = "FACTOR")]
    pub(crate) medx_beta: Option<f64>,
    /// MEDX: number of consecutive delays that must also increase (2 to 8) [default: 4]
    #[arg(long, allow_negative_numbers = true, value_name = "SAMPLES")]
    pub(crate) medx_buffer: Option<u32>,
    /// MEDX: restrict its TCP option to connections of this control group (version 2) [default:
    /// all]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cgroup: Option<PathBuf>,
}

/// Arguments of `cc unload`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcUnloadArgs {
    /// Algorithms to unload [default: all]
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
}

/// A congestion control algorithm for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CcAlgorithm {
    /// TCP Vegas: `gh_vegas`
    #[value(alias = "gh_vegas")]
    Vegas,
    /// TCP-MEDX: `gh_medx`
    #[value(alias = "gh_medx")]
    Medx,
}
