//! Arguments that several commands have.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gridhaul::{BackendName, Setting};
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::units::Duration;

/// What is changed in the scenario before it runs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Changes to the scenario")]
pub(crate) struct Changes {
    /// Seed of all chance; the same seed gives the same answer
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of runs; from two on, means carry a 95 % interval
    #[arg(long, value_name = "N")]
    pub(crate) replications: Option<u32>,
    /// Set a key, as in 'link.uplink.forward.rate=3 Mbit/s'; may be repeated
    ///
    /// Where the file sweeps the key, the value replaces this sweep.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Setting>,
    /// Record series (windows, queues, ...) with this step, such as '100 ms'
    #[arg(long, value_name = "INTERVAL")]
    pub(crate) series: Option<Duration>,
    /// Write the packets of a link to a pcapng file for Wireshark; may be repeated
    #[arg(long, value_name = "LINK")]
    pub(crate) pcap: Vec<String>,
}

impl Changes {
    /// The same for the library.
    pub(crate) fn changes(&self) -> gridhaul::Changes {
        gridhaul::Changes {
            seed: self.seed,
            replications: self.replications,
            set: self.set.clone(),
            series: self.series,
            pcap: self.pcap.clone(),
        }
    }
}

/// Where the results go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Folder for the results [default: results/<name of the scenario file>]
    ///
    /// It appears when everything is written, or not at all. A folder that gridhaul made is
    /// replaced.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the folder even if it holds files that gridhaul did not write
    #[arg(long)]
    pub(crate) force: bool,
    /// Write each chart of the report as an SVG file, too
    #[arg(long)]
    pub(crate) svg: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no hints; warnings and errors remain
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What is printed on standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Printed {
    /// Print or, for 'compare', compare only these columns, such as goodput_bit_per_s
    ///
    /// The results folders of 'run' and 'sweep' keep all columns.
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    pub(crate) only: Vec<Metric>,
    /// Print CSV instead of a table, or write it into a file: '--csv=FILE'
    ///
    /// A line for each point, each flow and direction of a link, and each backend. Each metric has three
    /// columns: its mean, the half width of its 95 % interval (`_ci95`) and its number of runs (`_n`).
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "-")]
    pub(crate) csv: Option<PathBuf>,
}

/// Who answers, and with how many threads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct Engine {
    /// Who answers; with several ('sim,model'), their answers stand side by side
    ///
    /// The first is what the others are held to. Each has its own answer file in the results.
    #[arg(long, value_name = "BACKEND", value_enum, value_delimiter = ',', default_value = "sim")]
    pub(crate) on: Vec<On>,
    /// Threads for repeats and sweep points; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) threads: usize,
    /// 'emu': runs at the same time; more than one only where each takes little of the machine
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) concurrent_runs: usize,
    /// Start even if the run needs more memory than is free, or takes longer than 24 hours
    ///
    /// Both are estimated before the start, from the numbers of connections, links, replications
    /// and points and from the packets to expect.
    #[arg(long)]
    pub(crate) ignore_estimate: bool,
}

impl Engine {
    /// The same for the library.
    pub(crate) fn engine(&self) -> gridhaul::Engine {
        gridhaul::Engine {
            backends: self.on.iter().map(|on| on.name()).collect(),
            threads: self.threads,
            concurrent_runs: self.concurrent_runs,
            ignore_estimate: self.ignore_estimate,
        }
    }
}

/// A backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum On {
    /// Packets on a virtual clock
    #[default]
    Sim,
    /// Equations, in milliseconds; null where there is none
    Model,
    /// Equations, with the rules of paper `sa-tcp` for meters and collectors
    PaperModel,
    /// The kernel's own TCP, over emulated links between network namespaces, in real time
    Emu,
}

impl On {
    const fn name(self) -> BackendName {
        match self {
            Self::Sim => BackendName::Sim,
            Self::Model => BackendName::Model,
            Self::PaperModel => BackendName::PaperModel,
            Self::Emu => BackendName::Emu,
        }
    }
}
