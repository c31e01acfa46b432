//! `cargo xtask bench three`: the same bulk flows on the simulator (profile `linux`) and on the kernel
//! of this machine, over the emulated networks of `bench/three/networks.toml`.
//!
//! Each flow is made on the kernel with several seeds: with loss the draws differ, and without it the
//! kernel's own timing does. A figure holds if it is within its bar, or if the 95 % interval of the
//! difference allows it; what does not must stand in `bench/three/exceptions.toml` with its reason.

mod judge;
mod measure;

use std::fs;

use anyhow::{Context, ensure};
use toml::Table;

use self::judge::{Estimate, agrees};
use super::Figure;
use crate::shell::{self, cargo, root};

/// Variants and how far goodput may be off.
const VARIANTS: [(&str, f64); 4] = [("reno", 0.1), ("cubic", 0.1), ("vegas", 0.1), ("bbr", 0.15)];
/// How far the number of segments that are sent again may be off: a share, or so many.
const REPEATED: (f64, f64) = (0.2, 2.0);

/// What is compared.
#[derive(Debug, Clone)]
struct Cell {
    network: Table,
    congestion_control: &'static str,
    bar: f64,
}

/// Goodput and segments sent again of one run or more.
type Outcome = [Estimate; 2];

/// Measures, prints a table; the figures are the caller's to print.
pub(super) fn run(only: &[String]) -> anyhow::Result<Vec<Figure>> {
    // What the kernel does in real time needs no release build.
    shell::run(cargo().args(["build", "--package", "gridhaul"]))?;
    let cells = cells(only)?;
    println!("\nthree: {} flows, each by simulator and kernel", cells.len());
    let simulated = measure::simulate(&cells)?;
    let kernel = measure::run_on_kernel(&cells)?;
    let exceptions: Table =
        fs::read_to_string(root().join("bench/three/exceptions.toml"))?.parse()?;
    println!(
        "  {:<24}{:<7}{:>11}{:>11}{:>7}  {:<9}{:>8}{:>8}{:>7}  verdict",
        "network",
        "congestion_control",
        "sim kbit/s",
        "kernel",
        "ratio",
        "verdict",
        "again",
        "kernel",
        "ratio"
    );
    let mut held = [0, 0];
    let mut missed = Vec::new();
    for (cell, (simulated, kernel)) in cells.iter().zip(simulated.iter().zip(&kernel)) {
        let name = value(&cell.network, "name")?;
        let mut words = Vec::new();
        for (index, metric) in ["goodput", "retransmissions"].into_iter().enumerate() {
            let least = if index == 0 { 0.0 } else { REPEATED.1 };
            let share = if index == 0 { cell.bar } else { REPEATED.0 };
            let holds = agrees(simulated[index], kernel[index], share, least);
            let key = format!("{name} {} {metric}", cell.congestion_control);
            let excused = exceptions.contains_key(&key);
            held[index] += usize::from(holds);
            if !holds && !excused {
                missed.push(key);
            }
            words.push(if holds {
                "agree"
            } else if excused {
                "listed"
            } else {
                "DIFFER"
            });
        }
        let ratio = |index: usize| simulated[index].mean / kernel[index].mean.max(1e-9);
        let again = if kernel[1].mean > 0.0 { format!("{:.2}", ratio(1)) } else { "-".into() };
        println!(
            "  {name:<24}{:<7}{:>11.1}{:>11.1}{:>7.3}  {:<9}{:>8.1}{:>8.1}{again:>7}  {}",
            cell.congestion_control,
            simulated[0].mean / 1e3,
            kernel[0].mean / 1e3,
            ratio(0),
            words[0],
            simulated[1].mean,
            kernel[1].mean,
            words[1]
        );
    }
    let all = cells.len();
    println!("  goodput agrees in {} of {all}, segments sent again in {}", held[0], held[1]);
    for key in &missed {
        println!("  differs without a reason in bench/three/exceptions.toml: {key}");
    }
    let line = format!("three: {} unexplained differences (bar 0)", missed.len());
    Ok(vec![Figure { line, reached: missed.is_empty() }])
}

/// Every network, or those of these names, with every variant. Vegas is our own: each run brings it into
/// the kernel.
fn cells(only: &[String]) -> anyhow::Result<Vec<Cell>> {
    let networks = root().join("bench/three/networks.toml");
    let networks: Table = fs::read_to_string(networks)?.parse()?;
    let networks = networks["network"].as_array().context("no networks")?;
    let names: Vec<_> = networks.iter().filter_map(|it| it.get("name")?.as_str()).collect();
    for name in only {
        ensure!(
            names.contains(&name.as_str()),
            "no network {name:?}; there is {}",
            names.join(", ")
        );
    }
    let mut cells = Vec::new();
    for (congestion_control, bar) in VARIANTS {
        for network in networks {
            let network = network.as_table().context("a network is a table")?.clone();
            let name = value(&network, "name")?.to_owned();
            if only.is_empty() || only.contains(&name) {
                cells.push(Cell { network, congestion_control, bar });
            }
        }
    }
    Ok(cells)
}

fn value<'a>(network: &'a Table, key: &str) -> anyhow::Result<&'a str> {
    let value = network.get(key).and_then(toml::Value::as_str);
    let value = value.with_context(|| format!("a network without {key}"))?;
    ensure!(!value.is_empty(), "a network with an empty {key}");
    Ok(value)
}
