//! Arguments of the program.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gridhaul_measure::method::HEADER_BYTES;
use gridhaul_scenario::units::Duration;

/// Measure power-grid protocols message by message
#[derive(Debug, Parser)]
#[command(name = "gridhaul measure", bin_name = "gridhaul measure", version)]
#[command(after_help = "Exit codes:
  0  success
  1  the run ended early, or a fault occurred; the messages until then are counted
  2  invalid input or usage: the message names the remedy
130  interrupted (Ctrl-C, SIGTERM); the messages until then are counted")]
pub(crate) struct Cli {
    /// The measurement.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The measurements.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Print the bytes of a message by layer: Table 5 of RESERVE D4.6 beside formulas, and other protocols
    Efficiency(EfficiencyArgs),
    /// Measure the latency of messages at a constant rate
    Latency(RunArgs),
    /// Interrupt all links of a scenario for a time, and measure the recovery
    Outage(OutageArgs),
    /// Count lost, duplicated, reordered and corrupt messages at a constant rate
    Reliability(RunArgs),
}

impl Command {
    /// Whether the command makes network namespaces.
    pub(crate) const fn needs_namespaces(&self) -> bool {
        match self {
            Self::Latency(args) | Self::Reliability(args) => args.scenario.is_some(),
            Self::Efficiency(_) => false,
            Self::Outage(_) => true,
        }
    }
}

/// Arguments of `efficiency`.
#[derive(Debug, Args)]
pub(crate) struct EfficiencyArgs {
    /// Bytes of the payload for the comparison of protocols
    #[arg(long, default_value_t = 296, value_parser = clap::value_parser!(u64).range(1..=1_400))]
    pub(crate) payload: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProtocolName {
    /// Messages between two threads of the program: the floor
    Null,
    /// One datagram for each message
    Udp,
    /// MQTT 3.1.1 through a broker
    Mqtt,
}

/// Whether Nagle's algorithm is off, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Nodelay {
    /// Off at clients and broker
    Both,
    /// Off at the clients, on at the broker
    Clients,
    /// Off at the broker, on at the clients
    Broker,
    /// On at clients and broker
    None,
}

/// Arguments of a run at a constant rate.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Protocol under test
    #[arg(value_enum)]
    pub(crate) protocol: ProtocolName,

    /// Scenario file whose network is emulated; without it the messages stay on this machine
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,

    /// Flow of the scenario between whose ends the messages pass; the first one by default. A broker is at its `to` end,
    /// publisher and subscriber are at its `from` end
    #[arg(long, value_name = "NAME", requires = "scenario")]
    pub(crate) flow: Option<String>,

    /// Messages per second
    #[arg(long, default_value_t = 100.0, value_parser = rate)]
    pub(crate) rate: f64,

    /// Messages after the warm-up, which is one second or 100 messages, whichever is longer
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) messages: u64,

    /// Bytes of a message, with a header of 16 B
    #[arg(long, default_value_t = 132, value_parser = message_bytes)]
    pub(crate) bytes: usize,

    /// Time after which a message is lost, such as "500 ms"
    #[arg(long, default_value = "5 s", value_parser = duration)]
    pub(crate) horizon: Duration,

    /// Processor on which the generator runs
    #[arg(long, value_name = "NUMBER")]
    pub(crate) processor: Option<usize>,

    /// Settings of MQTT.
    #[command(flatten)]
    pub(crate) mqtt: MqttArgs,

    /// Folder for the log of the messages (Parquet), the summary (JSON), the chart and the log of the broker
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// Do not measure the floor, the latency of the null protocol
    #[arg(long)]
    pub(crate) no_floor: bool,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Arguments of an outage.
#[derive(Debug, Args)]
pub(crate) struct OutageArgs {
    /// The run.
    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// Length of the outage
    #[arg(long, default_value = "10 s", value_parser = duration)]
    pub(crate) length: Duration,

    /// Start of the outage, after the start of the network
    #[arg(long, default_value = "5 s", value_parser = duration)]
    pub(crate) start: Duration,
}

/// Settings of MQTT.
#[derive(Debug, Args)]
#[command(next_help_heading = "MQTT")]
pub(crate) struct MqttArgs {
    /// Address of a running broker, which takes the place of mosquitto
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) broker: Option<SocketAddr>,

    /// Where TCP_NODELAY is set, which turns Nagle's algorithm off
    #[arg(long, value_enum, default_value = "both")]
    pub(crate) nodelay: Nodelay,

    /// Quality of service: 0 (at most once) or 1 (at least once)
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=1))]
    pub(crate) qos: u8,

    /// Number of connections: 2, or 1 for publisher and subscriber together
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub(crate) connections: u8,

    /// Interval of keep-alive packets
    #[arg(long, default_value = "60 s", value_parser = duration)]
    pub(crate) keep_alive: Duration,

    /// Time between a failed connection and the next attempt
    #[arg(long, default_value = "100 ms", value_parser = duration)]
    pub(crate) reconnect_after: Duration,

    /// Queue messages without a connection, and do not refuse them
    #[arg(long)]
    pub(crate) queue: bool,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (0.01..=1e6).contains(rate));
    rate.ok_or_else(|| "expected messages per second between 0.01 and 1000000".into())
}

fn message_bytes(text: &str) -> Result<usize, String> {
    let bytes = text.parse().ok().filter(|bytes| (HEADER_BYTES..=65_507).contains(bytes));
    bytes.ok_or_else(|| {
        format!(
            "expected bytes between {HEADER_BYTES}, the header, and 65507, the largest datagram"
        )
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    text.parse().map_err(|error: gridhaul_scenario::units::UnitError| error.to_string())
}
