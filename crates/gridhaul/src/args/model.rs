//! Arguments of `model`.

use clap::{Args, Subcommand, ValueEnum};
use gridhaul_scenario::units::{Duration, Probability};

use super::exit_codes::EXIT_CODES;

/// Parts of the analytical model that can be printed.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Print a Markov chain: states, transitions with explanations, and stationary probabilities
    Chain(ChainArgs),
}

/// Arguments of `model chain`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct ChainArgs {
    /// Node whose TCP sender the chain models
    #[arg(value_enum)]
    pub(crate) of: ChainNode,
    /// Congestion control algorithm
    #[arg(long, value_enum, default_value_t)]
    pub(crate) congestion_control: ChainCongestionControl,
    /// Transition rules
    #[arg(long, value_enum, default_value_t)]
    pub(crate) rules: ChainRules,
    /// Maximum window in segments: 1 or 2 (default 2) for a meter, 1 to 64 (default 8) for an
    /// aggregator
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) window: Option<u32>,
    /// Segment loss probability
    #[arg(long, value_name = "PROBABILITY", default_value = "10 %")]
    pub(crate) loss: Probability,
    /// Round-trip time without queueing
    #[arg(long, value_name = "TIME", default_value = "150 ms")]
    pub(crate) rtt: Duration,
    /// Aggregator: utilisation of its upstream link, whose queueing delay Vegas measures
    #[arg(long, value_name = "RATIO", default_value = "80 %")]
    pub(crate) load: Probability,
    /// Aggregator: queue length of its upstream link in packets
    #[arg(long, value_name = "N", default_value_t = 40)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) queue: u32,
    /// Aggregator: service time of a packet on its upstream link
    #[arg(long, value_name = "TIME", default_value = "1 ms")]
    pub(crate) service: Duration,
    /// Meter: mean length of its on period
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub(crate) on: Duration,
    /// Meter: mean length of its off period
    #[arg(long, value_name = "TIME", default_value = "1 min")]
    pub(crate) off: Duration,
    /// Meter: keep the window after an idle period, as with `restart_after_idle = false`; always so
    /// with `--rules paper`
    #[arg(long)]
    pub(crate) no_restart: bool,
    /// Output format: 'dot' for Graphviz, 'mermaid' for Markdown viewers
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: ChainFormat,
}

/// A node that has a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ChainNode {
    /// A meter: idle most of the time, then sends with a window of one or two segments
    Meter,
    /// An aggregator: always has data; its window grows, and decreases after losses or queueing
    Aggregator,
}

/// A congestion control algorithm that has a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainCongestionControl {
    /// Reno: based on losses
    #[default]
    Reno,
    /// Vegas: based on queueing delay; may retransmit after one duplicate acknowledgement
    Vegas,
}

/// Transition rules of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainRules {
    /// Rules of paper `sa-tcp` (figures 5 and 6)
    Paper,
    /// Rules of TCP: the retransmission timeout exceeds a round-trip time and doubles
    #[default]
    Refined,
}

/// Output format of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ChainFormat {
    /// Markdown tables
    #[default]
    Table,
    /// Graphviz
    Dot,
    /// Mermaid
    Mermaid,
}
