//! `cargo xtask bench sim`: gridhaul's simulator, ns-2 and ns-3 on the same scenarios in one run.
//!
//! Each figure is a difference of a long and a short run of the same program, so that start-up
//! cancels, and CPU time instead of time on a clock; the best of several rounds, in which the
//! programs take turns. Scenarios and peer programs are in `bench/sim`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Figure, text, timed};
use crate::shell::{self, cargo, installed, output, program, root, target};

const ROUNDS: usize = 3;

/// Bars, as times that gridhaul is as fast as a peer.
const NS2_BAR: f64 = 20.0;
const NS3_BAR: f64 = 60.0;

/// Instructions for a data packet and its acknowledgement: no more than this.
const INSTRUCTIONS_BAR: f64 = 600.0;

/// A task that every program is given.
struct Workload {
    name: &'static str,
    about: &'static str,
    /// The scenario file for gridhaul, in `bench/sim`.
    scenario: &'static str,
    /// The same numbers for the peers.
    numbers: &'static [(&'static str, &'static str)],
    programs: &'static [Program],
}

/// A program with the simulated seconds of its short and its long run.
struct Program {
    kind: Kind,
    name: &'static str,
    short: u32,
    long: u32,
    /// Arguments besides the numbers of the workload.
    more: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gridhaul,
    Ns2,
    Ns3,
}

const WORKLOADS: &[Workload] = &[
    Workload {
        name: "bulk",
        about: "one bulk flow, 3 Mbit/s, 100 ms round trip, 0.3 % loss, 100-packet queue",
        scenario: "bulk.toml",
        numbers: &[
            ("rate_mbit", "3"),
            ("rtt_ms", "100"),
            ("queue", "100"),
            ("loss", "0.003"),
            ("flows", "1"),
        ],
        programs: &[
            Program::new(Kind::Gridhaul, "gridhaul", 2_000, 32_000),
            Program::new(Kind::Ns2, "ns-2, lean headers", 500, 8_500),
            Program::new(Kind::Ns2, "ns-2, as shipped", 500, 8_500).with(&[("headers", "all")]),
            Program::new(Kind::Ns3, "ns-3, SACK", 50, 850).with(&[("sack", "1")]),
            Program::new(Kind::Ns3, "ns-3, no SACK", 50, 850),
        ],
    },
    Workload {
        name: "flows",
        about: "1,000 bulk flows, 100 Mbit/s, 50 ms round trip, 1,000-packet queue",
        scenario: "flows.toml",
        numbers: &[
            ("rate_mbit", "100"),
            ("rtt_ms", "50"),
            ("queue", "1000"),
            ("flows", "1000"),
            ("spread", "1"),
        ],
        programs: &[
            Program::new(Kind::Gridhaul, "gridhaul", 10, 310),
            Program::new(Kind::Ns2, "ns-2, lean headers", 10, 310),
            Program::new(Kind::Ns2, "ns-2, as shipped", 10, 310).with(&[("headers", "all")]),
            Program::new(Kind::Ns3, "ns-3", 5, 10),
            Program::new(Kind::Ns3, "ns-3, 50 hosts", 5, 10).with(&[("hosts", "50")]),
        ],
    },
];

/// What a run did and what it took.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// Segments with data that were sent, repeats included.
    packets: f64,
    /// Payload that arrived in order, in bytes.
    bytes: f64,
    cpu_s: f64,
    memory_kb: f64,
}

/// What a program achieves between its short and its long run.
#[derive(Debug, Clone, Copy)]
struct Pace {
    kind: Kind,
    packets_per_s: f64,
    goodput_mbit: f64,
    memory_mb: f64,
    simulated_per_s: f64,
}

/// Measures and prints tables; the figures are the caller's to print.
pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    install()?;
    shell::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
    fs::create_dir_all(folder())?;
    compile_ns3()?;
    let mut figures = Vec::new();
    for workload in WORKLOADS {
        figures.extend(race(workload)?);
    }
    figures.push(instructions(&WORKLOADS[0])?);
    Ok(figures)
}

