//! `cargo xtask bench sim`: speed of the simulators gridhaul, ns-2, ns-3 and, if it is present,
//! htsim on the same scenarios.
//!
//! Each value is the difference of a long and a short run of the same program, which eliminates
//! start-up, in CPU time, for the fastest of several alternating rounds. Scenarios and programs for
//! the others are in `bench/sim`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Bounds, Measurement, path_text, timed};
use crate::instructions;
use crate::process::{self, installed, program, root, target};

const ROUNDS: usize = 3;

/// Speed of gridhaul relative to ns-2 and ns-3. The limits are below the measured values by more
/// than these differ between machines.
const NS2: Bounds = Bounds::at_least(6.0, 2.0);
const NS3: Bounds = Bounds::at_least(60.0, 60.0);

/// Instructions for a data packet and its acknowledgement.
const INSTRUCTIONS: [(&instructions::Workload, Bounds); 3] = [
    (&instructions::BULK, Bounds::at_most(1_300.0, 2_000.0)),
    (&instructions::FLOWS, Bounds::at_most(1_700.0, 2_400.0)),
    (&instructions::CUBIC, Bounds::at_most(1_500.0, 3_000.0)),
];

/// A scenario that every program simulates.
struct Workload {
    name: &'static str,
    about: &'static str,
    /// The scenario file for gridhaul, in `bench/sim`.
    scenario: &'static str,
    /// The same parameters for ns-2 and ns-3.
    numbers: &'static [(&'static str, &'static str)],
    programs: &'static [Program],
    /// Speed of gridhaul relative to htsim.
    htsim: Bounds,
}

/// A program with the simulated seconds of its short and its long run.
struct Program {
    kind: Kind,
    name: &'static str,
    short: u32,
    long: u32,
    /// Further arguments of the program.
    more: &'static [(&'static str, &'static str)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gridhaul,
    Ns2,
    Ns3,
    Htsim,
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
            Program::new(Kind::Htsim, "htsim", 2_000, 32_000),
        ],
        htsim: Bounds::at_least(2.3, 1.0),
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
            Program::new(Kind::Htsim, "htsim", 10, 310),
        ],
        htsim: Bounds::at_least(1.6, 0.7),
    },
];

/// Results and resources of a run.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    /// Data segments sent, retransmissions included.
    packets: f64,
    /// Payload delivered in order, in bytes.
    bytes: f64,
    cpu_s: f64,
    memory_kb: f64,
}

/// The speed of a program between the ends of its short and its long run.
#[derive(Debug, Clone, Copy)]
struct Speed {
    kind: Kind,
    packets_per_s: f64,
    goodput_mbit: f64,
    memory_mb: f64,
    simulated_per_s: f64,
}

/// Measures and prints tables; with htsim if the folder of its checkout is given. The caller
/// prints the returned values.
pub(super) fn run(gridhaul: &Path, htsim: Option<&Path>) -> anyhow::Result<Vec<Measurement>> {
    install()?;
    fs::create_dir_all(folder())?;
    compile_ns3()?;
    match htsim {
        Some(checkout) => compile_htsim(checkout)?,
        None => println!("htsim: not compared; `--htsim FOLDER` names a checkout of csg-htsim"),
    }
    let mut measurements = Vec::new();
    for workload in WORKLOADS {
        measurements.extend(compare(gridhaul, workload, htsim.is_some())?);
    }
    for (workload, bounds) in INSTRUCTIONS {
        measurements.push(super::instructions(gridhaul, workload, bounds)?);
    }
    Ok(measurements)
}

/// Runs the programs of a workload in alternating rounds, prints a table and compares their speeds.
fn compare(
    gridhaul: &Path,
    workload: &Workload,
    has_htsim: bool,
) -> anyhow::Result<Vec<Measurement>> {
    println!("\n{}: {} ({ROUNDS} rounds)", workload.name, workload.about);
    let is_present = |program: &&Program| has_htsim || program.kind != Kind::Htsim;
    let programs: Vec<&Program> = workload.programs.iter().filter(is_present).collect();
    let mut best = vec![(Run::default(), Run::default()); programs.len()];
    for _ in 0..ROUNDS {
        for (program, (short, long)) in programs.iter().zip(&mut best) {
            keep_faster(short, measure(gridhaul, workload, program, program.short)?);
            keep_faster(long, measure(gridhaul, workload, program, program.long)?);
        }
    }
    println!(
        "  {:<20}{:>14}{:>14}{:>16}{:>12}{:>18}",
        "", "simulated s", "packets/CPU s", "goodput Mbit/s", "peak MB", "sim. s/CPU s"
    );
    let mut speeds = Vec::new();
    for (program, (short, long)) in programs.iter().zip(&best) {
        let speed = speed(program, short, long)?;
        println!(
            "  {:<20}{:>14}{:>14.0}{:>16.4}{:>12.1}{:>18.1}",
            program.name,
            format!("{}..{}", program.short, program.long),
            speed.packets_per_s,
            speed.goodput_mbit,
            speed.memory_mb,
            speed.simulated_per_s
        );
        speeds.push(speed);
    }
    let own = speeds[0];
    for (program, speed) in programs.iter().zip(&speeds).skip(1) {
        println!(
            "  relative to {}: {:.2} times the packets per CPU second, goodput {:+.1} %",
            program.name,
            own.packets_per_s / speed.packets_per_s,
            (own.goodput_mbit / speed.goodput_mbit - 1.0) * 100.0
        );
    }
    let htsim = workload.htsim;
    let peers = [("ns2", Kind::Ns2, NS2), ("ns3", Kind::Ns3, NS3), ("htsim", Kind::Htsim, htsim)];
    let measurements = peers.into_iter().filter_map(|(peer, kind, bounds)| {
        // The fastest configuration of each peer counts.
        let rates = speeds.iter().filter(|speed| speed.kind == kind);
        let fastest = rates.map(|speed| speed.packets_per_s).max_by(f64::total_cmp)?;
        let name = format!("sim-{}-vs-{peer}", workload.name);
        Some(Measurement::new(&name, (own.packets_per_s / fastest, 1, "x"), bounds))
    });
    Ok(measurements.collect())
}

