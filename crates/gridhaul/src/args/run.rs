//! Arguments of the commands that answer scenarios: `run`, `sweep`, `compare`, `plan` and `paper`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gridhaul::Vary;

use super::options::{Changes, Engine, Output, Printed};
use crate::command::error::EXIT_CODES;

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SweepArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    /// Values of a key: a list or a range; several --vary are combined in every way
    ///
    /// 'link.uplink.forward.rate=1 Mbit/s,2 Mbit/s' takes these values;
    /// 'link.uplink.forward.delay=lin:10 ms:100 ms:10' takes ten in equal steps, and 'log:' takes
    /// them in equal ratios. What the file sweeps is swept as well, unless it is the same key: then
    /// these values replace those of the file.
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub(crate) vary: Vec<Vary>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Scenario files, results folders or answer.json files; the first is what others are held to
    ///
    /// One scenario is enough with several backends: 'compare line.toml --on sim,model'.
    #[arg(num_args = 1.., required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// End with exit code 1 when any metric differs by more than chance
    ///
    /// Deterministic answers have no interval: of these, a difference above 1 % counts.
    #[arg(long)]
    pub(crate) must_agree: bool,
    /// Number of runs of each scenario; from two on, there is a verdict
    #[arg(long, value_name = "N")]
    pub(crate) replications: Option<u32>,
    /// Write report.html and comparison.json into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the folder even if it holds files that gridhaul did not write
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no hints; warnings and errors remain
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Arguments of `plan`.
///
/// The scenario's `[plan]` says what may be chosen, what it costs and what must hold. Equations judge
/// the candidates in the order of their cost; the cheapest that keeps every limit is then simulated,
/// and the next ones are tried where it does not survive.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PlanArgs {
    /// Scenario file (TOML) with a table [plan]
    pub(crate) file: PathBuf,
    /// What is simulated
    #[arg(long, value_enum, value_name = "DEPTH", default_value_t = Verify::Winner)]
    pub(crate) verify: Verify,
    /// Most candidates that are simulated
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_candidates: u16,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Threads for the simulations; 0: one for each core. The result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Engine")]
    pub(crate) threads: usize,
    /// Simulate even if a run needs more memory than is free, or takes longer than 24 hours
    #[arg(long, help_heading = "Engine")]
    pub(crate) ignore_estimate: bool,
}

/// How much of a plan is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// Nothing: trust the equations
    None,
    /// The cheapest choice by equations; where the simulation differs, its neighbours, until the cheapest
    /// choice that keeps every limit by simulation is found
    Winner,
    /// The same, and every choice of the shortlist (runners-up and neighbours), over at least three seeds each
    Full,
}

/// Arguments of `paper`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PaperArgs {
    /// Name of the paper; without it, the papers are listed
    pub(crate) name: Option<String>,
    /// Fewer repeats: under a minute, with wider intervals
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) engine: Engine,
}
