//! `cargo xtask bench meters`: simulations of 1,000 to 1,000,000 meters over 300 s on one core, and
//! of ns-2 with fewer meters.
//!
//! CPU time and peak memory are those of the process, start-up included, in the fastest of several
//! rounds. The scenario is in `bench/meters`, the script for ns-2 in `conformance/ns2`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

use super::{Bounds, Measurement, install, path_text, timed};
use crate::instructions;
use crate::process::{self, cargo, installed, root, target};

const ROUNDS: usize = 3;

/// Numbers of meters in the runs of gridhaul and of ns-2, which takes minutes for more.
const METERS: [u32; 8] = [1_000, 3_000, 10_000, 30_000, 100_000, 200_000, 400_000, 1_000_000];
const NS2_METERS: [u32; 2] = [1_000, 10_000];

/// Numbers of meters in the runs with a link that suffices. The link of the scenario is overloaded
/// above 60,000 meters, so that most of its packets are retransmissions.
const SUFFICIENT_METERS: [u32; 2] = [100_000, 400_000];
const SUFFICIENT: &str = "20 Mbit/s";

/// CPU seconds and MB for 400,000 meters, MB for a million.
const REGION: u32 = 400_000;
const REGION_TIME: Bounds = Bounds::at_most(15.0, 15.0);
const REGION_MB: Bounds = Bounds::at_most(400.0, 440.0);
const SUFFICIENT_TIME: Bounds = Bounds::at_most(15.0, 20.0);
const SUFFICIENT_MB: Bounds = Bounds::at_most(330.0, 380.0);
const MILLION: u32 = 1_000_000;
const MILLION_MB: Bounds = Bounds::at_most(850.0, 1_100.0);

/// Instructions for a message on a link that suffices.
const INSTRUCTIONS: Bounds = Bounds::at_most(3_000.0, 5_000.0);

/// The resources and results of a run.
#[derive(Debug, Clone, Copy)]
struct Run {
    program: &'static str,
    meters: u32,
    cpu_s: f64,
    memory_mb: f64,
    /// Data packets offered to the link in the measurement interval of 240 s, and the loss ratio.
    packets: f64,
    loss: f64,
}

/// Measures, prints a table, and writes the table and a chart. The caller prints the returned
/// values.
pub(super) fn run(gridhaul: &Path) -> anyhow::Result<Vec<Measurement>> {
    install(&[
        ("ns2", installed("ns")),
        ("time", Path::new("/usr/bin/time").is_file()),
        ("valgrind", installed("valgrind")),
    ])?;
    fs::create_dir_all(folder())?;
    println!("\nmeters: one connection each over one link, 300 s, one thread (best of {ROUNDS})");
    println!(
        "  {:<10}{:>10}{:>10}{:>12}{:>14}{:>12}{:>8}",
        "", "meters", "CPU s", "peak MB", "byte/meter", "packets", "loss"
    );
    let mut runs = Vec::new();
    for meters in METERS {
        runs.push(best("gridhaul", meters, |meters| on_link(gridhaul, meters, None))?);
    }
    println!("  with a link of {SUFFICIENT}, which suffices:");
    for meters in SUFFICIENT_METERS {
        let measure = |meters| on_link(gridhaul, meters, Some(SUFFICIENT));
        runs.push(best(SUFFICIENT, meters, measure)?);
    }
    for meters in NS2_METERS {
        runs.push(best("ns-2", meters, ns2)?);
    }
    write_table(&runs)?;
    let mut measurements = measurements(&runs);
    measurements.push(super::instructions(gridhaul, &instructions::METERS, INSTRUCTIONS)?);
    Ok(measurements)
}

fn best(
    program: &'static str,
    meters: u32,
    measure: impl Fn(u32) -> anyhow::Result<Run>,
) -> anyhow::Result<Run> {
    let mut best: Option<Run> = None;
    for _ in 0..ROUNDS {
        let run = measure(meters).with_context(|| format!("{program} with {meters} meters"))?;
        if best.is_none_or(|best| run.cpu_s < best.cpu_s) {
            best = Some(run);
        }
    }
    let run = best.context("there were no rounds")?;
    println!(
        "  {program:<10}{meters:>10}{:>10.2}{:>12.1}{:>14.0}{:>12.0}{:>8.3}",
        run.cpu_s,
        run.memory_mb,
        run.memory_mb * 1e6 / f64::from(meters),
        run.packets,
        run.loss
    );
    Ok(run)
}

