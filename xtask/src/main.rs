//! Chores of the repository: `cargo xtask test`, `cargo xtask bench`, `cargo xtask docs`.

#![forbid(unsafe_code)]

mod bench;
mod docs;
mod shell;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Chores of the repository", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Run everything that must hold before a change is taken; this is what CI runs
    Test(test::Options),
    /// Measure gridhaul against its bars, and its peers beside it
    Bench(bench::Options),
    /// Write the generated pages and golden files anew
    Docs,
}

fn main() -> ExitCode {
    let result = match Cli::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::Bench(options) => bench::run(&options),
        Chore::Docs => docs::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
