//! Arguments of `explain`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gridhaul_cli::value::whole_number;
use gridhaul_scenario::units::{BitRate, Probability};

/// Arguments of `explain`.
///
/// For each TCP connection of a capture: one sentence that names the limit of its throughput
/// (application, receive window, congestion window, losses, timeouts, delayed acknowledgements,
/// Nagle's algorithm, a proxy, the rate of the link) with the evidence, and an estimate of the link
/// with intervals. Without sufficient evidence the connection is "undecided".
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Captures (pcap or pcapng). Several files are one capture: both directions of a link as
    /// `gridhaul run --pcap` writes them, or several points
    #[arg(num_args = 1.., required = true, value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// Format of the output
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
    pub(crate) format: ExplainFormat,
    /// Only this connection, with all its numbers
    #[arg(long, value_name = "N")]
    pub(crate) connection: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) simulation: SimulationOptions,
    /// Write the output to a file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Suppress progress and hints; print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Options of a simulation of the capture.
#[derive(Debug, Args)]
#[command(next_help_heading = "Simulation of the same load")]
pub(crate) struct SimulationOptions {
    /// Simulate the load of the capture (who sends what when) over the estimated link, and compare
    /// the goodput of each connection and the time at which both part
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Random seed; the same seed gives the same results
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, default_value_t = 1)]
    #[arg(requires = "simulate")]
    pub(crate) seed: u64,
    /// Rate of the link, if no connection of the capture has filled it
    #[arg(long, value_name = "RATE", requires = "simulate")]
    pub(crate) rate: Option<BitRate>,
    /// Share of the data of a connection by which the acknowledged bytes of capture and simulation
    /// may differ before they part, such as '10 %'. Two segments and two round trips are always
    /// permitted
    #[arg(long, value_name = "SHARE", default_value = "10 %", requires = "simulate")]
    pub(crate) tolerance: Probability,
}

/// Format of explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// Sentences; with '--simulate' a table
    #[default]
    Text,
    /// All facts, as an object
    Json,
    /// A table of the connections
    Csv,
    /// A table of the packets of one connection, which '--connection' names
    Packets,
}

/// Examples, for `--help`.
const EXAMPLES: &str = "\
Examples:
  tcpdump -i eth0 -s 128 -w upload.pcap tcp port 443
  gridhaul explain upload.pcap
  gridhaul explain upload.pcap --connection 3
  gridhaul explain upload.pcap --format csv --out connections.csv
  gridhaul explain --simulate upload.pcap
  gridhaul explain results/outage/radio.forward.pcapng results/outage/radio.reverse.pcapng

Exit codes:
  0  success
  2  a file that is no capture, or is damaged: the message names the file and the byte
130  interrupted (Ctrl-C): the part that has been read is explained";
