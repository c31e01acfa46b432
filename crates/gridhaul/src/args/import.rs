//! Arguments of `import`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gridhaul_scenario::units::{BitRate, Bytes, Duration};

use super::exit_codes::EXIT_CODES;

/// Commands of `import`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Convert the topology of NATIG, a co-simulation with ns-3 and GridLAB-D
    Natig(NatigArgs),
    /// Convert a packet capture: the estimated link, and who sends what when
    Pcap(PcapArgs),
    /// Convert the log of a test of iperf3 ('iperf3 --json') to a link
    Iperf(IperfArgs),
    /// Convert the output of ping to a link
    Ping(PingArgs),
    /// Convert a table of meters in CSV (feeder, coordinates, class) to groups
    Meters(MetersArgs),
    /// Convert a topology in GraphML or node-link JSON
    Topology(TopologyArgs),
}

/// Destination of every import of a single file.
#[derive(Debug, Args)]
pub(crate) struct ScenarioFile {
    /// File of the scenario [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Arguments of `import pcap`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PcapArgs {
    /// Captures (pcap or pcapng); several files are one capture
    #[arg(num_args = 1.., required = true, value_name = "CAPTURE")]
    pub(crate) captures: Vec<PathBuf>,
    /// Folder of the scenario and its traces, which is created
    #[arg(long, short, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Rate of the link, if no connection of the capture has filled it
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<BitRate>,
    /// Suppress progress and hints; print errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of `import iperf`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct IperfArgs {
    /// Log of 'iperf3 --json'
    #[arg(value_name = "FILE")]
    pub(crate) log: PathBuf,
    /// Rate of the link [default: what the receiver has received, with headers]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<BitRate>,
    /// Delay of each direction [default: half of the smallest round trip of the test, which
    /// contains the queue]
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<Duration>,
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
}

/// Arguments of `import ping`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PingArgs {
    /// Output of ping
    #[arg(value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Rate of the link, which ping does not measure
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: BitRate,
    /// Size of the messages of the example flow
    #[arg(long, value_name = "SIZE", default_value = "200 B")]
    pub(crate) size: Bytes,
    /// Time between two messages
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    pub(crate) every: Duration,
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
}

/// Arguments of `import meters`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct MetersArgs {
    /// Table with the columns feeder, x_m and y_m (or lat and lon), and optionally class; a row of
    /// class "head" is the head of its feeder
    #[arg(value_name = "FILE")]
    pub(crate) table: PathBuf,
    /// Class of the power lines: narrowband, broadband or future-broadband
    #[arg(long, value_enum, value_name = "CLASS", default_value_t)]
    pub(crate) power_line: PowerLine,
    /// Rate of the line from each feeder to the centre
    #[arg(long, value_name = "RATE", default_value = "10 Mbit/s")]
    pub(crate) rate: BitRate,
    /// Delay of this line
    #[arg(long, value_name = "TIME", default_value = "5 ms")]
    pub(crate) delay: Duration,
    /// Size of a report of a meter
    #[arg(long, value_name = "SIZE", default_value = "300 B")]
    pub(crate) size: Bytes,
    /// Time between two reports of a meter
    #[arg(long, value_name = "TIME", default_value = "15 min")]
    pub(crate) every: Duration,
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
}

/// Class of power lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum PowerLine {
    /// 130 kbit/s
    #[default]
    Narrowband,
    /// 3 Mbit/s
    Broadband,
    /// 10 Mbit/s
    FutureBroadband,
}

/// Arguments of `import topology`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct TopologyArgs {
    /// GraphML, or node-link JSON of NetworkX
    #[arg(value_name = "FILE")]
    pub(crate) graph: PathBuf,
    /// Rate of links without one
    #[arg(long, value_name = "RATE", default_value = "10 Mbit/s")]
    pub(crate) rate: BitRate,
    /// Delay of links without delay and coordinates
    #[arg(long, value_name = "TIME", default_value = "5 ms")]
    pub(crate) delay: Duration,
    /// Unit of rates without one, such as 'Mbit/s'
    #[arg(long, value_name = "UNIT")]
    pub(crate) rate_unit: Option<String>,
    /// Unit of delays without one, such as 'ms'
    #[arg(long, value_name = "UNIT")]
    pub(crate) delay_unit: Option<String>,
    /// The node to which all others send [default: the one with the most links]
    #[arg(long, value_name = "NODE")]
    pub(crate) centre: Option<String>,
    /// Size of a message
    #[arg(long, value_name = "SIZE", default_value = "200 B")]
    pub(crate) size: Bytes,
    /// Time between two messages of a node
    #[arg(long, value_name = "TIME", default_value = "1 s")]
    pub(crate) every: Duration,
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
}

/// Arguments of `import natig`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct NatigArgs {
    /// Topology of NATIG: topology.json
    #[arg(value_name = "FILE")]
    pub(crate) topology: PathBuf,
    /// Substations, their elements and the polls: grid.json [default: a substation for each node
    /// but the last, with 100 elements]
    #[arg(long, value_name = "FILE")]
    pub(crate) grid: Option<PathBuf>,
    /// Time between two polls of a substation [default: that of grid.json, or 15 ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) poll: Option<Duration>,
    /// Duration of the run [default: that of grid.json, or 60 s]
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Duration>,
    /// Size of a poll
    #[arg(long, value_name = "SIZE", default_value = "20 B")]
    pub(crate) request: Bytes,
    /// Size of a response [default: 20 B, and 5 B for each element of the substation]
    #[arg(long, value_name = "SIZE")]
    pub(crate) response: Option<Bytes>,
    /// Poll over each path with at most one further gateway, and not over the shortest only
    #[arg(long)]
    pub(crate) all_paths: bool,
    /// Leave the messages to another program, which steps the simulation
    #[arg(long)]
    pub(crate) external: bool,
    #[command(flatten)]
    pub(crate) scenario: ScenarioFile,
}
