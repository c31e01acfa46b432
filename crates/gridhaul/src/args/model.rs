//! Arguments of `model`.

use clap::{Args, Subcommand, ValueEnum};
use gridhaul_scenario::units::{Duration, Probability};

use crate::command::error::EXIT_CODES;

/// What the equations are made of.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Print a Markov chain: states, rules with their reasons, and the share of time in each state
    Chain(ChainArgs),
}

/// Arguments of `model chain`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ChainArgs {
    /// Whose chain
    #[arg(value_enum)]
    pub(crate) of: ChainOf,
    /// TCP variant
    #[arg(long, value_enum, default_value_t)]
    pub(crate) congestion_control: ChainVariant,
    /// Whose rules: those of paper `sa-tcp`, or those that a TCP follows
    #[arg(long, value_enum, default_value_t)]
    pub(crate) rules: ChainRules,
    /// Largest window in segments: 1 or 2 (2 by default) for a meter, 1 to 64 (8) for a collector
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) window: Option<u32>,
    /// Share of the segments that are lost
    #[arg(long, value_name = "SHARE", default_value = "10 %")]
    pub(crate) loss: Probability,
    /// Round trip
    #[arg(long, value_name = "TIME", default_value = "150 ms")]
    pub(crate) rtt: Duration,
    /// Load of the link behind a collector, as a share of what it carries: what Vegas listens to
    #[arg(long, value_name = "SHARE", default_value = "80 %")]
    pub(crate) load: Probability,
    /// Packets that its queue has room for
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) queue: u32,
    /// Time that a packet takes on it; the round trip without waiting is `--rtt`
    #[arg(long, value_name = "TIME", default_value = "1 ms")]
    pub(crate) service: Duration,
    /// Mean length of a meter's burst
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub(crate) on: Duration,
    /// Mean length of its silence
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    pub(crate) off: Duration,
    /// A silence changes nothing for a meter: as with `restart_after_idle = false`. The paper's rules are always so
    #[arg(long)]
    pub(crate) no_restart: bool,
    /// How it is written: 'dot' is for Graphviz, 'mermaid' is drawn by Markdown viewers
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ChainFormat,
}

/// Whose chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChainOf {
    /// A meter: silent for most of the time, then a window of one or two segments
    Meter,
    /// A collector: it always has data; its window grows, and falls with losses or with the queue
    Collector,
}

/// A variant that has a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainVariant {
    /// Reno: follows losses
    #[default]
    Reno,
    /// Vegas: follows the queue, and one duplicate acknowledgement may be enough
    Vegas,
}

/// Whose rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainRules {
    /// Figures 5 and 6 of paper `sa-tcp`, from its text
    Paper,
    /// What a TCP does: its timer is longer than a round trip and doubles
    #[default]
    Refined,
}

/// How a chain is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainFormat {
    /// Tables in Markdown
    #[default]
    Table,
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
}
