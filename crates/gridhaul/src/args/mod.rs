//! The command line. The doc comments of this module and its submodules are the texts of `--help`.

mod cc;
mod emu;
mod exit_codes;
mod explain;
mod explore;
mod import;
mod model;
mod options;
mod run;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::BackendName;
use clap::{Args, Parser, Subcommand, ValueEnum};
use gridhaul_cli::PackageFilesArgs;

use exit_codes::EXIT_CODES;

pub(crate) use cc::CcCommand;
#[cfg(feature = "emulation")]
pub(crate) use cc::{CcAlgorithm, CcLoadArgs};
pub(crate) use emu::EmuCommand;
#[cfg(feature = "emulation")]
pub(crate) use emu::EmuUpArgs;
pub(crate) use explain::{ExplainArgs, ExplainFormat};
pub(crate) use explore::ExploreArgs;
pub(crate) use import::{
    ImportCommand, IperfArgs, MetersArgs, NatigArgs, PcapArgs, PingArgs, PowerLine, TopologyArgs,
};
pub(crate) use model::{
    ChainArgs, ChainCongestionControl, ChainFormat, ChainNode, ChainRules, ModelCommand,
};
pub(crate) use options::{OutputOptions, PrintOptions};
pub(crate) use run::{
    CompareArgs, ExportArgs, MergeArgs, PaperArgs, PlanArgs, RunArgs, SweepArgs, Verify,
};

/// Predict TCP performance on the narrow, lossy, asymmetric links of power grids
///
/// A scenario file describes the network, the TCP parameters and the load; gridhaul predicts loss,
/// delay, throughput and completion times. Quantities have units: "3 Mbit/s", "25 ms", "240 B".
#[derive(Debug, Parser)]
#[command(name = "gridhaul", version, max_term_width = 100, after_long_help = EXIT_CODES)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// With '--version': commit, features and support of the kernel, for a report of a defect
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Commands of gridhaul.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and print its results; write a report and data to a folder
    Run(RunArgs),
    /// Run a scenario for several values of a key
    Sweep(SweepArgs),
    /// Write the results folder of a sweep whose runs have been computed in shards
    Merge(MergeArgs),
    /// Compare scenarios, results or backends, and test the differences for significance
    Compare(CompareArgs),
    /// Write tables of stored answers as CSV, JSON or Parquet, without running the scenario again
    Export(ExportArgs),
    /// Open a page in the browser: a scenario with sliders, the points of stored results, or a
    /// capture
    Explore(ExploreArgs),
    /// Find the cheapest configuration that meets limits: number of aggregators, TCP, link rates
    Plan(PlanArgs),
    /// Reproduce the experiments of a paper and check every published figure; without a name, list
    /// the papers
    Paper(PaperArgs),
    /// Explain a packet capture: what limits each TCP connection, and an estimate of the link
    Explain(ExplainArgs),
    /// Convert a file of another program to a scenario
    #[command(subcommand)]
    Import(ImportCommand),
    /// Print parts of the analytical model
    #[command(subcommand)]
    Model(ModelCommand),
    /// Build the network of a scenario from network namespaces, for your own programs
    #[command(subcommand)]
    Emu(EmuCommand),
    /// Measure power-grid protocols message by message: latency, reliability, outages, efficiency
    #[command(disable_help_flag = true)]
    Measure(ProgramArgs),
    /// Run the relay daemon: aggregation of meters with durable storage
    #[command(disable_help_flag = true)]
    Relay(ProgramArgs),
    /// Validate scenario files without running them
    Check(CheckArgs),
    /// Print the JSON Schema of scenarios (for completion in editors) or of answers
    Schema(SchemaArgs),
    /// Load congestion control algorithms into the kernel: Vegas and MEDX for any TCP connection
    #[command(subcommand)]
    Cc(CcCommand),
    /// Check which optional programs and kernel features are available, and how to install missing
    /// ones
    Doctor,
    /// Print shell completions
    Completions(CompletionsArgs),
    /// Write manual pages and completions for a package
    #[command(hide = true)]
    PackageFiles(PackageFilesArgs),
}

impl Command {
    /// Whether the command creates namespaces and devices.
    pub(crate) fn needs_root(&self) -> bool {
        match self {
            Self::Run(RunArgs { engine, .. })
            | Self::Sweep(SweepArgs { run: RunArgs { engine, .. }, .. })
            | Self::Compare(CompareArgs { engine, .. }) => engine.on.contains(&BackendName::Emu),
            // Scenarios of a paper may name the backend `emu`.
            Self::Paper(args) => args.name.is_some(),
            Self::Emu(_) => true,
            _ => false,
        }
    }
}

/// Arguments for a program of its own, which parses them.
#[derive(Debug, Args)]
pub(crate) struct ProgramArgs {
    /// Arguments of the program; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    pub(crate) args: Vec<OsString>,
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Scenario files; '-' reads standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// File format
    #[arg(value_enum, default_value_t)]
    pub(crate) of: SchemaFormat,
}

/// A file format with a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// Scenario files
    #[default]
    Scenario,
    /// answer.json
    Answer,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell
    pub(crate) shell: clap_complete::Shell,
}
