//! `cargo xtask bench`: figures against their bars, peers measured in the same run.

mod emu;
mod meters;
mod model;
mod pep;
mod plan;
mod sim;
mod three;

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};
use clap::Args;

use crate::shell::{self, installed, output, program, target};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benches; without any, all of them
    names: Vec<String>,
    /// Networks that `three` looks at, with commas between; without any, all of them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    networks: Vec<String>,
}

/// A bench: prints what it measures and returns its figures.
struct Bench {
    name: &'static str,
    run: fn(&Options) -> anyhow::Result<Vec<Figure>>,
}

/// A figure against its bar.
struct Figure {
    /// `NAME: FIGURE (bar BAR)`.
    line: String,
    reached: bool,
}

const BENCHES: &[Bench] = &[
    Bench { name: "sim", run: |_| sim::run() },
    Bench { name: "model", run: |_| model::run() },
    Bench { name: "plan", run: |_| plan::run() },
    Bench { name: "meters", run: |_| meters::run() },
    Bench { name: "pep", run: |_| pep::run() },
    Bench { name: "emu", run: |_| emu::run() },
    Bench { name: "three", run: |options| three::run(&options.networks) },
];

/// Runs the benches; an error if a figure falls short.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    for name in &options.names {
        ensure!(known.contains(&name.as_str()), "no bench {name:?}; there is {}", known.join(", "));
    }
    let chosen = |bench: &&Bench| {
        options.names.is_empty() || options.names.iter().any(|name| name == bench.name)
    };
    let mut figures = Vec::new();
    for bench in BENCHES.iter().filter(chosen) {
        figures.extend((bench.run)(options)?);
    }
    println!();
    for figure in &figures {
        println!("{}", figure.line);
    }
    let short: Vec<_> = figures.iter().filter(|figure| !figure.reached).collect();
    let short: Vec<_> = short.iter().filter_map(|figure| figure.line.split(':').next()).collect();
    ensure!(short.is_empty(), "short of the bar: {}", short.join(", "));
    Ok(())
}

/// Runs a command; returns what it printed, its CPU time in seconds (user and system) and its peak
/// memory in kB.
fn timed(command: &[String]) -> anyhow::Result<(String, f64, f64)> {
    let scratch = target().join("bench");
    fs::create_dir_all(&scratch)?;
    let (times, memory) = (scratch.join("times"), scratch.join("memory"));
    // The shell's times have a digit more than those of time(1), which knows the memory.
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

/// Installs what is missing and can be had from Debian: packages, and whether they are there.
fn install(needed: &[(&str, bool)]) -> anyhow::Result<()> {
    let missing = needed.iter().filter(|(_, there)| !there).map(|(package, _)| *package);
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        return Ok(());
    }
    let wanted = missing.join(" ");
    ensure!(installed("apt-get"), "missing: the Debian packages {wanted}");
    let user = output(program("id").arg("-u"))?;
    ensure!(user.trim() == "0", "missing: apt-get install {wanted}");
    println!("not installed: {wanted}; installing with apt-get");
    shell::run(program("apt-get").args(["update", "--quiet"]))?;
    let options = ["install", "--yes", "--quiet", "--no-install-recommends"];
    shell::run(program("apt-get").args(options).args(missing))
}

fn text(path: &Path) -> anyhow::Result<String> {
    Ok(path.to_str().context("a path that is not text")?.to_owned())
}
