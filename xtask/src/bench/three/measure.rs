//! The runs: first those of the simulator one after another, because each uses all processors; then
//! those on the kernel in real time, as many concurrently as a small machine can process. A run
//! that reports that it was late is tried again, and finally does not count.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::agreement::{Estimate, combine, student};
use super::{Cell, Outcome, value};
use crate::bench::path_text;
use crate::process::{output, program, target};

/// Replications of the simulator.
pub(super) const REPLICATIONS: u32 = 30;
/// Runs on the kernel, and the least number that must not be late.
const RUNS: u32 = 5;
const RUNS_MIN: usize = 3;
/// Largest number of tries of a run on the kernel that is late each time.
const TRIES: u32 = 4;
/// Concurrent runs, and the largest sum of their bottleneck rates.
const CONCURRENT_RUNS: usize = 20;
const TOTAL_KBIT_PER_S: u64 = 120_000;
/// Number of runs between two progress messages.
const PROGRESS_INTERVAL: usize = 40;

/// A run on the kernel.
#[derive(Debug, Clone, Copy)]
struct Job {
    cell: usize,
    seed: u32,
}

/// A semaphore of the rate that the machine can still process.
struct RateSemaphore {
    free: Mutex<u64>,
    released: Condvar,
}

/// Results of the simulator for each cell.
pub(super) fn simulate(cells: &[Cell]) -> anyhow::Result<Vec<Outcome>> {
    cells.iter().map(|cell| Ok(run_once(cell, "sim", 1, REPLICATIONS)?.0)).collect()
}

/// Results of the kernel for each cell.
pub(super) fn run_on_kernel(cells: &[Cell]) -> anyhow::Result<Vec<Outcome>> {
    let jobs = (0..cells.len()).flat_map(|cell| (1..=RUNS).map(move |seed| Job { cell, seed }));
    let queue: Mutex<VecDeque<Job>> = Mutex::new(jobs.collect());
    let all = lock(&queue).len();
    let (done, semaphore) = (Mutex::new(Vec::new()), RateSemaphore::new());
    thread::scope(|scope| {
        for _ in 0..CONCURRENT_RUNS {
            scope.spawn(|| {
                loop {
                    let Some(job) = lock(&queue).pop_front() else { break };
                    let outcome = run_until_timely(&cells[job.cell], job, &semaphore);
                    let mut done = lock(&done);
                    done.push((job, outcome));
                    if done.len().is_multiple_of(PROGRESS_INTERVAL) {
                        println!("  {} of {all} runs on the kernel", done.len());
                    }
                }
            });
        }
    });
    let mut runs: Vec<Vec<Outcome>> = vec![Vec::new(); cells.len()];
    for (job, outcome) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        runs[job.cell].extend(outcome.with_context(|| format!("{job:?}"))?);
    }
    let cells = cells.iter().zip(&runs);
    cells
        .map(|(cell, runs)| {
            let name = value(&cell.network, "name")?;
            ensure!(
                runs.len() >= RUNS_MIN,
                "{name} {}: {} of {RUNS} runs on the kernel were late {TRIES} times: this machine \
                 is too busy",
                cell.congestion_control,
                RUNS as usize - runs.len()
            );
            Ok(combine(runs))
        })
        .collect()
}

/// Runs a job, again if the run was late. Returns `None` if it was late each time.
fn run_until_timely(
    cell: &Cell,
    job: Job,
    semaphore: &RateSemaphore,
) -> anyhow::Result<Option<Outcome>> {
    let rate_kbit_per_s = kbit_per_s(value(&cell.network, "rate")?)?;
    for _ in 0..TRIES {
        semaphore.acquire(rate_kbit_per_s);
        let result = run_once(cell, "emu", job.seed, 1);
        semaphore.release(rate_kbit_per_s);
        if let (outcome, true) = result? {
            return Ok(Some(outcome));
        }
    }
    println!(
        "  late in each try: {} {} {}",
        value(&cell.network, "name")?,
        cell.congestion_control,
        job.seed
    );
    Ok(None)
}

fn kbit_per_s(rate: &str) -> anyhow::Result<u64> {
    match rate.split_once(' ') {
        Some((number, "kbit/s")) => Ok(number.parse()?),
        Some((number, "Mbit/s")) => Ok(number.parse::<u64>()? * 1000),
        _ => anyhow::bail!("unknown rate {rate:?}; expected a rate in kbit/s or Mbit/s"),
    }
}

impl RateSemaphore {
    fn new() -> Self {
        Self { free: Mutex::new(TOTAL_KBIT_PER_S), released: Condvar::new() }
    }

    fn acquire(&self, rate_kbit_per_s: u64) {
        let mut free = lock(&self.free);
        while *free < rate_kbit_per_s {
            free = self.released.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= rate_kbit_per_s;
    }

    fn release(&self, rate_kbit_per_s: u64) {
        *lock(&self.free) += rate_kbit_per_s;
        self.released.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs gridhaul once. Returns the results, and whether the answer reports them as trustworthy.
fn run_once(
    cell: &Cell,
    on: &str,
    seed: u32,
    replications: u32,
) -> anyhow::Result<(Outcome, bool)> {
    let network = &cell.network;
    let half = |key: &str| -> anyhow::Result<String> {
        let (number, unit) =
            value(network, key)?.split_once(' ').context("expected a number and a unit")?;
        Ok(format!("{} {unit}", number.parse::<f64>()? / 2.0))
    };
    let delay = half("rtt")?;
    let mut settings = vec![
        ("link.way.forward.rate", value(network, "rate")?),
        ("link.way.forward.delay", &delay),
        ("link.way.reverse.delay", &delay),
        ("link.way.forward.queue", value(network, "queue")?),
        ("link.way.forward.loss.bernoulli", value(network, "loss")?),
        ("stack.linux.mss", value(network, "mss")?),
        ("stack.linux.congestion_control", cell.congestion_control),
        ("duration", value(network, "duration")?),
    ];
    if network.contains_key("delayed_ack") {
        settings.push(("stack.linux.delayed_ack", value(network, "delayed_ack")?));
    }
    let (name, congestion_control) = (value(network, "name")?, cell.congestion_control);
    let folder = target().join("bench-three");
    let folder = folder.join(format!("{on}-{name}-{congestion_control}-{seed}"));
    let mut command = program(&path_text(&target().join("debug/gridhaul"))?);
    command.args(["run", "bench/three/bulk.toml", "--json", "--quiet", "--force"]);
    command.args(["--on", on, "--out", &path_text(&folder)?]);
    command.args(["--seed", &seed.to_string(), "--replications", &replications.to_string()]);
    for (key, value) in settings {
        command.args(["--set", &format!("{key}={value}")]);
    }
    let answer: Value =
        serde_json::from_str(&output(&mut command)?).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    let estimate = |name: &str| -> anyhow::Result<Estimate> {
        let mean = metrics[name]["mean"].as_f64().with_context(|| format!("no {name}"))?;
        let half = metrics[name]["ci95"].as_f64().unwrap_or(0.0);
        let variance = (half / student(REPLICATIONS - 1)).powi(2) * f64::from(replications);
        Ok(Estimate { mean, variance, runs: replications })
    };
    let trusted = !answer["warnings"].to_string().contains("not trustworthy");
    Ok(([estimate("goodput_bit_per_s")?, estimate("retransmissions_count")?], trusted))
}
