//! `cargo xtask bench`: benchmarks with limits, and comparable programs in the same run.

mod emu;
mod meters;
mod model;
mod pep;
mod plan;
pub(crate) mod relay;
mod reserve;
mod sim;
mod three;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;

use crate::process::{self, installed, output, program, target};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benchmarks to run [default: all but `reserve`]
    names: Vec<String>,
    /// Networks of the benchmark `three`, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    networks: Vec<String>,
    /// In the benchmark `relay`, measure many connections instead of the costs of one
    #[arg(long)]
    load: bool,
    /// In the benchmark `relay`, compare how programs forward the ends of connections
    #[arg(long, conflicts_with = "load")]
    matrix: bool,
    /// The reduced form of the benchmark `reserve`, about a minute
    #[arg(long)]
    quick: bool,
}

/// A benchmark: prints its results and returns those that have a limit.
struct Bench {
    name: &'static str,
    run: fn(&Options) -> anyhow::Result<Vec<Measurement>>,
}

/// A measured value and its limit.
pub(crate) struct Measurement {
    /// `NAME: VALUE (limit LIMIT)`.
    line: String,
    /// Whether the value is within the limit.
    passed: bool,
}

const BENCHES: &[Bench] = &[
    Bench { name: "sim", run: |_| sim::run() },
    Bench { name: "model", run: |_| model::run() },
    Bench { name: "plan", run: |_| plan::run() },
    Bench { name: "meters", run: |_| meters::run() },
    Bench { name: "pep", run: |_| pep::run() },
    Bench { name: "relay", run: |options| relay::run(options.load, options.matrix) },
    Bench { name: "emu", run: |_| emu::run() },
    Bench { name: "three", run: |options| three::run(&options.networks) },
    Bench { name: ON_REQUEST, run: |options| reserve::run(options.quick) },
];

/// The benchmark that takes about 20 minutes, and therefore runs only if it is named.
const ON_REQUEST: &str = "reserve";

/// Runs the benchmarks.
///
/// # Errors
/// A measured value is not within its limit, or a program fails.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    for name in &options.names {
        ensure!(
            known.contains(&name.as_str()),
            "there is no benchmark {name:?}; choose from: {}",
            known.join(", ")
        );
    }
    let chosen = |bench: &&Bench| {
        let is_default = options.names.is_empty() && bench.name != ON_REQUEST;
        is_default || options.names.iter().any(|name| name == bench.name)
    };
    let mut measurements = Vec::new();
    for bench in BENCHES.iter().filter(chosen) {
        measurements.extend((bench.run)(options)?);
    }
    check(&measurements)
}

/// Prints measurements with their limits.
///
/// # Errors
/// A measured value is not within its limit.
pub(crate) fn check(measurements: &[Measurement]) -> anyhow::Result<()> {
    println!();
    for Measurement { line, passed } in measurements {
        println!("{line}: {}", if *passed { "reached" } else { "NOT REACHED" });
    }
    let failed: Vec<_> = measurements.iter().filter(|measurement| !measurement.passed).collect();
    let failed: Vec<_> =
        failed.iter().filter_map(|measurement| measurement.line.split(':').next()).collect();
    ensure!(failed.is_empty(), "not within the limit: {}", failed.join(", "));
    Ok(())
}

/// Runs a command. Returns its output, its CPU time in seconds (user and system) and its peak memory in kB.
fn timed(command: &[String]) -> anyhow::Result<(String, f64, f64)> {
    let scratch = target().join("bench");
    fs::create_dir_all(&scratch)?;
    let (times, memory) = (scratch.join("times"), scratch.join("memory"));
    // The times of the shell have one digit more than those of time(1), which reports the memory.
    let script = "TIMEFORMAT='%U %S'; times=$1; shift; { time \"$@\" 2>&4; } 4>&2 2>\"$times\"";
    let mut shell = program("bash");
    shell.args(["-c", script, "bash"]).arg(&times);
    shell.args(["/usr/bin/time", "--format", "%M", "--output"]).arg(&memory).args(command);
    let printed = output(&mut shell)?;
    let numbers = |path: &Path| -> anyhow::Result<f64> {
        let text = fs::read_to_string(path)?;
        let numbers = text.split_whitespace().map(str::parse::<f64>);
        Ok(numbers.sum::<Result<_, _>>()?)
    };
    Ok((printed, numbers(&times)?, numbers(&memory)?))
}

/// Installs the missing ones of these Debian packages; the second value of a pair is whether a package is installed.
fn install(needed: &[(&str, bool)]) -> anyhow::Result<()> {
    let missing =
        needed.iter().filter(|(_, is_installed)| !is_installed).map(|(package, _)| *package);
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted = missing.join(" ");
    ensure!(installed("apt-get"), "install the Debian packages {wanted}");
    let user = output(program("id").arg("-u"))?;
    ensure!(user.trim() == "0", "run as root: apt-get install {wanted}");
    println!("not installed: {wanted}; installing with apt-get");
    process::run(program("apt-get").args(["update", "--quiet"]))?;
    let options = ["install", "--yes", "--quiet", "--no-install-recommends"];
    process::run(program("apt-get").args(options).args(missing))
}

fn path_text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("a path is not UTF-8")?.to_owned())
}
