//! `gridhaul completions`: shell completions; and the files of a package.

use anyhow::Context;
use clap::CommandFactory;

use gridhaul_cli::{PackageFilesArgs, print};

use super::error::CommandError;
use crate::args::{Cli, CompletionsArgs};

/// Prints the completion script.
pub(crate) fn run(args: &CompletionsArgs) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gridhaul", &mut script);
    Ok(print(&String::from_utf8_lossy(&script))?)
}

/// Writes manual pages and completions.
pub(crate) fn write_package_files(args: &PackageFilesArgs) -> Result<(), CommandError> {
    let written = gridhaul_cli::write_package_files(&Cli::command(), &args.folder);
    Ok(written.with_context(|| args.folder.display().to_string())?)
}
