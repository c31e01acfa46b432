//! Runs the missing units of a sweep on several threads.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_scenario::backend::Progress;
use gridhaul_sim::Sim;

use super::planner::{PlannedRun, Planner, Unit};
use super::store::{self, UnitRun};
use crate::error::Error;

/// The threads that run units.
pub(super) struct Workers<'a> {
    planner: Mutex<Planner<'a>>,
    /// Thousandths of all runs.
    total: u64,
    folder: &'a Path,
    progress: &'a dyn Progress,
    /// Completed thousandths of the runs that this process has planned, and those of earlier or
    /// other processes.
    done: AtomicU64,
    /// Completed runs.
    finished: AtomicU64,
    failed: AtomicBool,
}

/// Longest time until finished runs of a unit are written: the estimate of a unit's length may be
/// wrong by a factor of ten.
const WRITE_AFTER: Duration = Duration::from_secs(60);

/// A run that needs at most this time more is finished after a request to end the program. Cluster
/// schedulers send SIGTERM 30 s before they end a process.
const FINISH_WITHIN: Duration = Duration::from_secs(20);

impl<'a> Workers<'a> {
    pub(super) fn new(planner: Planner<'a>, folder: &'a Path, progress: &'a dyn Progress) -> Self {
        Self {
            total: planner.count().saturating_mul(1000),
            planner: Mutex::new(planner),
            folder,
            progress,
            done: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        }
    }

    /// Runs units until none is missing, one fails, or the user interrupts. Returns the number of
    /// finished runs.
    ///
    /// # Errors
    /// The first run that failed, or a file that cannot be written.
    pub(super) fn run(&self, threads: usize) -> Result<u64, Error> {
        let results = thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| self.work())).collect();
            let join = |worker: thread::ScopedJoinHandle<'_, Result<(), Error>>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            workers.into_iter().map(join).collect::<Vec<_>>()
        });
        results.into_iter().collect::<Result<Vec<()>, Error>>()?;
        Ok(self.finished.load(Ordering::Relaxed))
    }

    fn work(&self) -> Result<(), Error> {
        while !self.has_to_end() {
            let result = match self.next_unit() {
                Ok(None) => return Ok(()),
                Ok(Some(unit)) => self.run_unit(unit),
                Err(error) => Err(error),
            };
            if result.is_err() {
                self.failed.store(true, Ordering::Relaxed);
                return result;
            }
        }
        Ok(())
    }

    fn planner(&self) -> MutexGuard<'_, Planner<'a>> {
        self.planner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_unit(&self) -> Result<Option<Unit>, Error> {
        let mut planner = self.planner();
        let before = planner.passed();
        let unit = planner.next_unit().map_err(Error::Input)?;
        let planned = unit.as_ref().map_or(0, |unit| unit.runs.len() as u64);
        // Runs that were not planned are stored, or belong to another shard.
        let skipped = (planner.passed() - before).saturating_sub(planned);
        drop(planner);
        self.advance(1000 * skipped);
        Ok(unit)
    }

    fn has_to_end(&self) -> bool {
        self.progress.is_interrupted() || self.failed.load(Ordering::Relaxed)
    }

    fn advance(&self, thousandths: u64) {
        let done = self.done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
        self.progress.advance(done, self.total);
    }

    /// Runs a unit and writes its results; after an interruption, those that are finished.
    #[expect(clippy::disallowed_methods, reason = "the time of a unit, not of a simulation")]
    fn run_unit(&self, unit: Unit) -> Result<(), Error> {
        let mut finished = Vec::new();
        let mut written = Instant::now();
        let mut result = Ok(());
        for planned in unit.runs {
            if self.has_to_end() {
                break;
            }
            match self.run_once(&planned) {
                Ok(Some(run)) => finished.push(run),
                Ok(None) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            if written.elapsed() > WRITE_AFTER {
                store::write(self.folder, &std::mem::take(&mut finished)).map_err(Error::Input)?;
                written = Instant::now();
            }
        }
        store::write(self.folder, &finished).map_err(Error::Input)?;
        result
    }

    /// One run; `None` if it was interrupted.
    #[expect(clippy::disallowed_methods, reason = "the time of a run, not of a simulation")]
    fn run_once(&self, planned: &PlannedRun) -> Result<Option<UnitRun>, Error> {
        let PlannedRun { scenario, key, replication } = planned;
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
        let run = Sim::replication(scenario, *replication, self.progress, continues)?;
        let Some(run) = run else { return Ok(None) };
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(Some(UnitRun { point: *key, replication: *replication, run }))
    }
}
