//! Arguments of `explain`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
    /// Write the output to a file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Suppress progress and hints; print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Format of explanations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum ExplainFormat {
    /// Sentences
    #[default]
    Text,
    /// All facts, as an object
    Json,
    /// A table of the connections
    Csv,
}

/// Examples, for `--help`.
const EXAMPLES: &str = "\
Examples:
  tcpdump -i eth0 -s 128 -w upload.pcap tcp port 443
  gridhaul explain upload.pcap
  gridhaul explain upload.pcap --connection 3
  gridhaul explain upload.pcap --format csv --out connections.csv
  gridhaul explain results/outage/radio.forward.pcapng results/outage/radio.reverse.pcapng

Exit codes:
  0  success
  2  a file that is no capture, or is damaged: the message names the file and the byte
130  interrupted (Ctrl-C): the part that has been read is explained";
