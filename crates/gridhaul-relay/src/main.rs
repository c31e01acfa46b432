//! The program `gridhaul-relay`; `gridhaul relay` starts it.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use command::Cli;

fn main() -> ExitCode {
    if gridhaul_cli::asks_for_build_report(&std::env::args_os().collect::<Vec<_>>()) {
        let version = env!("CARGO_PKG_VERSION");
        print!("{}", gridhaul_cli::build_report("gridhaul-relay", version, &[]));
        return ExitCode::SUCCESS;
    }
    let cli = Cli::parse();
    if cli.verbose {
        gridhaul_cli::refuse_verbose(&mut Cli::command());
    }
    match command::run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
