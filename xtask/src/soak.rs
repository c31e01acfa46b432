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
        /// Kill HAProxy and nginx as well, and print the lost bytes of each program
        #[arg(long)]
        peers: bool,
    },
}

/// Runs the test with the number of cycles.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Subject::Relay { cycles, peers } = options.subject;
    let test = |name: &str| {
        let mut test = cargo();
        test.args(["test", "--locked", "-p", "gridhaul-relay", "--test", "daemon", name]);
        test.args(["--", "--nocapture", "--test-threads=1"]);
        test
    };
    process::run(test("kill::").env("GRIDHAUL_KILL_CYCLES", cycles.to_string()))?;
    if peers {
        process::run(test("peers::").arg("--ignored"))?;
    }
    Ok(())
}
