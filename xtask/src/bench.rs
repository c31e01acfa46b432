//! `cargo xtask bench`: figures against their bars, peers measured in the same run.
//!
//! A peer is an executable file `bench/peers/<bench>-<peer>`. It runs the same task as gridhaul and
//! prints as its last line `<work> <CPU seconds>`, with work counted as the bench counts it.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use clap::Args;

use crate::shell::{self, cargo, output, program, root, target};

/// Arguments of `bench`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Names of the benches; without any, all of them
    names: Vec<String>,
}

/// A figure and the bar that it has to reach.
struct Bench {
    name: &'static str,
    measure: fn() -> anyhow::Result<Measured>,
}

/// What a bench found; larger is better.
struct Measured {
    figure: f64,
    bar: f64,
    unit: &'static str,
}

const BENCHES: &[Bench] = &[Bench { name: "sim", measure: sim }];

/// Runs the benches; an error if one falls short.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
    for name in &options.names {
        ensure!(known.contains(&name.as_str()), "no bench {name:?}; there is {}", known.join(", "));
    }
    let chosen = |bench: &&Bench| {
        options.names.is_empty() || options.names.iter().any(|name| name == bench.name)
    };
    let mut short = Vec::new();
    for bench in BENCHES.iter().filter(chosen) {
        let Measured { figure, bar, unit } = (bench.measure)()?;
        println!("{}: {figure:.1} {unit} (bar {bar} {unit})", bench.name);
        if figure < bar {
            short.push(bench.name);
        }
    }
    ensure!(short.is_empty(), "below the bar: {}", short.join(", "));
    Ok(())
}

/// Packets per CPU second of the simulator, against the fastest peer on the same scenario.
fn sim() -> anyhow::Result<Measured> {
    shell::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
    let scenario = root().join("bench/sim.toml");
    ensure!(scenario.is_file(), "bench/sim.toml is missing: the scenario that peers run as well");
    let folder = target().join("bench-sim");
    let binary = target().join("release/gridhaul");
    let run = ["run", text(&scenario)?, "--threads", "1", "--quiet", "--out", text(&folder)?];
    let seconds = cpu_seconds(text(&binary)?, &run)?;
    let answer = fs::read_to_string(folder.join("answer.json")).context("no answer")?;
    let own = packets(&serde_json::from_str(&answer)?) / seconds;
    println!("gridhaul: {own:.0} packets per CPU second");
    let mut ratios = Vec::new();
    for (peer, bar) in [("ns2", 20.0), ("ns3", 60.0)] {
        let rate = peer_rate(&format!("sim-{peer}"))?;
        println!(
            "{peer}: {rate:.0} packets per CPU second; gridhaul is {:.1} times as fast",
            own / rate
        );
        ratios.push((own / rate, bar));
    }
    let share = |(ratio, bar): &(f64, f64)| ratio / bar;
    let worst = ratios.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let (figure, bar) = *worst.context("no peer")?;
    Ok(Measured { figure, bar, unit: "times the peer" })
}

/// Packets that entered the links of an answer, all runs together.
fn packets(answer: &serde_json::Value) -> f64 {
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or(0.0);
    let points = answer["points"].as_array().into_iter().flatten();
    let links = points.flat_map(|point| point["links"].as_array().into_iter().flatten());
    let packets = links.map(|link| number(&link["metrics"]["packets_in_count"]["mean"]));
    packets.sum::<f64>() * number(&answer["repeats"])
}

fn peer_rate(name: &str) -> anyhow::Result<f64> {
    let path = root().join("bench/peers").join(name);
    ensure!(path.is_file(), "bench/peers/{name} is missing");
    let printed = output(&mut program(text(&path)?))?;
    let last = printed.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = last.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [work, seconds] = numbers[..] else {
        bail!("bench/peers/{name} must end with `<work> <CPU seconds>`, not {last:?}");
    };
    Ok(work / seconds)
}

/// User and system time of a program, as the shell measures it.
fn cpu_seconds(binary: &str, arguments: &[&str]) -> anyhow::Result<f64> {
    let script = "TIMEFORMAT='%U %S'; { time \"$0\" \"$@\" >&2; } 2>&1 >/dev/null | tail -n 1";
    let mut command = program("bash");
    command.args(["-c", script, binary]).args(arguments);
    let printed = output(&mut command)?;
    let times = printed.split_whitespace().map(str::parse::<f64>);
    let seconds: f64 = times.sum::<Result<_, _>>().context("no times from the shell")?;
    ensure!(seconds > 0.0, "the run was too short to measure");
    Ok(seconds)
}

fn text(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path that is not text")
}
