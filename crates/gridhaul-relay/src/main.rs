//! The program `gridhaul-relay`; `gridhaul relay` starts it.

#![forbid(unsafe_code)]

mod command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use command::Cli;

fn main() -> ExitCode {
    if gridhaul_cli::report_build_if_requested("gridhaul-relay", env!("CARGO_PKG_VERSION")) {
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
