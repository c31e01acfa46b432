//! The program `gridhaul-measure`, which `gridhaul measure` starts.
//!
//! Standard output carries data only; progress, warnings and errors go to standard error.

#![forbid(unsafe_code)]

mod args;
mod command;
mod terminal;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use gridhaul_measure::run::message;

use args::{Cli, Command};

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(gridhaul_cli::report_panic));
    if gridhaul_cli::report_build_if_requested("gridhaul-measure", env!("CARGO_PKG_VERSION")) {
        return ExitCode::SUCCESS;
    }
    let matches = Cli::command().get_matches();
    let command = match Cli::from_arg_matches(&matches) {
        Ok(cli) if cli.verbose => gridhaul_cli::refuse_verbose(&mut Cli::command()),
        Ok(cli) => cli.command,
        Err(error) => error.exit(),
    };
    if command.needs_namespaces() {
        // If this fails, the run reports the missing permission and the remedy.
        let _ = gridhaul_linux::become_root();
    }
    let done = command.options(&matches).and_then(|options| match options {
        Some(options) => command::measure::run_options(&options),
        None => run(&command),
    });
    match done {
        Ok(code) => code,
        Err(error) => {
            gridhaul_cli::say(format_args!("error: {}", message(&error)));
            ExitCode::from(gridhaul_cli::exit_code::INVALID_INPUT)
        }
    }
}

fn run(command: &Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Agent(args) => command::agent::run(args),
        Command::Corruption(args) => command::corruption::run(args),
        Command::Efficiency(args) => command::efficiency::run(args),
        Command::Latency(_) | Command::Outage(_) | Command::Rate(_) | Command::Reliability(_) => {
            anyhow::bail!("the options mean no measurement")
        }
        Command::Matrix(args) => command::matrix::run(args),
        Command::Reserve(args) => command::reserve::run(args),
        Command::Run(args) => command::measure::run_file(args),
        Command::PackageFiles(args) => {
            // The program's own name: that of its command line is `gridhaul measure`.
            let program = Cli::command().name("gridhaul-measure");
            gridhaul_cli::write_package_files(&program, &args.folder)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Sync(args) => command::sync::run(args),
    }
}
