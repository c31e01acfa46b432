//! The command line of gridhaul.
//!
//! Standard output carries data only; progress, warnings and errors go to standard error.

#![forbid(unsafe_code)]

mod args;
mod atomic_file;
mod command;
mod interrupt;
mod lock;
mod print_options;
mod result_file;
mod results_folder;
mod results_kind;
mod table_layout;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use command::error::CommandError;
use command::program::start_program;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(gridhaul_cli::report_panic));
    let command = Cli::parse().command;
    if command.needs_root() {
        // If this fails, the run reports the missing permission and the remedy.
        #[cfg(feature = "emulation")]
        let _ = gridhaul_linux::become_root();
    }
    match run(&command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(),
    }
}

fn run(command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Run(args) => command::run::run(args),
        Command::Sweep(args) => command::sweep::sweep(args),
        Command::Merge(args) => command::sweep::merge(args),
        Command::Compare(args) => command::compare::run(args),
        Command::Export(args) => command::export::run(args),
        Command::Plan(args) => command::plan::run(args),
        Command::Paper(args) => command::paper::run(args),
        Command::Model(command) => command::model::run(command),
        #[cfg(feature = "emulation")]
        Command::Emu(command) => command::emu::run(command),
        #[cfg(feature = "emulation")]
        Command::Cc(command) => command::cc::run(command),
        #[cfg(not(feature = "emulation"))]
        Command::Emu(_) | Command::Cc(_) => {
            Err(anyhow::Error::new(gridhaul::EmulatorNotBuilt).into())
        }
        Command::Measure(args) => start_program("gridhaul-measure", &args.args),
        Command::Relay(args) => start_program("gridhaul-relay", &args.args),
        Command::Check(args) => command::check::run(args),
        Command::Schema(args) => command::schema::run(args),
        Command::Doctor => command::doctor::run(),
        Command::Completions(args) => command::completions::run(args),
        Command::PackageFiles(args) => command::completions::write_package_files(args),
    }
}
