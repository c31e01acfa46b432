//! Arguments of the commands that run scenarios: `run`, `sweep`, `compare`, `plan` and `paper`.

use std::path::PathBuf;

use crate::{Shard, Vary};
use clap::{ArgGroup, Args, ValueEnum};
use gridhaul_cli::value::{replications, whole_number};
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::table::TableName;
use gridhaul_scenario::units::Duration;

use super::exit_codes::EXIT_CODES;
use super::options::{
    ChangeOptions, CommonOutput, EngineOptions, OutputOptions, PrintOptions, RecordOptions,
};

/// Arguments of `run`, which `sweep` has as well.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); '-' reads standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) changes: ChangeOptions,
    #[command(flatten)]
    pub(crate) record: RecordOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) print: PrintOptions,
    #[command(flatten)]
    pub(crate) engine: EngineOptions,
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SweepArgs {
    /// Values of a key: a list or a range; several --vary are combined (Cartesian product)
    ///
    /// 'link.uplink.forward.rate=1 Mbit/s,2 Mbit/s' sweeps these two values;
    /// 'link.uplink.forward.delay=lin:10 ms:100 ms:10' sweeps ten linearly spaced values, and
    /// 'log:' logarithmically spaced ones. Sweeps of the file are combined with these, except for
    /// the same key: then these values replace those of the file.
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<Vary>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Compute every N-th run only, such as 3/100, without a results folder; 'merge' writes it
    #[arg(long, value_name = "I/N", help_heading = "Stored results")]
    pub(crate) shard: Option<Shard>,
    /// Print the shards of N that have missing runs, as '--array=1,4-7', and compute nothing
    ///
    /// Prints nothing on standard output if no run is missing.
    #[arg(long, value_name = "N", help_heading = "Stored results")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) missing: Option<u32>,
    /// Folder of the results of runs [default: the results folder with '.units' appended]
    ///
    /// A result is valid as long as the resolved scenario of its point, the traces and the program
    /// are the same: the same command resumes an interrupted sweep, and repeats only the runs that
    /// an edit of the scenario changes. Backend 'sim', without recordings.
    #[arg(long, value_name = "DIR", help_heading = "Stored results")]
    pub(crate) units: Option<PathBuf>,
    /// Longest estimated time of the runs that are stored in one file; a crash loses them
    #[arg(long, value_name = "TIME", default_value = "30 s", help_heading = "Stored results")]
    pub(crate) unit_time: Duration,
}

/// Arguments of `merge`.
///
/// The scenario and its changes are those of the sweep. The results folder does not depend on the
/// machines, the order and the interruptions of the runs.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct MergeArgs {
    /// Values of a key, as for 'sweep'
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<Vary>,
    #[command(flatten)]
    pub(crate) run: RunArgs,
    /// Folder of the results of runs; repeatable [default: the results folder with '.units'
    /// appended]
    #[arg(long, value_name = "DIR", help_heading = "Stored results")]
    pub(crate) units: Vec<PathBuf>,
}

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Scenario files, results folders or answer.json files; the first is the reference
    ///
    /// One scenario is enough with several backends: 'compare line.toml --on sim,model'.
    #[arg(num_args = 1.., required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Exit with code 1 if any metric differs significantly (95 % confidence)
    ///
    /// Deterministic answers have no confidence interval: a difference above 1 % counts.
    #[arg(long)]
    pub(crate) must_agree: bool,
    /// Number of replications of each scenario; two or more allow a test of significance
    #[arg(long, value_name = "N", value_parser = replications, allow_negative_numbers = true)]
    pub(crate) replications: Option<u32>,
    /// Results folder [default: in 'results', 'compare-' and the names of the compared files]
    ///
    /// The folder contains report.html and comparison.json.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: CommonOutput,
    #[command(flatten)]
    pub(crate) print: PrintOptions,
    #[command(flatten)]
    pub(crate) engine: EngineOptions,
}

/// Arguments of `export`.
///
/// The table 'answers' has one line per answer, point, and flow or link direction, as `--csv` of
/// `run` prints them. JSON and Parquet have the same columns; unknown values are null.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
#[command(group = ArgGroup::new("format").required(true).multiple(true)
    .args(["csv", "json", "parquet"]))]
pub(crate) struct ExportArgs {
    /// Results folders or answer.json files
    #[arg(num_args = 1.., required = true, value_name = "RESULTS")]
    pub(crate) results: Vec<PathBuf>,
    /// Print CSV, or write it to a file: '--csv=FILE'
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,
    /// Print JSON, a list of rows, or write it to a file: '--json=FILE'
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Write a Parquet file
    #[arg(long, value_name = "FILE")]
    pub(crate) parquet: Option<PathBuf>,
    /// Table: answers, flows, links, points, replications or members
    #[arg(long, value_name = "TABLE", default_value = "answers")]
    pub(crate) table: TableName,
    /// Only these metrics, such as goodput_bit_per_s
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    pub(crate) only: Vec<Metric>,
    /// Suppress hints; print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `plan`.
///
/// The table `[plan]` of the scenario lists the candidate values, their costs and the limits. The
/// analytical model evaluates the candidates in the order of their cost; the cheapest that meets
/// every limit is then simulated. If the simulation does not confirm it, further candidates are
/// simulated.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PlanArgs {
    /// Scenario file (TOML) with a table [plan]
    pub(crate) file: PathBuf,
    /// Candidates to verify by simulation
    #[arg(long, value_enum, value_name = "DEPTH", default_value_t = Verify::Winner)]
    pub(crate) verify: Verify,
    /// Maximum number of candidates to simulate
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_candidates: u16,
    /// Runs of the choice with different seeds, all of which must meet every limit
    ///
    /// With 95 % confidence, 20 of 20 show that at least 86 % of runs meet the limits, and 59 of 59
    /// that at least 95 % do.
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(3..))]
    pub(crate) runs: u16,
    #[command(flatten)]
    pub(crate) changes: ChangeOptions,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    /// Threads for the simulations; 0: one per core. The result does not depend on this number
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Execution")]
    #[arg(value_parser = whole_number::<usize>, allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Simulate even if a run is estimated to exceed the free memory or 24 hours
    #[arg(long, help_heading = "Execution")]
    pub(crate) ignore_estimate: bool,
}

/// Candidates of a plan that are verified by simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// None: rely on the analytical model
    None,
    /// The cheapest candidate of the model; if the simulation disagrees, neighbouring candidates
    /// until the cheapest one that meets every limit in simulation is found
    Winner,
    /// As 'winner', plus the whole shortlist (runners-up and neighbours), with at least three
    /// replications each
    Full,
}

/// Arguments of `paper`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PaperArgs {
    /// Name of the paper; without a name, list the papers
    pub(crate) name: Option<String>,
    /// Use fewer replications: within two minutes on two idle cores, with wider intervals
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) engine: EngineOptions,
}
