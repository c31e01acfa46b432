//! `cargo xtask soak`: tests that run longer than those of a change.

use clap::{Args, Subcommand};

use crate::bench;
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
        /// Number of kills for each durability tier [default: 1000; with another option, none]
        #[arg(long)]
        cycles: Option<u32>,
        /// Kill the relay, HAProxy and nginx while the server does not read, and print the lost
        /// bytes of each program
        #[arg(long)]
        peers: bool,
        /// Send 20,000 messages per second for so many minutes, and check that memory does not grow
        #[arg(long)]
        minutes: Option<u32>,
    },
}

const DEFAULT_CYCLES: u32 = 1_000;

/// Runs the tests that were chosen.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let Subject::Relay { cycles, peers, minutes } = options.subject;
    let test = |name: &str| {
        let mut test = cargo();
        test.args(["test", "--locked", "-p", "gridhaul-relay", "--test", "daemon", name]);
        test.args(["--", "--nocapture", "--test-threads=1"]);
        test
    };
    let is_default = !peers && minutes.is_none();
    if let Some(cycles) = cycles.or(is_default.then_some(DEFAULT_CYCLES)) {
        process::run(test("kill::").env("GRIDHAUL_KILL_CYCLES", cycles.to_string()))?;
    }
    if peers {
        process::run(test("peers::").arg("--ignored"))?;
    }
    if let Some(minutes) = minutes {
        bench::check(&bench::relay::measure(&format!("sustained={}", minutes * 60))?)?;
    }
    Ok(())
}
