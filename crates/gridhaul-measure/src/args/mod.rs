//! Arguments of the program.

mod agent;
mod connection;
mod effect;
mod exit_codes;
mod fill;
mod frames;
mod keys;
mod matrix;
mod outage;
mod output;
mod place;
mod rate;
mod reserve;
mod value_parsers;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use gridhaul_cli::PackageFilesArgs;
use gridhaul_measure::measurement::limits::{MESSAGES_MAX, REPETITIONS_MAX};
use gridhaul_scenario::units::Duration;

use exit_codes::EXIT_CODES;
use value_parsers::{
    duration, message_bytes, packet_interval, positive_duration, ppm, processor, rate,
    signed_nanos, values,
};

pub(crate) use agent::{AgentArgs, RemoteArgs};
pub(crate) use connection::{ConnectionArgs, MqttBroker};
pub(crate) use effect::{given, in_terms_of_options};
pub(crate) use fill::Options;
pub(crate) use frames::FrameArgs;
pub(crate) use keys::keys;
pub(crate) use matrix::MatrixArgs;
pub(crate) use outage::{FailingPart, OutageArgs};
pub(crate) use output::OutputArgs;
pub(crate) use place::{CrossTrafficArgs, PlaceArgs, SubscriberEnd};
pub(crate) use rate::RateArgs;
pub(crate) use reserve::ReserveArgs;

/// Measure power-grid protocols message by message
#[derive(Debug, Parser)]
#[command(name = "gridhaul measure", bin_name = "gridhaul measure", version)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// With '--version': commit and kernel, for a report of a defect
    #[arg(long)]
    pub(crate) verbose: bool,
    /// The measurement.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The measurements.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    /// Receive the messages of runs on two machines, and send them back
    Agent(AgentArgs),
    /// Print the effect of bit errors above and below checksums: rejected, without effect, or
    /// silently wrong
    Corruption(CorruptionArgs),
    /// Print the bytes of a message by layer: Table 5 of RESERVE D4.6, its formulas, and other
    /// protocols
    Efficiency(EfficiencyArgs),
    /// Measure the latency of messages at a constant rate
    Latency(PathArgs),
    /// Measure the latency of all combinations of protocols, networks and settings
    Matrix(MatrixArgs),
    /// Measure the recovery from an outage: of all links of a scenario, of the broker, or of a
    /// network that the user interrupts
    Outage(OutageArgs),
    /// Search the highest rate that a protocol sustains, and verify it
    Rate(RateArgs),
    /// Count lost, duplicated, reordered and corrupt messages at a constant rate
    Reliability(PathArgs),
    /// Measure the tables and figures of RESERVE D4.6 on emulated systems, and check its
    /// statements; an hour and a half. With --out, an interrupted command continues
    Reserve(ReserveArgs),
    /// Run the measurement of a file
    Run(RunFileArgs),
    /// Estimate offset, drift and a step of a clock that are injected, over a network
    Sync(SyncArgs),
    /// Write manual pages and completions for a package
    #[command(hide = true)]
    PackageFiles(PackageFilesArgs),
}

impl Command {
    /// Whether the command makes network namespaces.
    pub(crate) const fn needs_namespaces(&self) -> bool {
        match self {
            Self::Latency(args) | Self::Reliability(args) => args.run.common.place.is_emulated(),
            Self::Outage(args) => args.run.common.place.is_emulated(),
            Self::Rate(args) => args.common.place.is_emulated(),
            Self::Sync(args) => args.place.is_emulated(),
            Self::Agent(_) | Self::Corruption(_) | Self::Efficiency(_) => false,
            Self::PackageFiles(_) => false,
            // The network of `run` is in its file.
            Self::Run(_) => false,
            Self::Matrix(_) | Self::Reserve(_) => true,
        }
    }
}

/// Arguments of `run`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RunFileArgs {
    /// TOML file of the measurement, as --save of the other commands writes it; `-` for standard
    /// input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// Where the result goes.
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// Arguments of `efficiency`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
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
    /// MQTT 5.0 through a broker
    Mqtt5,
    /// AMQP 0-9-1 through a broker
    #[value(name = "amqp-0-9-1")]
    Amqp091,
    /// AMQP 1.0 through a broker
    #[value(name = "amqp-1.0")]
    Amqp10,
    /// XMPP through a server, with a payload in XML Encoding Rules (XER)
    Xmpp,
    /// Modbus/TCP: a client writes registers of a server
    ModbusTcp,
    /// IEC 60870-5-104: spontaneous measured values with time tag
    #[value(name = "iec-104")]
    Iec104,
    /// DNP3: events of an outstation, unsolicited or polled
    Dnp3,
    /// Synchrophasors of IEEE C37.118.2 over TCP
    #[value(name = "c37.118")]
    C37118,
    /// ZeroMQ (ZMTP 3.0): PUSH and PULL
    Zeromq,
    /// ZeroMQ (ZMTP 3.0): PUB and SUB
    ZeromqPubSub,
    /// Scalability Protocols of nanomsg and nng: PUSH and PULL
    Nanomsg,
    /// Sampled Values (IEC 61850-9-2) over Ethernet
    Sv,
    /// GOOSE (IEC 61850-8-1) over Ethernet: each message is an event
    Goose,
}

impl ProtocolName {
    /// Whether the protocol runs over TCP.
    pub(crate) const fn is_stream(self) -> bool {
        !matches!(self, Self::Null | Self::Udp | Self::Sv | Self::Goose)
    }

