//! What can be written on the command line. The comments here are the texts of `--help`.

use std::path::PathBuf;

use clap::builder::UnknownArgumentValueParser;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::scenario::{NAME_RULE, Scenario};
use gridhaul_scenario::units::{Duration, Probability};

use crate::ask::{Setting, Vary};
use crate::failure::EXIT_CODES;

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

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RunArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// What `emu` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum EmuCommand {
    /// Make the network and let it stand until Ctrl-C
    ///
    /// Each node becomes a network namespace that `ip netns exec` knows, each link two devices with
    /// an emulated link between them. Programs reach each other at the addresses that are printed, as
    /// far as links lead there; whatever they send passes the links of the scenario. With a sweep, its
    /// first point. Nothing is recorded.
    Up(EmuUpArgs),
    /// Remove the namespaces that killed runs have left
    Clean,
}

/// Arguments of `emu up`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES, args = changes_of_runs())]
pub(crate) struct EmuUpArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    /// What the names of the namespaces begin with
    #[arg(long, value_name = "NAME", default_value = "gh", value_parser = prefix)]
    pub(crate) prefix: String,
    /// Seed of all chance on the links
    #[arg(long, value_name = "N", help_heading = "Changes to the scenario")]
    pub(crate) seed: Option<u64>,
    /// Set a key, as in 'link.uplink.forward.rate=3 Mbit/s'; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Changes to the scenario")]
    pub(crate) set: Vec<Setting>,
}

/// Changes that `run` knows and a network that stands has no use for: each is refused with what does
/// it there.
fn changes_of_runs() -> [Arg; 3] {
    let instead = [
        (
            "pcap",
            "LINK",
            "capture in a namespace, such as 'ip netns exec gh-a tcpdump -i any -w a.pcap', or use \
             'run --on emu --pcap'",
        ),
        (
            "series",
            "INTERVAL",
            "look at connections in a namespace, such as 'ip netns exec gh-a ss -ti', or use \
             'run --on emu --series'",
        ),
        ("repeat", "N", "the network stands once; use 'run --on emu --repeat'"),
    ];
    instead.map(|(name, value, text)| {
        let refusal = UnknownArgumentValueParser::suggest(text);
        Arg::new(name).long(name).value_name(value).value_parser(refusal).hide(true)
    })
}

/// Arguments of `sweep`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct SweepArgs {
    /// Scenario file (TOML); '-' is standard input
    pub(crate) file: PathBuf,
    /// Values of a key: a list or a range; several --vary are combined in every way
    ///
    /// 'link.uplink.forward.rate=1 Mbit/s,2 Mbit/s' takes these values;
    /// 'link.uplink.forward.delay=lin:10 ms:100 ms:10' takes ten in equal steps, and 'log:' takes
    /// them in equal ratios. What the file sweeps is swept as well, unless it is the same key: then
    /// these values replace those of the file.
    #[arg(long, value_name = "KEY=VALUES", required = true)]
    pub(crate) vary: Vec<Vary>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// What is changed in the scenario before it runs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Changes to the scenario")]
pub(crate) struct Changes {
    /// Seed of all chance; the same seed gives the same answer
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Number of runs; from two on, means carry a 95 % interval
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<u32>,
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
    pub(crate) beside: usize,
    /// Start even if the run needs more memory than is free, or takes longer than 24 hours
    ///
    /// Both are estimated before the start, from the numbers of connections, links, replications
    /// and points and from the packets to expect.
    #[arg(long)]
    pub(crate) ignore_estimate: bool,
}