fn keep_faster(best: &mut Run, run: Run) {
    if best.cpu_s == 0.0 || run.cpu_s < best.cpu_s {
        *best = run;
    }
}

fn speed(program: &Program, short: &Run, long: &Run) -> anyhow::Result<Speed> {
    let cpu_s = long.cpu_s - short.cpu_s;
    ensure!(cpu_s > 0.1, "{}: the long run is too short to measure", program.name);
    let simulated = f64::from(program.long - program.short);
    Ok(Speed {
        kind: program.kind,
        packets_per_s: (long.packets - short.packets) / cpu_s,
        goodput_mbit: (long.bytes - short.bytes) * 8e-6 / simulated,
        memory_mb: long.memory_kb / 1024.0,
        simulated_per_s: simulated / cpu_s,
    })
}

fn measure(
    gridhaul: &Path,
    workload: &Workload,
    of: &Program,
    seconds: u32,
) -> anyhow::Result<Run> {
    let command = if of.kind == Kind::Gridhaul {
        workload.command(gridhaul, seconds)?
    } else {
        of.command(workload, seconds)?
    };
    let (printed, cpu_s, memory_kb) =
        timed(&command).with_context(|| format!("{} over {seconds} s", of.name))?;
    let (packets, bytes) = if of.kind == Kind::Gridhaul {
        work_in_answer(&printed, seconds)?
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

    /// Program and arguments of a peer.
    fn command(&self, workload: &Workload, seconds: u32) -> anyhow::Result<Vec<String>> {
        let (start, dashes) = match self.kind {
            Kind::Ns3 => (vec![path_text(&ns3())?], "--"),
            Kind::Htsim => (vec![path_text(&htsim())?], ""),
            _ => (vec!["ns".into(), path_text(&source("ns2.tcl"))?], ""),
        };
        let numbers = workload.numbers.iter().chain(self.more);
        let numbers = numbers.map(|(key, value)| format!("{dashes}{key}={value}"));
        let duration = format!("{dashes}duration={seconds}");
        Ok(start.into_iter().chain(numbers).chain([duration]).collect())
    }
}

impl Workload {
    /// Program and arguments of gridhaul.
    fn command(&self, gridhaul: &Path, seconds: u32) -> anyhow::Result<Vec<String>> {
        let mut command = vec![path_text(gridhaul)?, "run".into()];
        command.push(path_text(&source(self.scenario))?);
        command.extend(["--set".into(), format!("duration={seconds} s")]);
        command
            .extend(["--json", "--quiet", "--force", "--threads", "1", "--out"].map(String::from));
        command.push(path_text(&folder().join("answer"))?);
        Ok(command)
    }
}

/// Segments sent and bytes delivered according to the answer of gridhaul.
fn work_in_answer(printed: &str, seconds: u32) -> anyhow::Result<(f64, f64)> {
    let answer: Value = serde_json::from_str(printed).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    let mean = |name: &str| {
        let value = metrics[name]["mean"].as_f64();
        value.with_context(|| format!("no {name} in the answer"))
    };
    let bytes = mean("goodput_bit_per_s")? * f64::from(seconds) / 8.0;
    Ok((mean("segments_sent_count")?, bytes))
}

/// Installs the measured programs and the tools for the measurement.
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

/// Compiles the ns-3 program with the libraries of Debian, unless the program is up to date.
fn compile_ns3() -> anyhow::Result<()> {
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    if changed(&ns3()) > changed(&source("ns3.cc")) {
        return Ok(());
    }
    let libraries = ["applications", "internet", "point-to-point", "traffic-control", "network"];
    let libraries = libraries.into_iter().chain(["bridge", "stats", "core"]);
    let mut compiler = program("g++");
    compiler.args(["-std=c++17", "-O2", "-o"]).arg(ns3()).arg(source("ns3.cc"));
    process::run(compiler.args(libraries.map(|library| format!("-lns3-{library}"))))
}

/// Compiles the htsim program with the library in a checkout of
/// github.com/Broadcom/csg-htsim, which is built there if it is absent.
fn compile_htsim(checkout: &Path) -> anyhow::Result<()> {
    let folder = checkout.join("sim");
    let source_folder = if folder.is_dir() { &folder } else { checkout };
    ensure!(
        source_folder.join("eventlist.h").is_file(),
        "--htsim {}: there is no eventlist.h in it or in its folder `sim`; name the folder of a \
         checkout of github.com/Broadcom/csg-htsim",
        checkout.display()
    );
    let library = source_folder.join("libhtsim.a");
    if !library.is_file() {
        process::run(program("make").arg("-C").arg(source_folder).arg("libhtsim.a"))?;
    }
    let mut compiler = program("g++");
    compiler.args(["-std=c++11", "-O3", "-I"]).arg(source_folder).arg("-o").arg(htsim());
    process::run(compiler.arg(source("htsim.cc")).arg(&library))
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

fn htsim() -> PathBuf {
    folder().join("htsim")
}
