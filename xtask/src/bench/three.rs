//! `cargo xtask bench three`: the same bulk flows on the simulator (profile `linux`) and on the kernel
//! of this machine, over the emulated networks of `bench/three/networks.toml`.
//!
//! Runs on the kernel take real time; twenty go on beside each other. Each is made with several
//! seeds: with loss the draws differ, and without it the kernel's own timing does. One that says of
//! itself that it was late is made anew. A figure holds if it is within its bar, or if the 95 % interval
//! of the difference allows it; what does not must stand in `bench/three/exceptions.toml` with its
//! reason.

use std::collections::VecDeque;
use std::fs;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, ensure};
use serde_json::Value;
use toml::Table;

use super::{Figure, text};
use crate::shell::{self, cargo, output, program, root, target};

/// Variants and how far goodput may be off.
const VARIANTS: [(&str, f64); 4] = [("reno", 0.1), ("cubic", 0.1), ("vegas", 0.1), ("bbr", 0.15)];
/// How far the number of segments that are sent again may be off: a share, or so many.
const REPEATED: (f64, f64) = (0.2, 2.0);

/// Runs on the kernel, and repeats of the simulator.
const KERNEL_RUNS: u32 = 5;
const SIMULATED: u32 = 30;
/// How often a run on the kernel is made that was late each time.
const TRIES: u32 = 4;
/// Student's t for 95 % with 4, 29 and 33 degrees of freedom: runs on the kernel, repeats of the
/// simulator, and both together.
const T: [f64; 3] = [2.776, 2.045, 2.035];
/// Runs on the kernel beside each other.
const BESIDE: usize = 20;

/// A network with a variant, and who answers.
#[derive(Debug, Clone)]
struct Job {
    cell: usize,
    on: &'static str,
    seed: u32,
    repeat: u32,
}

/// A mean, and the variance of one run.
#[derive(Debug, Clone, Copy)]
struct Estimate {
    mean: f64,
    variance: f64,
}

/// What is compared.
#[derive(Debug, Clone)]
struct Cell {
    network: Table,
    variant: &'static str,
    bar: f64,
}

/// Goodput and segments sent again of one run or more.
type Outcome = [Estimate; 2];

