//! `cargo xtask bench`: benchmarks with limits, and comparable programs in the same run.

mod agreement;
mod bridge;
mod emu;
mod history;
mod meters;
mod model;
mod pep;
mod plan;
mod proxies;
mod python;
pub(crate) mod relay;
mod reserve;
mod settings;
mod sim;
mod storm;
mod three;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;

use crate::instructions::Workload;
use crate::process::{self, cargo, installed, output, program, target};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benchmarks to run [default: all but `python`, `reserve` and `storm`]
    names: Vec<String>,
    /// Networks of the benchmark `three`, separated by commas [default: all]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    networks: Vec<String>,
    /// Cases of the benchmark `proxies`: texts that their names contain, separated by commas
    /// [default: all]
    #[arg(long, value_name = "TEXTS", value_delimiter = ',')]
    cases: Vec<String>,
    /// In the benchmark `relay`, measure many connections instead of the costs of one
    #[arg(long)]
    load: bool,
    /// In the benchmark `relay`, compare how programs forward the ends of connections
    #[arg(long, conflicts_with = "load")]
    matrix: bool,
    /// The reduced form of the benchmark `reserve`, about four minutes
    #[arg(long)]
    quick: bool,
    /// In the benchmark `sim`, compare with htsim: the folder of a checkout of csg-htsim
    #[arg(long, value_name = "FOLDER")]
    htsim: Option<PathBuf>,
    /// In the benchmarks `meters`, `model`, `pep`, `plan` and `sim`, measure this program, such as
    /// one of `cargo xtask dist`, instead of a release build
    #[arg(long, value_name = "PROGRAM")]
    gridhaul: Option<PathBuf>,
    /// Append the values to docs/data/benchmarks.csv, after a comparison with the last ones there
    #[arg(long)]
    record: bool,
}

impl Options {
    /// The measured program: the given one, or that of a release build, which is made first.
    fn gridhaul(&self) -> anyhow::Result<PathBuf> {
        if let Some(given) = &self.gridhaul {
            let program = given.canonicalize();
            return program.with_context(|| format!("--gridhaul {}", given.display()));
        }
        process::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
        Ok(target().join("release/gridhaul"))
    }
}

/// A benchmark: prints its results and returns those that have a limit.
struct Bench {
    name: &'static str,
    run: fn(&Options) -> anyhow::Result<Vec<Measurement>>,
}

/// A measured value and its limit.
pub(crate) struct Measurement {
    /// `NAME: VALUE (limit LIMIT)`, with the goal if it differs from the limit.
    line: String,
    /// Absent in a verdict, and in values whose history nobody compares.
    value: Option<Value>,
    /// Whether the value is within the limit.
    passed: bool,
}

/// A measured number.
struct Value {
    name: String,
    number: f64,
    unit: String,
}

/// Bounds of a measured value. The goal is what the project wants to reach and is printed only; the
/// limit holds today, so that a value beyond it is a regression.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    goal: f64,
    limit: f64,
    /// Whether larger values are better.
    larger: bool,
}

impl Bounds {
    /// Smaller values are better.
    const fn at_most(goal: f64, limit: f64) -> Self {
        Self { goal, limit, larger: false }
    }

    /// Larger values are better.
    const fn at_least(goal: f64, limit: f64) -> Self {
        Self { goal, limit, larger: true }
    }

    fn holds(self, value: f64, bound: f64) -> bool {
        if self.larger { value >= bound } else { value <= bound }
    }
}

impl Measurement {
    /// A value with a goal and a limit.
    fn new(name: &str, (value, decimals, unit): (f64, usize, &str), bounds: Bounds) -> Self {
        let goal = if bounds.holds(value, bounds.goal) { "reached" } else { "not reached" };
        let Bounds { goal: goal_value, limit, .. } = bounds;
        let line = format!(
            "{name}: {value:.decimals$}{unit} (goal {goal_value}{unit}: {goal}; limit \
             {limit}{unit})"
        );
        let number = Value { name: name.to_owned(), number: value, unit: unit.trim().to_owned() };
        Self { line, value: Some(number), passed: bounds.holds(value, limit) }
    }

