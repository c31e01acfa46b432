//! The command line. Standard output carries data only; progress, warnings and errors go to
//! standard error.

use std::ffi::OsString;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Command};
use crate::command;
use crate::command::error::CommandError;
use crate::command::program::start_program;

/// Runs the program with these arguments, of which the first one is its name, and returns its exit
/// code. Ends the process after wrong arguments and a signal. The process must have a single
/// thread, since backend `emu` changes its user namespace.
#[must_use]
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    std::panic::set_hook(Box::new(gridhaul_cli::report_panic));
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if gridhaul_cli::requests_build_report(&arguments) {
        return exit_code(command::build_report::run());
    }
    let Cli { verbose, command } = Cli::parse_from(arguments);
    if verbose {
        gridhaul_cli::refuse_verbose(&mut Cli::command());
    }
    if command.needs_root() {
        // If this fails, the run reports the missing permission and the remedy.
        #[cfg(feature = "emulation")]
        let _ = gridhaul_linux::become_root();
    }
    exit_code(execute(&command))
}

fn exit_code(done: Result<(), CommandError>) -> u8 {
    match done {
        Ok(()) => 0,
        Err(error) => error.report(),
    }
}

fn execute(command: &Command) -> Result<(), CommandError> {
    match command {
        Command::Run(args) => command::run::run(args),
        Command::Sweep(args) => command::sweep::sweep(args),
        Command::Merge(args) => command::sweep::merge(args),
        Command::Compare(args) => command::compare::run(args),
        Command::Explore(args) => command::explore::run(args),
        Command::Export(args) => command::export::run(args),
        Command::Plan(args) => command::plan::run(args),
        Command::Paper(args) => command::paper::run(args),
        Command::Explain(args) => command::explain::run(args),
        Command::Import(command) => command::import::run(command),
        Command::Model(command) => command::model::run(command),
        #[cfg(feature = "emulation")]
        Command::Emu(command) => command::emu::run(command),
        #[cfg(feature = "emulation")]
        Command::Cc(command) => command::cc::run(command),
        #[cfg(not(feature = "emulation"))]
        Command::Emu(_) | Command::Cc(_) => Err(anyhow::Error::new(crate::EmulatorNotBuilt).into()),
        Command::Measure(args) => start_program("gridhaul-measure", &args.args),
        Command::Relay(args) => start_program("gridhaul-relay", &args.args),
        Command::Check(args) => command::check::run(args),
        Command::Schema(args) => command::schema::run(args),
        Command::Doctor => command::doctor::run(),
        Command::Completions(args) => command::completions::run(args),
        Command::PackageFiles(args) => command::completions::write_package_files(args),
    }
}
