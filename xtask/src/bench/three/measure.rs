//! The runs: those of the simulator one behind the other, as each takes all processors; then those on
//! the kernel in real time, as many beside each other as a small machine keeps up with. One that says of
//! itself that it was late is made anew, and in the end does not count.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::judge::{Estimate, combine, student};
use super::{Cell, Outcome, value};
use crate::bench::text;
use crate::shell::{output, program, target};

/// Repeats of the simulator.
pub(super) const REPEATS: u32 = 30;
/// Runs on the kernel, and how many must not be late.
const RUNS: u32 = 5;
const RUNS_LEAST: usize = 3;
/// How often a run on the kernel is made that was late each time.
const TRIES: u32 = 4;
/// Runs beside each other, and how much their bottlenecks carry together.
const BESIDE: usize = 20;
const CARRIED_KBIT_PER_S: u64 = 120_000;
/// After so many runs it is told how far they have come.
const TOLD: usize = 40;

/// A run on the kernel.
#[derive(Debug, Clone, Copy)]
struct Job {
    cell: usize,
    seed: u32,
}

/// What the machine can carry besides what it does.
struct Room {
    free: Mutex<u64>,
    more: Condvar,
}

/// What the simulator says about each cell.
pub(super) fn simulate(cells: &[Cell]) -> anyhow::Result<Vec<Outcome>> {
    cells.iter().map(|cell| Ok(ask(cell, "sim", 1, REPEATS)?.0)).collect()
}

/// What the kernel says about each cell.
pub(super) fn run_on_kernel(cells: &[Cell]) -> anyhow::Result<Vec<Outcome>> {
    let jobs = (0..cells.len()).flat_map(|cell| (1..=RUNS).map(move |seed| Job { cell, seed }));
    let queue: Mutex<VecDeque<Job>> = Mutex::new(jobs.collect());
    let all = lock(&queue).len();
    let (done, room) = (Mutex::new(Vec::new()), Room::new());
    thread::scope(|scope| {
        for _ in 0..BESIDE {
            scope.spawn(|| {
                loop {
                    let Some(job) = lock(&queue).pop_front() else { break };
                    let outcome = answer(&cells[job.cell], job, &room);
                    let mut done = lock(&done);
                    done.push((job, outcome));
                    if done.len().is_multiple_of(TOLD) {
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
                runs.len() >= RUNS_LEAST,
                "{name} {}: {} of {RUNS} runs on the kernel were late {TRIES} times: this machine is \
                 too busy",
                cell.congestion_control,
                RUNS as usize - runs.len()
            );
            Ok(combine(runs))
        })
        .collect()
}

/// One run, made again if it was late; nothing if it was late each time.
fn answer(cell: &Cell, job: Job, room: &Room) -> anyhow::Result<Option<Outcome>> {
    let needs = kbit_per_s(value(&cell.network, "rate")?)?;
    for _ in 0..TRIES {
        room.take(needs);
        let answer = ask(cell, "emu", job.seed, 1);
        room.give_back(needs);
        if let (outcome, true) = answer? {
            return Ok(Some(outcome));
        }
    }
    println!(
        "  late each time: {} {} {}",
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
        _ => anyhow::bail!("a rate of {rate}: kbit/s or Mbit/s is expected"),
    }
}

impl Room {
    fn new() -> Self {
        Self { free: Mutex::new(CARRIED_KBIT_PER_S), more: Condvar::new() }
    }

    fn take(&self, needs: u64) {
        let mut free = lock(&self.free);
        while *free < needs {
            free = self.more.wait(free).unwrap_or_else(PoisonError::into_inner);
        }
        *free -= needs;
    }

    fn give_back(&self, needs: u64) {
        *lock(&self.free) += needs;
        self.more.notify_all();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One call, and whether the answer says that it can be trusted.
fn ask(cell: &Cell, on: &str, seed: u32, replications: u32) -> anyhow::Result<(Outcome, bool)> {
    let network = &cell.network;
    let half = |key: &str| -> anyhow::Result<String> {
        let (number, unit) = value(network, key)?.split_once(' ').context("a number and a unit")?;
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
    let mut command = program(&text(&target().join("debug/gridhaul"))?);
    command.args(["run", "bench/three/bulk.toml", "--json", "--quiet", "--force"]);
    command.args(["--on", on, "--out", &text(&folder)?]);
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
        let variance = (half / student(REPEATS - 1)).powi(2) * f64::from(replications);
        Ok(Estimate { mean, variance, runs: replications })
    };
    let trusted = !answer["warnings"].to_string().contains("not trustworthy");
    Ok(([estimate("goodput_bit_per_s")?, estimate("retransmissions_count")?], trusted))
}
