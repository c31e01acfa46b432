//! What can be written on the command line. The comments here are the texts of `--help`.

mod cc;
mod emu;
mod model;
mod options;
mod run;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::command::error::EXIT_CODES;

pub(crate) use cc::{CcAlgorithm, CcCommand, CcLoadArgs};
pub(crate) use emu::{EmuCommand, EmuUpArgs};
pub(crate) use model::{ChainArgs, ChainFormat, ChainOf, ChainRules, ChainVariant, ModelCommand};
pub(crate) use options::{Changes, Engine, On, Output, Printed};
pub(crate) use run::{CompareArgs, PaperArgs, PlanArgs, RunArgs, SweepArgs, Verify};

/// How TCP fares on the narrow, lossy, lopsided links of power grids
///
/// A scenario file says which network, which TCP and which load; gridhaul answers with loss, delay,
/// throughput and completion times. Quantities carry their unit: "3 Mbit/s", "25 ms", "240 B".
#[derive(Debug, Parser)]
#[command(name = "gridhaul", version, max_term_width = 100, after_long_help = EXIT_CODES)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What gridhaul can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Answer a scenario: a table here, and a folder with report, data and the merged scenario
    Run(RunArgs),
    /// Answer a scenario for several values of a key
    Sweep(SweepArgs),
    /// Put scenarios or answers side by side: differences, and whether they are more than chance
    Compare(CompareArgs),
    /// Find the cheapest choice that keeps limits: how many collectors, which TCP, which link
    Plan(PlanArgs),
    /// Repeat a paper's experiments and check every published figure; without a name: list them
    Paper(PaperArgs),
    /// Show what the equations are made of
    #[command(subcommand)]
    Model(ModelCommand),
    /// Make the network of a scenario out of network namespaces, for programs of your own
    #[command(subcommand)]
    Emu(EmuCommand),
    /// Read scenario files and say what is wrong with them, without running anything
    Check(CheckArgs),
    /// Print the JSON Schema of scenarios (editors complete from it) or of answers
    Schema(SchemaArgs),
    /// Give this machine's kernel congestion control: Vegas and MEDX for any TCP connection
    #[command(subcommand)]
    Cc(CcCommand),
    /// Say what this machine offers, and how to get what is missing
    Doctor,
    /// Print the completions of a shell
    Completions(CompletionsArgs),
}

impl Command {
    /// Whether it makes namespaces and devices.
    pub(crate) fn needs_root(&self) -> bool {
        match self {
            Self::Run(RunArgs { engine, .. })
            | Self::Sweep(SweepArgs { engine, .. })
            | Self::Compare(CompareArgs { engine, .. }) => engine.on.contains(&On::Emu),
            // A paper may ask real kernels.
            Self::Paper(args) => args.name.is_some(),
            Self::Emu(_) => true,
            _ => false,
        }
    }
}

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Scenario files; '-' is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// Arguments of `schema`.
#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Schema of what
    #[arg(value_enum, default_value_t)]
    pub(crate) of: SchemaOf,
}

/// What a schema describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Scenario files
    #[default]
    Scenario,
    /// answer.json
    Answer,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}