impl Engine {
    /// The simulator alone.
    pub(crate) fn sim(threads: usize, ignore_estimate: bool) -> Self {
        Self { on: vec![On::Sim], threads, beside: 1, ignore_estimate }
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

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CompareArgs {
    /// Scenario files, results folders or answer.json files; the first is what others are held to
    ///
    /// One scenario is enough with several backends: 'compare line.toml --on sim,model'.
    #[arg(num_args = 1.., required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// End with exit code 1 when any metric differs by more than chance
    ///
    /// Deterministic answers have no interval: of these, a difference above 1 % counts.
    #[arg(long)]
    pub(crate) must_agree: bool,
    /// Number of runs of each scenario; from two on, there is a verdict
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<u32>,
    /// Write report.html and comparison.json into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the folder even if it holds files that gridhaul did not write
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no hints; warnings and errors remain
    #[arg(long, short)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) printed: Printed,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// Arguments of `plan`.
///
/// The scenario's `[plan]` says what may be chosen, what it costs and what must hold. Equations judge
/// the candidates in the order of their cost; the cheapest that keeps every limit is then simulated,
/// and the next ones are tried where it does not survive.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PlanArgs {
    /// Scenario file (TOML) with a table [plan]
    pub(crate) file: PathBuf,
    /// What is simulated
    #[arg(long, value_enum, value_name = "DEPTH", default_value_t = Verify::Winner)]
    pub(crate) verify: Verify,
    /// Most candidates that are simulated
    #[arg(long, value_name = "N", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) tries: u16,
    #[command(flatten)]
    pub(crate) changes: Changes,
    #[command(flatten)]
    pub(crate) output: Output,
    /// Threads for the simulations; 0: one for each core. The result does not depend on it
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Engine")]
    pub(crate) threads: usize,
    /// Simulate even if a run needs more memory than is free, or takes longer than 24 hours
    #[arg(long, help_heading = "Engine")]
    pub(crate) ignore_estimate: bool,
}

/// How much of a plan is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Verify {
    /// Nothing: trust the equations
    None,
    /// The cheapest choice by equations; where the simulation differs, its neighbours, until the cheapest
    /// choice that keeps every limit by simulation is found
    Winner,
    /// The same, and every choice of the shortlist (runners-up and neighbours), over at least three seeds each
    Full,
}

/// Arguments of `paper`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct PaperArgs {
    /// Name of the paper; without it, the papers are listed
    pub(crate) name: Option<String>,
    /// Fewer repeats: under a minute, with wider intervals
    #[arg(long)]
    pub(crate) quick: bool,
    #[command(flatten)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) engine: Engine,
}

/// What the equations are made of.
#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Print a Markov chain: states, rules with their reasons, and the share of time in each state
    Chain(ChainArgs),
}

/// What `cc` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum CcCommand {
    /// Load algorithms into the kernel; they stay until `cc unload` or the next start of the machine
    Load(CcLoadArgs),
    /// Take algorithms out again; connections that have them keep them until they close
    Unload(CcUnloadArgs),
    /// List the algorithms: which are loaded, by whom, and how many connections have them
    List,
    /// Show what the loaded algorithms have counted
    Status,
}

/// Arguments of `cc load`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcLoadArgs {
    /// Which; without any, all
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
    /// Stay, and take them out when this command ends, however it ends
    #[arg(long)]
    pub(crate) hold: bool,
    /// Vegas: the window grows while fewer segments than this wait in queues [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_alpha: Option<u32>,
    /// Vegas: the window shrinks while more segments than this wait [default: 3]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_beta: Option<u32>,
    /// Vegas: slow start ends when more segments than this wait [default: 1]
    #[arg(long, allow_negative_numbers = true, value_name = "SEGMENTS")]
    pub(crate) vegas_gamma: Option<u32>,
    /// MEDX: how much of the average delay stays when another arrives [default: 0.5]
    #[arg(long, allow_negative_numbers = true, value_name = "SHARE")]
    pub(crate) medx_alpha: Option<f64>,
    /// MEDX: a delay beyond this many times the average may mean congestion [default: 1.2]
    #[arg(long, allow_negative_numbers = true, value_name = "FACTOR")]
    pub(crate) medx_beta: Option<f64>,
    /// MEDX: so many delays must keep rising as well (2 to 8) [default: 4]
    #[arg(long, allow_negative_numbers = true, value_name = "DELAYS")]
    pub(crate) medx_buffer: Option<u32>,
    /// MEDX: control group (version 2) whose connections may carry its TCP option; by default all may
    #[arg(long, value_name = "FOLDER")]
    pub(crate) cgroup: Option<PathBuf>,
}

/// Arguments of `cc unload`.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct CcUnloadArgs {
    /// Which; without any, all
    #[arg(value_enum)]
    pub(crate) algorithms: Vec<CcAlgorithm>,
}

/// An algorithm for the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CcAlgorithm {
    /// TCP Vegas: `gh_vegas`
    #[value(alias = "gh_vegas")]
    Vegas,
    /// TCP-MEDX: `gh_medx`
    #[value(alias = "gh_medx")]
    Medx,
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
    pub(crate) variant: ChainVariant,
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

/// What can be the beginning of names in `/run/netns`: by the rule for nodes, but `ip` takes what begins
/// with `-` for an option. How long it may be depends on the nodes.
fn prefix(text: &str) -> Result<String, String> {
    if !Scenario::is_name(text) {
        return Err(NAME_RULE.to_owned());
    }
    if text.starts_with('-') {
        return Err(format!(
            "{NAME_RULE}, but no `-` at the beginning: `ip` reads an option there"
        ));
    }
    Ok(text.to_owned())
}
