//! `gridhaul completions`: shell completions.

use clap::CommandFactory;

use gridhaul_cli::print;

use super::error::CommandError;
use crate::args::{Cli, CompletionsArgs};

/// Prints the completion script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gridhaul", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}
