//! `cargo xtask soak`: tests that run longer than those of a change.

use clap::{Args, Subcommand};

use crate::process::{self, cargo};

/// Arguments of `soak`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Kill collector and head of the relay at random times, and check that nothing stored is lost
    Relay {
        /// Number of kills for each durability tier
        #[arg(long, default_value_t = 1_000)]
        cycles: u32,
    },
}

/// Runs the test with the number of cycles.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Subject::Relay { cycles } = options.subject;
    let mut test = cargo();
    test.args(["test", "--locked", "-p", "gridhaul-relay", "--test", "daemon", "kill::"]);
    test.args(["--", "--nocapture", "--test-threads=1"]);
    process::run(test.env("GRIDHAUL_KILL_CYCLES", cycles.to_string()))
}
