//! Options that several commands share.

use std::path::PathBuf;

use crate::{BackendName, Setting};
use clap::Args;
use gridhaul_cli::value::{replications, whole_number};
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::units::Duration;

/// Changes to the scenario before it runs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Changes to the scenario")]
pub(crate) struct ChangeOptions {
    /// Random seed; the same seed gives the same results
    #[arg(long, value_name = "N", value_parser = whole_number::<u64>, allow_negative_numbers =
        true)]
    pub(crate) seed: Option<u64>,
    /// Number of replications; with two or more, means are reported with a 95 % confidence interval
    #[arg(long, value_name = "N", value_parser = replications, allow_negative_numbers = true)]
    pub(crate) replications: Option<u32>,
    /// Set a key, such as 'link.uplink.forward.rate=3 Mbit/s'; repeatable
    ///
    /// If the file sweeps the key, this value replaces that sweep.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Setting>,
}

/// Recordings of a run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Changes to the scenario")]
pub(crate) struct RecordOptions {
    /// Record time series (windows, queues, ...) with this sampling interval, such as '100 ms'
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) series: Option<Duration>,
    /// Capture the packets of a link in a pcapng file for Wireshark; repeatable
    #[arg(long, value_name = "LINK")]
    pub(crate) pcap: Vec<String>,
    /// Log changes of state and window of a flow as JSON lines; repeatable
    #[arg(long, value_name = "FLOW")]
    pub(crate) events: Vec<String>,
    /// Number of the replication whose series, packets and events are recorded, from 0
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers =
        true)]
    pub(crate) recorded_replication: Option<u32>,
    /// Write the metrics of each replication to answer.json, and not only their means
    #[arg(long)]
    pub(crate) each_replication: bool,
    /// Write the metrics of each member of a flow to answer.json; repeatable
    #[arg(long, value_name = "FLOW")]
    pub(crate) members: Vec<String>,
}

impl ChangeOptions {
    /// The changes as the library takes them.
    pub(crate) fn to_changes(&self) -> crate::Changes {
        crate::Changes {
            seed: self.seed,
            replications: self.replications,
            set: self.set.clone(),
            ..crate::Changes::default()
        }
    }
}

impl RecordOptions {
    /// The changes with these recordings.
    pub(crate) fn added_to(&self, changes: crate::Changes) -> crate::Changes {
        crate::Changes {
            series: self.series,
            pcap: self.pcap.clone(),
            events: self.events.clone(),
            recorded_replication: self.recorded_replication,
            each_replication: self.each_replication,
            members: self.members.clone(),
            ..changes
        }
    }
}

/// Results folder and standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Results folder [default: in 'results', named after the scenario file or paper]
    ///
    /// 'run' writes to results/<name of the scenario file>; 'sweep' adds '-sweep' to the name, and
    /// 'plan' '-plan'. 'paper' writes to results/paper-<name>. A file scenario.toml, which every
    /// results folder contains, has the name of its folder.
    ///
    /// The folder is created only after all files have been written. An earlier results folder of
    /// gridhaul is replaced if it has the same kind of results.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write each chart of the report as an SVG file as well
    #[arg(long)]
    pub(crate) svg: bool,
    #[command(flatten)]
    pub(crate) common: CommonOutput,
}

/// Output options of every command that writes a results folder.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct CommonOutput {
    /// Replace the folder even if it contains files that gridhaul did not write, or results of
    /// another kind
    ///
    /// Another kind: results of another command or of a scenario with another title; a sweep in
    /// place of a run without one, or the reverse; captures, event logs, series, tables of a sweep
    /// and answers of further backends, if this run has none.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Suppress progress and hints; print warnings and errors only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Metrics and format on standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct PrintOptions {
    /// Print only these metrics (for 'compare': compare only these), such as goodput_bit_per_s
    ///
    /// The results folders of 'run' and 'sweep' contain all metrics.
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    pub(crate) only: Vec<Metric>,
    /// Print CSV instead of a table, or write it to a file: '--csv=FILE'
    ///
    /// One line per point, flow or link direction, and backend. Each metric has three columns: its
    /// mean, the half width of its 95 % confidence interval (`_ci95`) and its number of
    /// replications (`_n`).
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,
}

/// Backends, and the resources that they may use.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Execution")]
pub(crate) struct EngineOptions {
    /// Backends to run; the results of several ('sim,model') are compared
    ///
    /// The first backend is the reference of the comparison. Each backend has its own answer file
    /// in the results folder.
    #[arg(long, value_name = "BACKEND", value_enum, value_delimiter = ',', default_value = "sim")]
    pub(crate) on: Vec<BackendName>,
    /// Threads for replications and sweep points; 0: one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole_number::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) threads: usize,
    /// Backend 'emu': concurrent runs; use more than one only if a run needs little CPU time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole_number::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub(crate) concurrent_runs: usize,
    /// Start even if the run is estimated to exceed the free memory or 24 hours
    ///
    /// Memory and time are estimated before the start from the numbers of connections, links,
    /// replications and sweep points and from the expected number of packets.
    #[arg(long)]
    pub(crate) ignore_estimate: bool,
}

impl EngineOptions {
    /// The options as the library takes them.
    pub(crate) fn to_engine(&self) -> crate::Engine {
        crate::Engine {
            backends: self.on.clone(),
            threads: self.threads,
            concurrent_runs: self.concurrent_runs,
            emulation_repetitions: 0,
            ignore_estimate: self.ignore_estimate,
        }
    }
}