    /// Name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// A protocol, its network and its messages.
#[derive(Debug, Clone, Args)]
pub(crate) struct ProtocolArgs {
    /// Protocol under test
    #[arg(value_enum)]
    pub(crate) protocol: ProtocolName,

    /// The network.
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// Bytes of a message, with a header of 16 B
    #[arg(long, default_value_t = 132, value_parser = message_bytes)]
    pub(crate) bytes: usize,

    /// Time after which a message is lost, such as "500 ms"
    #[arg(long, default_value = "5 s", value_parser = positive_duration)]
    pub(crate) horizon: Duration,

    /// Processor on which the generator runs, from 0; without it, any
    #[arg(long, value_name = "CPU", value_parser = processor)]
    pub(crate) pin: Option<usize>,

    /// Print the summary as JSON
    #[arg(long)]
    pub(crate) json: bool,

    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Write the measurement that the options mean into a TOML file for `gridhaul measure run`, and
    /// do not run it. A password in the URL of a broker is a part of it
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Settings of brokers and connections.
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Settings of Sampled Values and GOOSE.
    #[command(flatten)]
    pub(crate) frames: FrameArgs,
}

/// Arguments of a run at a constant rate.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Messages per second
    #[arg(long, default_value_t = 100.0, value_parser = rate)]
    pub(crate) rate: f64,

    /// Messages after the warm-up, which is one second or 100 messages, whichever is longer
    #[arg(
        long,
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(1..=MESSAGES_MAX)
    )]
    pub(crate) messages: u64,

    /// Messages of the warm-up; without it, those of one second or 100, whichever are more
    #[arg(
        long,
        value_name = "MESSAGES",
        value_parser = clap::value_parser!(u64).range(0..=MESSAGES_MAX)
    )]
    pub(crate) warm_up: Option<u64>,

    /// Folder for the log of the messages (Parquet), the summary (JSON), the chart and the log of
    /// the broker
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Do not measure the floor, the latency of the null protocol
    #[arg(long)]
    pub(crate) no_floor: bool,

    /// Judge only this application class, such as "TT4"; the exit code is its verdict
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,

    /// Measure the network alone as well, with datagrams of the same size and rate: standards limit
    /// its share
    #[arg(long)]
    pub(crate) network_share: bool,

    /// Capture packets at both ends of the network: the time of each leg and of the broker, and the
    /// place of losses; needs root
    #[arg(long)]
    pub(crate) capture: bool,

    /// Simulate the same messages over the same emulated network after the measurement, and compare
    /// both; includes --capture
    #[arg(long)]
    pub(crate) predict: bool,

    /// Record the time at which the kernel received each message as well: udp, sv and goose
    #[arg(long)]
    pub(crate) kernel_times: bool,

    /// Let the receiver of udp poll its socket instead of sleeping, so that it takes a whole
    /// processor and need not be woken up
    #[arg(long)]
    pub(crate) busy_poll: bool,

    /// Idle states of the processors.
    #[command(flatten)]
    pub(crate) idle_states: IdleStateArgs,

    /// Settings that a run shares with `rate`.
    #[command(flatten)]
    pub(crate) common: ProtocolArgs,

    /// The background load.
    #[command(flatten)]
    pub(crate) cross_traffic: CrossTrafficArgs,
}

/// Idle states of the processors during a measurement.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct IdleStateArgs {
    /// Let processors enter idle states from which they wake up late. Without this option the
    /// program keeps them awake during the run if it may write to /dev/cpu_dma_latency, as root;
    /// the settings of the result state it
    #[arg(long)]
    pub(crate) allow_idle_states: bool,
}

/// Arguments of runs on one machine, which may be repeated, or of a run on two.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PathArgs {
    /// Number of runs, each with connections, a broker and a network of its own; the spread between
    /// them is reported
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=i64::from(REPETITIONS_MAX)),
        conflicts_with = "agent"
    )]
    pub(crate) repetitions: u32,

    /// The run.
    #[command(flatten)]
    pub(crate) run: RunArgs,

    /// The other machine.
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,

    /// Do not send the messages back: there is no round-trip time
    #[arg(long, requires = "agent", help_heading = "Two machines")]
    pub(crate) no_echo: bool,
}

/// Arguments of `corruption`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CorruptionArgs {
    /// Values of a message
    #[arg(long, default_value_t = 10, value_parser = values)]
    pub(crate) values: usize,

    /// Seed of the random errors
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `sync`.
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SyncArgs {
    /// The network.
    #[command(flatten)]
    pub(crate) place: PlaceArgs,

    /// Number of exchanges
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) exchanges: u32,

    /// Time between two exchanges
    #[arg(long, default_value = "20 ms", value_parser = packet_interval)]
    pub(crate) every: Duration,

    /// Offset of the injected clock, such as "3 ms" or "-3 ms"
    #[arg(long, default_value = "3 ms", value_parser = signed_nanos, allow_hyphen_values = true)]
    pub(crate) offset: i64,

    /// Drift of the injected clock in ppm
    #[arg(long, default_value_t = 50.0, value_parser = ppm, allow_hyphen_values = true)]
    pub(crate) drift: f64,

    /// Step of the injected clock; 0 s for none
    #[arg(long, default_value = "0 s", value_parser = signed_nanos, allow_hyphen_values = true)]
    pub(crate) step: i64,

    /// Time of the step after the first exchange
    #[arg(long, default_value = "2 s", value_parser = duration)]
    pub(crate) step_at: Duration,

    /// Idle states of the processors.
    #[command(flatten)]
    pub(crate) idle_states: IdleStateArgs,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
