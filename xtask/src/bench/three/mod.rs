//! `cargo xtask bench three`: the same bulk flows on the simulator (profile `linux`) and on the
//! kernel of this machine, over the emulated networks of `bench/three/networks.toml`.
//!
//! Each flow runs on the kernel with several seeds: random losses differ, and without loss the
//! timing of the kernel differs. A metric agrees if its deviation is within the limit or within the
//! 95 % confidence interval of the difference. Other deviations need an entry with the reason in
//! `bench/three/exceptions.toml`.

mod agreement;
mod measure;

use std::fs;

use anyhow::{Context, ensure};
use toml::Table;

use self::agreement::{Estimate, agrees};
use super::Measurement;
use crate::process::{self, cargo, root};

/// Congestion control algorithms, and the largest relative deviation of their goodput.
const CONGESTION_CONTROLS: [(&str, f64); 4] =
    [("reno", 0.1), ("cubic", 0.1), ("vegas", 0.1), ("bbr", 0.15)];
/// Largest deviation of the number of retransmissions: relative, or absolute.
const RETRANSMISSIONS: (f64, f64) = (0.2, 2.0);

/// A network and a congestion control algorithm.
#[derive(Debug, Clone)]
struct Cell {
    network: Table,
    congestion_control: &'static str,
    limit: f64,
}

/// Goodput and retransmissions of one run or more.
type Outcome = [Estimate; 2];

/// Measures and prints a table. The caller prints the returned value.
pub(super) fn run(only: &[String]) -> anyhow::Result<Vec<Measurement>> {
    // The kernel runs in real time, so a release build is not needed.
    process::run(cargo().args(["build", "--package", "gridhaul"]))?;
    let cells = cells(only)?;
    println!("\nthree: {} flows, each in the simulator and on the kernel", cells.len());
    let simulated = measure::simulate(&cells)?;
    let kernel = measure::run_on_kernel(&cells)?;
    let exceptions = fs::read_to_string(root().join("bench/three/exceptions.toml"))?;
    let exceptions: Table = exceptions.parse()?;
    println!(
        "  {:<31}{:^40}retransmissions\n  {:<24}{:<7}{:>11}{:>11}{:>7}  {:<9}{:>8}{:>8}\
         {:>7}  result",
        "",
        "goodput in kbit/s",
        "network",
        "TCP",
        "simulator",
        "kernel",
        "ratio",
        "result",
        "sim",
        "kernel",
        "ratio"
    );
    let mut agreeing = [0, 0];
    let mut unexplained = Vec::new();
    for (cell, (simulated, kernel)) in cells.iter().zip(simulated.iter().zip(&kernel)) {
        let name = value(&cell.network, "name")?;
        let mut results = Vec::new();
        for (index, metric) in ["goodput", "retransmissions"].into_iter().enumerate() {
            let minimum = if index == 0 { 0.0 } else { RETRANSMISSIONS.1 };
            let share = if index == 0 { cell.limit } else { RETRANSMISSIONS.0 };
            let agree = agrees(simulated[index], kernel[index], share, minimum);
            let key = format!("{name} {} {metric}", cell.congestion_control);
            let is_listed = exceptions.contains_key(&key);
            agreeing[index] += usize::from(agree);
            if !agree && !is_listed {
                unexplained.push(key);
            }
            results.push(if agree {
                "agree"
            } else if is_listed {
                "listed"
            } else {
                "DIFFER"
            });
        }
        let ratio = |index: usize| simulated[index].mean / kernel[index].mean.max(1e-9);
        let retransmission_ratio =
            if kernel[1].mean > 0.0 { format!("{:.2}", ratio(1)) } else { "-".into() };
        println!(
            "  {name:<24}{:<7}{:>11.1}{:>11.1}{:>7.3}  {:<9}{:>8.1}{:>8.1}\
         {retransmission_ratio:>7}  {}",
            cell.congestion_control,
            simulated[0].mean / 1e3,
            kernel[0].mean / 1e3,
            ratio(0),
            results[0],
            simulated[1].mean,
            kernel[1].mean,
            results[1]
        );
    }
    let all = cells.len();
    let [goodput, retransmissions] = agreeing;
    println!("  goodput agrees in {goodput} of {all} cases, retransmissions in {retransmissions}");
    for key in &unexplained {
        println!("  deviation without an entry in bench/three/exceptions.toml: {key}");
    }
    let line = format!("three: {} unexplained deviations (limit 0)", unexplained.len());
    Ok(vec![Measurement { line, passed: unexplained.is_empty() }])
}

/// All networks, or those with these names, with all congestion control algorithms. Each run loads
/// Vegas, which is part of gridhaul, into the kernel.
fn cells(only: &[String]) -> anyhow::Result<Vec<Cell>> {
    let networks = root().join("bench/three/networks.toml");
    let networks: Table = fs::read_to_string(networks)?.parse()?;
    let networks = networks["network"].as_array().context("networks.toml has no networks")?;
    let names: Vec<_> =
        networks.iter().filter_map(|network| network.get("name")?.as_str()).collect();
    for name in only {
        ensure!(
            names.contains(&name.as_str()),
            "there is no network {name:?}; choose from: {}",
            names.join(", ")
        );
    }
    let mut cells = Vec::new();
    for (congestion_control, limit) in CONGESTION_CONTROLS {
        for network in networks {
            let network = network.as_table().context("a network is a table")?.clone();
            let name = value(&network, "name")?.to_owned();
            if only.is_empty() || only.contains(&name) {
                cells.push(Cell { network, congestion_control, limit });
            }
        }
    }
    Ok(cells)
}

fn value<'a>(network: &'a Table, key: &str) -> anyhow::Result<&'a str> {
    let value = network.get(key).and_then(toml::Value::as_str);
    let value = value.with_context(|| format!("a network has no {key}"))?;
    ensure!(!value.is_empty(), "a network has an empty {key}");
    Ok(value)
}
