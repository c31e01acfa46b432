//! Runs the missing replications of a part of a sweep.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gridhaul_scenario::answer::{Run, StoppingRule};
use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

use super::parts::{PlannedPart, PlannedRuns};
use super::unit_file::UnitRun;
use crate::error::Error;

/// Runs parts, on any number of threads, and reports the progress of all.
pub(super) struct PartRunner<'a> {
    rule: StoppingRule,
    /// Thousandths of all runs.
    total: u64,
    progress: &'a dyn Progress,
    /// Completed thousandths of the runs of this process, and those of earlier or other processes.
    done: AtomicU64,
    /// Completed runs.
    finished: AtomicU64,
    failed: AtomicBool,
}

/// Takes the finished runs of a part.
pub(super) type Take<'t> = &'t mut dyn FnMut(UnitRun) -> Result<(), Error>;

/// A run that needs at most this time more is finished after a request to end the program. Cluster
/// schedulers send SIGTERM 30 s before they end a process.
const FINISH_WITHIN: Duration = Duration::from_secs(20);

impl<'a> PartRunner<'a> {
    /// A runner of at most so many runs.
    pub(super) const fn new(rule: StoppingRule, runs: u64, progress: &'a dyn Progress) -> Self {
        Self {
            rule,
            total: runs.saturating_mul(1000),
            progress,
            done: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Number of finished runs.
    pub(super) fn finished(&self) -> u64 {
        self.finished.load(Ordering::Relaxed)
    }

    /// Ends the runs of all threads, because one has failed.
    pub(super) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_to_end(&self) -> bool {
        self.progress.is_interrupted() || self.failed.load(Ordering::Relaxed)
    }

    /// Reports that so many thousandths of runs are completed.
    pub(super) fn advance(&self, thousandths: u64) {
        let done = self.done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
        self.progress.advance(done, self.total);
    }

    /// Runs a part. Returns whether it was finished: false after an interruption.
    ///
    /// # Errors
    /// A run that failed, or a result that cannot be taken.
    pub(super) fn run(&self, part: PlannedPart, take: Take<'_>) -> Result<bool, Error> {
        let PlannedPart { scenario, key, runs, .. } = part;
        let mut rows = match runs {
            PlannedRuns::One(replication) => {
                let Some(run) = self.run_once(&scenario, replication)? else { return Ok(false) };
                take(UnitRun { point: key, replication, run })?;
                return Ok(true);
            }
            PlannedRuns::Rest(stored) => stored,
        };
        self.advance(1000 * rows.len() as u64);
        loop {
            if let Some(count) = self.rule.complete(&rows) {
                let spared = self.rule.replications().max().saturating_sub(count);
                self.advance(1000 * u64::from(spared));
                return Ok(true);
            }
            if self.has_to_end() {
                return Ok(false);
            }
            let replication = rows.len() as u32;
            let Some(run) = self.run_once(&scenario, replication)? else { return Ok(false) };
            rows.push(run.rows.deciding());
            take(UnitRun { point: key, replication, run })?;
        }
    }

    /// One run; `None` if it was interrupted.
    #[expect(clippy::disallowed_methods, reason = "the time of a run, not of a simulation")]
    fn run_once(&self, scenario: &Scenario, replication: u32) -> Result<Option<Run>, Error> {
        let started = Instant::now();
        let reported = AtomicU64::new(0);
        let continues = |thousandths: u64| {
            let before = reported.swap(thousandths, Ordering::Relaxed);
            if thousandths > before {
                self.advance(thousandths - before);
            }
            !self.has_to_end() || {
                let elapsed = started.elapsed();
                let rest = (1000 - thousandths.min(1000)) as f64 / thousandths.max(1) as f64;
                elapsed.mul_f64(rest.min(1e6)) <= FINISH_WITHIN
            }
        };
        let run = Sim::replication(scenario, replication, self.progress, continues)?;
        if run.is_some() {
            self.finished.fetch_add(1, Ordering::Relaxed);
        }
        Ok(run)
    }
}