/// Lets the programs of a workload take turns, prints a table and compares.
fn race(workload: &Workload) -> anyhow::Result<Vec<Figure>> {
    println!("\n{}: {} ({ROUNDS} rounds)", workload.name, workload.about);
    let mut best = vec![(Run::default(), Run::default()); workload.programs.len()];
    for _ in 0..ROUNDS {
        for (program, (short, long)) in workload.programs.iter().zip(&mut best) {
            keep_faster(short, measure(workload, program, program.short)?);
            keep_faster(long, measure(workload, program, program.long)?);
        }
    }
    println!(
        "  {:<20}{:>14}{:>14}{:>16}{:>12}{:>18}",
        "", "simulated s", "packets/CPU s", "goodput Mbit/s", "peak MB", "sim. s/CPU s"
    );
    let mut paces = Vec::new();
    for (program, (short, long)) in workload.programs.iter().zip(&best) {
        let pace = pace(program, short, long)?;
        println!(
            "  {:<20}{:>14}{:>14.0}{:>16.4}{:>12.1}{:>18.1}",
            program.name,
            format!("{}..{}", program.short, program.long),
            pace.packets_per_s,
            pace.goodput_mbit,
            pace.memory_mb,
            pace.simulated_per_s
        );
        paces.push(pace);
    }
    let own = paces[0];
    for (program, pace) in workload.programs.iter().zip(&paces).skip(1) {
        println!(
            "  against {}: {:.2} times the packets a CPU second, goodput {:+.1} %",
            program.name,
            own.packets_per_s / pace.packets_per_s,
            (own.goodput_mbit / pace.goodput_mbit - 1.0) * 100.0
        );
    }
    let figures = [("ns2", Kind::Ns2, NS2_BAR), ("ns3", Kind::Ns3, NS3_BAR)];
    let figures = figures.into_iter().map(|(peer, kind, bar)| {
        // Each peer is taken at its fastest.
        let rates = paces.iter().filter(|pace| pace.kind == kind).map(|pace| pace.packets_per_s);
        let ratio = own.packets_per_s / rates.fold(f64::MIN_POSITIVE, f64::max);
        Figure {
            line: format!("sim-{}-vs-{peer}: {ratio:.1}x (bar {bar}x)", workload.name),
            reached: ratio >= bar,
        }
    });
    Ok(figures.collect())
}

fn keep_faster(best: &mut Run, run: Run) {
    if best.cpu_s == 0.0 || run.cpu_s < best.cpu_s {
        *best = run;
    }
}

fn pace(program: &Program, short: &Run, long: &Run) -> anyhow::Result<Pace> {
    let cpu_s = long.cpu_s - short.cpu_s;
    ensure!(cpu_s > 0.1, "{}: the long run is too short to measure", program.name);
    let simulated = f64::from(program.long - program.short);
    Ok(Pace {
        kind: program.kind,
        packets_per_s: (long.packets - short.packets) / cpu_s,
        goodput_mbit: (long.bytes - short.bytes) * 8e-6 / simulated,
        memory_mb: long.memory_kb / 1024.0,
        simulated_per_s: simulated / cpu_s,
    })
}

fn measure(workload: &Workload, of: &Program, seconds: u32) -> anyhow::Result<Run> {
    let (printed, cpu_s, memory_kb) = timed(&of.command(workload, seconds)?)
        .with_context(|| format!("{} over {seconds} s", of.name))?;
    let (packets, bytes) = if of.kind == Kind::Gridhaul {
        work_of_answer(&printed, seconds)?
    } else {
        let numbers = printed.split_whitespace().map(str::parse::<f64>);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
        (*numbers.first().context("no packets")?, *numbers.get(1).context("no bytes")?)
    };
    Ok(Run { packets, bytes, cpu_s, memory_kb })
}

impl Program {
    const fn new(kind: Kind, name: &'static str, short: u32, long: u32) -> Self {
        Self { kind, name, short, long, more: &[] }
    }

    const fn with(mut self, more: &'static [(&'static str, &'static str)]) -> Self {
        self.more = more;
        self
    }