/// A run of gridhaul, on a link with another rate if one is given.
fn on_link(gridhaul: &Path, meters: u32, rate: Option<&'static str>) -> anyhow::Result<Run> {
    let scenario = root().join("bench/meters/meters.toml");
    let mut command = vec![path_text(gridhaul)?, "run".into()];
    command.extend([path_text(&scenario)?, "--set".into(), format!("flow.reading.count={meters}")]);
    if let Some(rate) = rate {
        command.extend(["--set".into(), format!("link.way.both.rate={rate}")]);
    }
    command.extend(["--json", "--quiet", "--force", "--threads", "1", "--out"].map(String::from));
    command.push(path_text(&folder().join("answer"))?);
    let (printed, cpu_s, memory_kb) = timed(&command)?;
    let answer: Value = serde_json::from_str(&printed).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["links"][0]["metrics"];
    let mean = |name: &str| {
        let value = metrics[name]["mean"].as_f64();
        value.with_context(|| format!("no {name} in the answer"))
    };
    let (packets, loss) = (mean("packets_in_count")?, mean("loss_ratio")?);
    Ok(Run {
        program: rate.unwrap_or("gridhaul"),
        meters,
        cpu_s,
        memory_mb: mb(memory_kb),
        packets,
        loss,
    })
}

/// The same meters, except that messages are single instead of in bursts of one on average, because
/// the burst source of ns-2 rounds each burst up to a whole message.
fn ns2(meters: u32) -> anyhow::Result<Run> {
    let script = root().join("conformance/ns2/meters.tcl");
    let mut command = vec!["ns".into(), path_text(&script)?];
    command.extend([format!("meters={meters}")]);
    let numbers = ["congestion_control=Vegas", "rate_kbit=2000", "every=60.1", "spread=60"];
    command.extend(numbers.map(String::from));
    let (printed, cpu_s, memory_kb) = timed(&command)?;
    let cells: Vec<&str> = printed.trim().split(',').collect();
    let number = |index: usize| -> anyhow::Result<f64> {
        Ok(cells.get(index).context("too few columns")?.parse()?)
    };
    let (packets, dropped) = (number(12)?, number(13)?);
    let loss = dropped / packets.max(1.0);
    Ok(Run { program: "ns-2", meters, cpu_s, memory_mb: mb(memory_kb), packets, loss })
}

/// Writes the table as CSV and as a chart.
fn write_table(runs: &[Run]) -> anyhow::Result<()> {
    let mut table = String::from("program,meters,cpu_s,memory_byte\n");
    for run in runs {
        let bytes = run.memory_mb * 1e6;
        let _ = writeln!(table, "{},{},{:.2},{bytes:.0}", run.program, run.meters, run.cpu_s);
    }
    let (csv, svg) = (folder().join("scaling.csv"), folder().join("meters-scaling.svg"));
    fs::write(&csv, table)?;
    let mut example = cargo();
    example.args(["run", "--quiet", "--package", "gridhaul-report", "--example", "scaling", "--"]);
    process::run(example.arg(&csv).arg(&svg))
}

fn measurements(runs: &[Run]) -> Vec<Measurement> {
    let measured = |program, meters| {
        let run = runs.iter().find(|run| run.program == program && run.meters == meters);
        run.map_or((f64::INFINITY, f64::INFINITY), |run| (run.cpu_s, run.memory_mb))
    };
    let (region, million) = (measured("gridhaul", REGION), measured("gridhaul", MILLION));
    let sufficient = measured(SUFFICIENT, REGION);
    vec![
        Measurement::new("meters-400k-time", (region.0, 1, " s"), REGION_TIME),
        Measurement::new("meters-400k-memory", (region.1, 1, " MB"), REGION_MB),
        Measurement::new("meters-400k-sufficient-time", (sufficient.0, 1, " s"), SUFFICIENT_TIME),
        Measurement::new("meters-400k-sufficient-memory", (sufficient.1, 1, " MB"), SUFFICIENT_MB),
        Measurement::new("meters-million-memory", (million.1, 1, " MB"), MILLION_MB),
    ]
}

/// Converts the kernel's kB of 1024 bytes to MB of 10^6 bytes.
fn mb(kb: f64) -> f64 {
    kb * 1024.0 / 1e6
}

fn folder() -> PathBuf {
    target().join("bench-meters")
}