    /// A verdict, or a text without a limit.
    fn verdict(line: String, passed: bool) -> Self {
        Self { line, value: None, passed }
    }
}

const BENCHES: &[Bench] = &[
    Bench { name: "sim", run: |options| sim::run(&options.gridhaul()?, options.htsim.as_deref()) },
    Bench { name: "model", run: |options| model::run(&options.gridhaul()?) },
    Bench { name: "plan", run: |options| plan::run(&options.gridhaul()?) },
    Bench { name: "meters", run: |options| meters::run(&options.gridhaul()?) },
    Bench { name: "pep", run: |options| pep::run(&options.gridhaul()?) },
    Bench { name: "relay", run: |options| relay::run(options.load, options.matrix) },
    Bench { name: "bridge", run: |_| bridge::run() },
    Bench { name: "emu", run: |_| emu::run() },
    Bench { name: "three", run: |options| three::run(&options.networks) },
    Bench { name: "proxies", run: |options| proxies::run(&options.cases) },
    Bench { name: "storm", run: |_| storm::run() },
    Bench { name: "python", run: |_| python::run() },
    Bench { name: "reserve", run: |options| reserve::run(options.quick) },
];

/// Benchmarks that run only if they are named: `reserve` takes more than an hour, `storm` six
/// minutes, and `python` builds the wheel.
const ON_REQUEST: [&str; 3] = ["python", "reserve", "storm"];

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
        let is_default = options.names.is_empty() && !ON_REQUEST.contains(&bench.name);
        is_default || options.names.iter().any(|name| name == bench.name)
    };
    let mut measurements = Vec::new();
    for bench in BENCHES.iter().filter(chosen) {
        measurements.extend((bench.run)(options)?);
    }
    if options.record {
        history::record(&measurements)?;
    }
    check(&measurements)
}

/// Prints measurements with their goals and limits.
///
/// # Errors
/// A measured value is not within its limit.
pub(crate) fn check(measurements: &[Measurement]) -> anyhow::Result<()> {
    println!();
    for Measurement { line, passed, .. } in measurements {
        println!("{line}: {}", if *passed { "within the limit" } else { "BEYOND THE LIMIT" });
    }
    let failed: Vec<_> = measurements.iter().filter(|measurement| !measurement.passed).collect();
    let failed: Vec<_> =
        failed.iter().filter_map(|measurement| measurement.line.split(':').next()).collect();
    ensure!(failed.is_empty(), "not within the limit: {}", failed.join(", "));
    Ok(())
}

/// Runs a command. Returns its output, its CPU time in seconds (user and system) and its peak
/// memory in kB.
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

/// Counts the instructions of `gridhaul` for a workload.
fn instructions(
    gridhaul: &Path,
    workload: &Workload,
    bounds: Bounds,
) -> anyhow::Result<Measurement> {
    let count = workload.count(gridhaul)?;
    let name = format!("instructions-{}", workload.name);
    Ok(Measurement::new(&name, (count, 0, ""), bounds))
}

/// Installs the missing ones of these Debian packages; the second value of a pair is whether a
/// package is installed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_that_is_not_reached_is_printed_and_only_a_limit_fails() {
        let speed = Bounds::at_least(20.0, 2.0);
        let measured = Measurement::new("sim-bulk-vs-ns2", (3.64, 1, "x"), speed);
        assert_eq!(measured.line, "sim-bulk-vs-ns2: 3.6x (goal 20x: not reached; limit 2x)");
        assert!(check(&[measured]).is_ok());
        let time = Bounds::at_most(1.0, 5.0);
        let [reached, slow] =
            [0.9, 5.1].map(|value| Measurement::new("model", (value, 1, " s"), time));
        assert!(reached.line.contains("goal 1 s: reached"), "{}", reached.line);
        let error = check(&[reached, slow]).unwrap_err().to_string();
        assert_eq!(error, "not within the limit: model");
    }
}
