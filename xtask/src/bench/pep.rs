//! `bench pep`: processing time of each proxy mode for a segment, and the slowdown of a simulation
//! by a reflecting proxy.
//!
//! The processing times have no limit. For the slowdown, the two hops of `bench/pep/two_hops.toml`
//! are simulated with a forwarding node and with a reflecting proxy. CPU time is that of the
//! process, in the fastest of several alternating rounds.

use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Bounds, Measurement, install, path_text, timed};
use crate::process::{self, cargo, output, program, root, target};

const ROUNDS: usize = 5;

/// Ratio of the CPU times with and without the proxy.
const RATIO: Bounds = Bounds::at_most(1.6, 2.4);

/// Settings that make the node a proxy. With a buffer as large as the window both runs deliver
/// about the same data, so that the ratio compares equal work.
const PROXY: [&str; 4] =
    ["--set", "node.middle.proxy.mode=reflect", "--set", "node.middle.proxy.buffer=150 kB"];

/// Largest relative difference of the goodput of both runs.
const GOODPUT_DIFFERENCE: f64 = 0.1;

pub(super) fn run(gridhaul: &Path) -> anyhow::Result<Vec<Measurement>> {
    install(&[("time", Path::new("/usr/bin/time").is_file())])?;
    let example = ["build", "--release", "-p", "gridhaul-core", "--example", "pep"];
    process::run(cargo().args(example))?;
    let path = target().join("release/examples/pep").display().to_string();
    let printed = output(&mut program(&path))?;
    let line = |line: &str| Measurement::verdict(format!("proxy {line} (no limit)"), true);
    let mut measurements: Vec<_> = printed.lines().map(line).collect();
    measurements.push(slowdown(gridhaul)?);
    Ok(measurements)
}

fn slowdown(gridhaul: &Path) -> anyhow::Result<Measurement> {
    let (mut plain, mut proxy) = ((f64::INFINITY, 0.0), (f64::INFINITY, 0.0));
    for _ in 0..ROUNDS {
        for (best, set) in [(&mut plain, &PROXY[..0]), (&mut proxy, &PROXY[..])] {
            let (cpu_s, goodput) = simulate(gridhaul, set)?;
            *best = (best.0.min(cpu_s), goodput);
        }
    }
    let difference = (proxy.1 / plain.1 - 1.0).abs();
    ensure!(
        difference <= GOODPUT_DIFFERENCE,
        "the goodput with a proxy is {:.2} times that without",
        proxy.1 / plain.1
    );
    println!("\npep: two hops, {:.2} s CPU; with a proxy {:.2} s", plain.0, proxy.0);
    let ratio = proxy.0 / plain.0;
    let name = "proxy reflect in a simulation";
    Ok(Measurement::new(name, (ratio, 2, " times the CPU time"), RATIO))
}

/// CPU seconds of a run, and the goodput of its flow.
fn simulate(gridhaul: &Path, set: &[&str]) -> anyhow::Result<(f64, f64)> {
    let mut command = vec![path_text(gridhaul)?, "run".into()];
    command.extend([path_text(&root().join("bench/pep/two_hops.toml"))?, "--json".into()]);
    command.push("--quiet".into());
    command.extend(set.iter().map(|&word| word.to_owned()));
    let (printed, cpu_s, _) = timed(&command)?;
    let answer: Value = serde_json::from_str(&printed)?;
    let goodput = answer.pointer("/points/0/flows/0/metrics/goodput_bit_per_s/mean");
    let goodput = goodput.and_then(Value::as_f64).context("the answer has no goodput")?;
    Ok((cpu_s, goodput))
}
