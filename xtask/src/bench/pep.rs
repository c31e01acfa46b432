//! `bench pep`: what each proxy takes for a segment, and how much a node that reflects
//! acknowledgements slows a simulation.
//!
//! The first figures are for people and have no bar. For the ratio, the same two hops
//! (`bench/pep/two_hops.toml`) are simulated with a node that forwards and with one that reflects. CPU
//! time is of the whole process; rounds alternate, and of each kind the fastest counts.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Figure, install, text, timed};
use crate::shell::{self, cargo, output, program, root, target};

const ROUNDS: usize = 5;

/// CPU time with a unit against that without.
const BAR: f64 = 2.0;

/// What makes a unit of the node. With a buffer as large as the window both carry about as much, or
/// the ratio would count the data.
const UNIT: [&str; 4] =
    ["--set", "node.middle.proxy.mode=reflect", "--set", "node.middle.proxy.buffer=150 kB"];

/// Data segments that both runs deliver may differ by this share.
const SAME: f64 = 0.1;

pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    install(&[("time", Path::new("/usr/bin/time").is_file())])?;
    let example = ["build", "--release", "-p", "gridhaul-core", "--example", "pep"];
    shell::run(cargo().args(example))?;
    shell::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
    let path = target().join("release/examples/pep").display().to_string();
    let printed = output(&mut program(&path))?;
    let line = |line: &str| Figure { line: format!("proxy {line} (no bar)"), reached: true };
    let mut figures: Vec<_> = printed.lines().map(line).collect();
    figures.push(slowdown()?);
    Ok(figures)
}

fn slowdown() -> anyhow::Result<Figure> {
    let (mut plain, mut unit) = ((f64::INFINITY, 0.0), (f64::INFINITY, 0.0));
    for _ in 0..ROUNDS {
        for (best, set) in [(&mut plain, &UNIT[..0]), (&mut unit, &UNIT[..])] {
            let (cpu_s, goodput) = simulate(set)?;
            *best = (best.0.min(cpu_s), goodput);
        }
    }
    let same = (unit.1 / plain.1 - 1.0).abs();
    ensure!(same <= SAME, "with a unit {:.2} times as much is carried", unit.1 / plain.1);
    println!("\npep: two hops, {:.2} s CPU; with a unit {:.2} s", plain.0, unit.0);
    let ratio = unit.0 / plain.0;
    let line = format!("proxy reflect in a simulation: {ratio:.2} times the CPU time (bar {BAR})");
    Ok(Figure { line, reached: ratio < BAR })
}

/// CPU seconds of a run, and the goodput of its flow.
fn simulate(set: &[&str]) -> anyhow::Result<(f64, f64)> {
    let mut command = vec![text(&target().join("release/gridhaul"))?, "run".into()];
    command.extend([text(&root().join("bench/pep/two_hops.toml"))?, "--json".into()]);
    command.push("--quiet".into());
    command.extend(set.iter().map(|&word| word.to_owned()));
    let (printed, cpu_s, _) = timed(&command)?;
    let answer: Value = serde_json::from_str(&printed)?;
    let goodput = answer.pointer("/points/0/flows/0/metrics/goodput_bit_per_s/mean");
    let goodput = goodput.and_then(Value::as_f64).context("an answer without goodput")?;
    Ok((cpu_s, goodput))
}
