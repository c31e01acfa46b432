//! The runs: first those of the simulator one after another, because each uses all processors; then
//! those on the kernel in real time, as many concurrently as a small machine can process. A run
//! that reports that it was late is tried again, and finally does not count.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::Context;
use serde_json::Value;

use super::estimate::{Estimate, combine, student};
use super::{Case, METRICS, Outcome};
use crate::bench::path_text;
use crate::process::{output, program, target};

/// Replications of the simulator.
pub(super) const REPLICATIONS: u32 = 30;
/// Runs on the kernel, and the least number that must not be late.
const RUNS: u32 = 5;
const RUNS_MIN: usize = 3;
/// Largest number of tries of a run on the kernel that is late each time.
const TRIES: u32 = 4;
/// Concurrent runs, and the largest sum of the rates of their links.
const CONCURRENT_RUNS: usize = 20;
const TOTAL_KBIT_PER_S: u64 = 120_000;
/// Number of runs between two progress messages.
const PROGRESS_INTERVAL: usize = 40;

/// A run on the kernel.
#[derive(Debug, Clone, Copy)]
struct Job {
    case: usize,
    seed: u32,
}

/// A semaphore of the rate that the machine can still process.
struct RateSemaphore {
    free: Mutex<u64>,
    released: Condvar,
}

/// Results of the simulator for each case.
pub(super) fn simulate(bench: &str, cases: &[Case]) -> anyhow::Result<Vec<Outcome>> {
    cases.iter().map(|case| Ok(run_once(bench, case, "sim", 1, REPLICATIONS)?.0)).collect()
}

/// Results of the kernel for each case; `None` if too few runs were timely.
pub(super) fn run_on_kernel(bench: &str, cases: &[Case]) -> anyhow::Result<Vec<Option<Outcome>>> {
    let jobs = (0..cases.len()).flat_map(|case| (1..=RUNS).map(move |seed| Job { case, seed }));
    let queue: Mutex<VecDeque<Job>> = Mutex::new(jobs.collect());
    let all = lock(&queue).len();
    let (done, semaphore) = (Mutex::new(Vec::new()), RateSemaphore::new());
    thread::scope(|scope| {
        for _ in 0..CONCURRENT_RUNS {
            scope.spawn(|| {
                loop {
                    let Some(job) = lock(&queue).pop_front() else { break };
                    let outcome = run_until_timely(bench, &cases[job.case], job, &semaphore);
                    let mut done = lock(&done);
                    done.push((job, outcome));
                    if done.len().is_multiple_of(PROGRESS_INTERVAL) {
                        println!("  {} of {all} runs on the kernel", done.len());
                    }
                }
            });
        }
    });
    let mut runs: Vec<Vec<Outcome>> = vec![Vec::new(); cases.len()];
    for (job, outcome) in done.into_inner().unwrap_or_else(PoisonError::into_inner) {
        runs[job.case].extend(outcome.with_context(|| format!("{job:?}"))?);
    }
    Ok(runs.iter().map(|runs| (runs.len() >= RUNS_MIN).then(|| combine(runs))).collect())
}

/// Runs a job, again if the run was late. Returns `None` if it was late each time.
fn run_until_timely(
    bench: &str,
    case: &Case,
    job: Job,
    semaphore: &RateSemaphore,
) -> anyhow::Result<Option<Outcome>> {
    let rate_kbit_per_s = case.load_kbit_per_s.min(TOTAL_KBIT_PER_S);
    for _ in 0..TRIES {
        semaphore.acquire(rate_kbit_per_s);
        let result = run_once(bench, case, "emu", job.seed, 1);
        semaphore.release(rate_kbit_per_s);
        if let (outcome, true) = result? {
            return Ok(Some(outcome));
        }
    }
    println!("  late in each try: {} {}", case.key, job.seed);
    Ok(None)
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
    bench: &str,
    case: &Case,
    on: &str,
    seed: u32,
    replications: u32,
) -> anyhow::Result<(Outcome, bool)> {
    let folder = target().join(format!("bench-{bench}"));
    let folder = folder.join(format!("{on}-{}-{seed}", case.key.replace([' ', '/'], "-")));
    let mut command = program(&path_text(&target().join("debug/gridhaul"))?);
    command.args(["run", &case.scenario, "--json", "--quiet", "--force"]);
    command.args(["--on", on, "--out", &path_text(&folder)?]);
    command.args(["--seed", &seed.to_string(), "--replications", &replications.to_string()]);
    for (key, value) in &case.settings {
        command.args(["--set", &format!("{key}={value}")]);
    }
    let answer: Value =
        serde_json::from_str(&output(&mut command)?).context("the answer is not JSON")?;
    let metrics = &answer["points"][0]["flows"][0]["metrics"];
    let estimate = |name: &str| {
        let mean = metrics[name]["mean"].as_f64()?;
        let half = metrics[name]["ci95"].as_f64().unwrap_or(0.0);
        let variance = (half / student(REPLICATIONS - 1)).powi(2) * f64::from(replications);
        Some(Estimate { mean, variance, runs: replications })
    };
    let outcome = METRICS.map(|metric| estimate(metric.column));
    outcome[0].with_context(|| format!("the answer has no {}", METRICS[0].column))?;
    let trusted = !answer["warnings"].to_string().contains("not trustworthy");
    Ok((outcome, trusted))
}