    /// Program and arguments.
    fn command(&self, workload: &Workload, seconds: u32) -> anyhow::Result<Vec<String>> {
        if self.kind == Kind::Gridhaul {
            return gridhaul(workload, seconds);
        }
        let (start, dashes) = match self.kind {
            Kind::Ns3 => (vec![text(&ns3())?], "--"),
            _ => (vec!["ns".into(), text(&source("ns2.tcl"))?], ""),
        };
        let numbers = workload.numbers.iter().chain(self.more);
        let numbers = numbers.map(|(key, value)| format!("{dashes}{key}={value}"));
        let duration = format!("{dashes}duration={seconds}");
        Ok(start.into_iter().chain(numbers).chain([duration]).collect())
    }
}

fn gridhaul(workload: &Workload, seconds: u32) -> anyhow::Result<Vec<String>> {
    let mut command = vec![text(&target().join("release/gridhaul"))?, "run".into()];
    command.push(text(&source(workload.scenario))?);
    command.extend(["--set".into(), format!("duration={seconds} s")]);
    command.extend(["--json", "--quiet", "--threads", "1", "--out"].map(String::from));
    command.push(text(&folder().join("answer"))?);
    Ok(command)
}

/// Segments sent, and bytes delivered, of gridhaul's answer.
fn work_of_answer(printed: &str, seconds: u32) -> anyhow::Result<(f64, f64)> {
    let answer: Value = serde_json::from_str(printed).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    let mean = |name: &str| {
        let value = metrics[name]["mean"].as_f64();
        value.with_context(|| format!("no {name} in the answer"))
    };
    let bytes = mean("goodput_bit_per_s")? * f64::from(seconds) / 8.0;
    Ok((mean("segments_sent_count")?, bytes))
}

/// Instructions for a data packet and its acknowledgement: two runs under callgrind.
fn instructions(workload: &Workload) -> anyhow::Result<Figure> {
    let (short, long) = (200, 1_200);
    let count = |seconds| -> anyhow::Result<(f64, f64)> {
        let profile = folder().join("callgrind");
        let out = format!("--callgrind-out-file={}", text(&profile)?);
        let mut command = program("valgrind");
        command.args(["--quiet", "--tool=callgrind", &out]).args(gridhaul(workload, seconds)?);
        let (packets, _) = work_of_answer(&output(&mut command)?, seconds)?;
        let profile = fs::read_to_string(&profile).context("callgrind wrote nothing")?;
        let total = profile.lines().find_map(|line| {
            line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: "))
        });
        Ok((total.context("callgrind counted nothing")?.trim().parse()?, packets))
    };
    let (few, some) = count(short)?;
    let (many, all) = count(long)?;
    let each = (many - few) / (all - some);
    println!(
        "\ninstructions: bulk, {short} and {long} s: {:.1} and {:.1} million for {some} and {all} \
         data packets; {:.1} million are start-up",
        few / 1e6,
        many / 1e6,
        (few - each * some) / 1e6
    );
    Ok(Figure {
        line: format!("sim-instructions: {each:.0} (bar {INSTRUCTIONS_BAR})"),
        reached: each <= INSTRUCTIONS_BAR,
    })
}

/// Programs and libraries that are measured or measure.
fn install() -> anyhow::Result<()> {
    let ns3_headers = Path::new("/usr/include/ns3/core-module.h").is_file();
    super::install(&[
        ("ns2", installed("ns")),
        ("libns3-dev", ns3_headers),
        ("g++", installed("g++")),
        ("valgrind", installed("valgrind")),
        ("time", Path::new("/usr/bin/time").is_file()),
    ])
}

/// Compiles the ns-3 program against Debian's libraries, unless that was done already.
fn compile_ns3() -> anyhow::Result<()> {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&ns3()) > changed(&source("ns3.cc")) {
        return Ok(());
    }
    let libraries = ["applications", "internet", "point-to-point", "traffic-control", "network"];
    let libraries = libraries.into_iter().chain(["bridge", "stats", "core"]);
    let mut compiler = program("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(ns3()).arg(source("ns3.cc"));
    shell::run(compiler.args(libraries.map(|library| format!("-lns3-{library}"))))
}

fn source(name: &str) -> PathBuf {
    root().join("bench/sim").join(name)
}

fn folder() -> PathBuf {
    target().join("bench-sim")
}

fn ns3() -> PathBuf {
    folder().join("ns3")
}
