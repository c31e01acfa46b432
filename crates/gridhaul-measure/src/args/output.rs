//! Destination of results.

use std::path::PathBuf;

use clap::Args;

/// Where the results of a command go.
#[derive(Debug, Clone, Args)]
pub(crate) struct OutputArgs {
    /// Folder for the results: the data (JSON), the log of the messages of each measurement
    /// (Parquet), charts, a report (HTML) and the log of the broker
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the data as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