/// Measures, prints a table; the figures are the caller's to print.
pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    // What the kernel does in real time needs no release build.
    shell::run(cargo().args(["build", "--package", "gridhaul"]))?;
    let cells = cells()?;
    let mut jobs = VecDeque::new();
    for cell in 0..cells.len() {
        jobs.extend((1..=KERNEL_RUNS).map(|seed| Job { cell, on: "emu", seed, repeat: 1 }));
        jobs.push_back(Job { cell, on: "sim", seed: 1, repeat: SIMULATED });
    }
    println!("\nthree: {} flows, each by simulator and kernel; {} runs", cells.len(), jobs.len());
    let outcomes = work(&cells, jobs)?;
    let exceptions: Table =
        fs::read_to_string(root().join("bench/three/exceptions.toml"))?.parse()?;
    println!(
        "  {:<24}{:<7}{:>11}{:>11}{:>7}  {:<9}{:>8}{:>8}{:>7}  verdict",
        "network",
        "variant",
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
    for (cell, (simulated, kernel)) in cells.iter().zip(&outcomes) {
        let name = value(&cell.network, "name")?;
        let mut words = Vec::new();
        for (index, metric) in ["goodput", "retransmissions"].into_iter().enumerate() {
            let least = if index == 0 { 0.0 } else { REPEATED.1 };
            let share = if index == 0 { cell.bar } else { REPEATED.0 };
            let holds = agrees(simulated[index], kernel[index], share, least);
            let key = format!("{name} {} {metric}", cell.variant);
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
            cell.variant,
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

/// Every network with every variant. Vegas is our own: each run brings it into the kernel.
fn cells() -> anyhow::Result<Vec<Cell>> {
    let networks = root().join("bench/three/networks.toml");
    let networks: Table = fs::read_to_string(networks)?.parse()?;
    let networks = networks["network"].as_array().context("no networks")?;
    let mut cells = Vec::new();
    for (variant, bar) in VARIANTS {
        for network in networks {
            let network = network.as_table().context("a network is a table")?.clone();
            cells.push(Cell { network, variant, bar });
        }
    }
    Ok(cells)
}

/// Does all jobs; returns what the simulator and what the kernel says about each cell.
fn work(cells: &[Cell], jobs: VecDeque<Job>) -> anyhow::Result<Vec<(Outcome, Outcome)>> {
    let queue = Mutex::new(jobs);
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                    let Some(job) = job else { break };
                    let outcome = answer(&cells[job.cell], &job);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((job, outcome));
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut simulated = vec![None; cells.len()];
    let mut kernel: Vec<Vec<Outcome>> = vec![Vec::new(); cells.len()];
    for (job, outcome) in done {
        let outcome = outcome.with_context(|| format!("{job:?}"))?;
        match job.on {
            "sim" => simulated[job.cell] = Some(outcome),
            _ => kernel[job.cell].push(outcome),
        }
    }
    let pairs = simulated.into_iter().zip(&kernel);
    pairs.map(|(sim, runs)| Ok((sim.context("no simulation")?, combine(runs)))).collect()
}

/// One call of gridhaul, or more if it was late.
fn answer(cell: &Cell, job: &Job) -> anyhow::Result<Outcome> {
    for _ in 1..TRIES {
        if let (outcome, true) = ask(cell, job)? {
            return Ok(outcome);
        }
    }
    let (outcome, trusted) = ask(cell, job)?;
    if !trusted {
        println!("  late each time: {} {job:?}", value(&cell.network, "name")?);
    }
    Ok(outcome)
}

/// One call, and whether the answer says that it can be trusted.
fn ask(cell: &Cell, job: &Job) -> anyhow::Result<(Outcome, bool)> {
    let network = &cell.network;
    let half = |key: &str| -> anyhow::Result<String> {
        let (number, unit) = value(network, key)?.split_once(' ').context("a number and a unit")?;
        Ok(format!("{} {unit}", number.parse::<f64>()? / 2.0))
    };
    let delay = half("rtt")?;
    let mut settings = vec![
        ("link.way.forward.rate", value(network, "rate")?),
        ("link.way.forward.delay", &delay),
        ("link.way.backward.delay", &delay),
        ("link.way.forward.queue", value(network, "queue")?),
        ("link.way.forward.loss.bernoulli", value(network, "loss")?),
        ("stack.linux.mss", value(network, "mss")?),
        ("stack.linux.variant", cell.variant),
        ("duration", value(network, "duration")?),
    ];
    if network.contains_key("delayed_ack") {
        settings.push(("stack.linux.delayed_ack", value(network, "delayed_ack")?));
    }
    let (name, variant) = (value(network, "name")?, cell.variant);
    let folder = target().join("bench-three");
    let folder = folder.join(format!("{}-{name}-{variant}-{}", job.on, job.seed));
    let mut command = program(&text(&target().join("debug/gridhaul"))?);
    command.args(["run", "bench/three/bulk.toml", "--json", "--quiet", "--force"]);
    command.args(["--on", job.on, "--out", &text(&folder)?]);
    command.args(["--seed", &job.seed.to_string(), "--repeat", &job.repeat.to_string()]);
    for (key, value) in settings {
        command.args(["--set", &format!("{key}={value}")]);
    }
    let answer: Value =
        serde_json::from_str(&output(&mut command)?).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    let estimate = |name: &str| -> anyhow::Result<Estimate> {
        let mean = metrics[name]["mean"].as_f64().with_context(|| format!("no {name}"))?;
        let half = metrics[name]["ci95"].as_f64().unwrap_or(0.0);
        Ok(Estimate { mean, variance: (half / T[1]).powi(2) * f64::from(job.repeat) })
    };
    let trusted = !answer["warnings"].to_string().contains("not trustworthy");
    Ok(([estimate("goodput_bit_per_s")?, estimate("retransmissions_count")?], trusted))
}

/// Mean and variance of single runs.
fn combine(runs: &[Outcome]) -> Outcome {
    let count = runs.len() as f64;
    [0, 1].map(|index| {
        let mean = runs.iter().map(|run| run[index].mean).sum::<f64>() / count;
        let squares: f64 = runs.iter().map(|run| (run[index].mean - mean).powi(2)).sum();
        Estimate { mean, variance: squares / (count - 1.0) }
    })
}

/// Whether the simulator agrees with the kernel: within a share of what the kernel says, within
/// `least`, or within what chance makes of the difference.
fn agrees(simulated: Estimate, kernel: Estimate, share: f64, least: f64) -> bool {
    let off = (simulated.mean - kernel.mean).abs();
    off <= (share * kernel.mean).max(least).max(half_of_difference(simulated, kernel))
}

/// Half of the 95 % interval of the difference. Five runs that are all the same say little where the
/// thirty repeats scatter, as where a single packet at the start decides: then the variance of both
/// together counts, as it is if they are draws of the same; else that of each side.
fn half_of_difference(simulated: Estimate, kernel: Estimate) -> f64 {
    let (repeats, runs) = (f64::from(SIMULATED), f64::from(KERNEL_RUNS));
    let apart = (T[1] * (simulated.variance / repeats).sqrt())
        .hypot(T[0] * (kernel.variance / runs).sqrt());
    let pooled = ((repeats - 1.0) * simulated.variance + (runs - 1.0) * kernel.variance)
        / (repeats + runs - 2.0);
    apart.max(T[2] * (pooled * (1.0 / repeats + 1.0 / runs)).sqrt())
}

fn value<'a>(network: &'a Table, key: &str) -> anyhow::Result<&'a str> {
    let value = network.get(key).and_then(toml::Value::as_str);
    let value = value.with_context(|| format!("a network without {key}"))?;
    ensure!(!value.is_empty(), "a network with an empty {key}");
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_excuse_what_draws_explain() {
        let exact = |mean| Estimate { mean, variance: 0.0 };
        assert!(agrees(exact(109.0), exact(100.0), 0.1, 0.0));
        assert!(!agrees(exact(111.0), exact(100.0), 0.1, 0.0));
        assert!(agrees(exact(2.0), exact(0.0), 0.2, 2.0), "small counts");
        // Half of the interval of five runs with variance 100 is 2.776 * 10 / sqrt(5) = 12.4.
        let wide = Estimate { mean: 100.0, variance: 100.0 };
        assert!(agrees(exact(112.0), wide, 0.1, 0.0));
        assert!(!agrees(exact(113.0), wide, 0.1, 0.0));
        // Repeats that scatter by 10 leave five equal runs 2.035 * 9.4 * sqrt(1 / 30 + 1 / 5) = 9.2.
        let half = half_of_difference(wide, exact(91.0));
        assert!((half - 9.215).abs() < 0.01, "{half}");
        let runs = [1.0, 2.0, 3.0].map(|mean| [exact(mean); 2]);
        let Estimate { mean, variance } = combine(&runs)[0];
        assert_eq!((mean, variance), (2.0, 1.0));
    }
}
