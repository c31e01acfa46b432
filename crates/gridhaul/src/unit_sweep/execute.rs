//! Runs the missing units of a sweep on several threads.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_scenario::backend::Progress;

use super::part_runner::PartRunner;
use super::planner::{Planner, Unit, runs_per_part};
use super::store::{self, UnitRun};
use crate::error::Error;

/// The threads that run units.
pub(super) struct Workers<'a> {
    planner: Mutex<Planner<'a>>,
    /// Largest number of runs of a part.
    runs_per_part: u64,
    folder: &'a Path,
    runner: PartRunner<'a>,
}

/// Longest time until finished runs of a unit are written: the estimate of a unit's length may be
/// wrong by a factor of ten.
const WRITE_AFTER: Duration = Duration::from_secs(60);

impl<'a> Workers<'a> {
    pub(super) fn new(planner: Planner<'a>, folder: &'a Path, progress: &'a dyn Progress) -> Self {
        let runs_per_part = runs_per_part(&planner.rule);
        let runs = planner.count().saturating_mul(runs_per_part);
        let runner = PartRunner::new(planner.rule, runs, progress);
        Self { planner: Mutex::new(planner), runs_per_part, folder, runner }
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
        Ok(self.runner.finished())
    }

    fn work(&self) -> Result<(), Error> {
        while !self.runner.has_to_end() {
            let result = match self.next_unit() {
                Ok(None) => return Ok(()),
                Ok(Some(unit)) => self.run_unit(unit),
                Err(error) => Err(error),
            };
            if result.is_err() {
                self.runner.fail();
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
        let unit = planner.next_unit().map_err(Error::Input)?;
        // Parts that were not planned are stored, or belong to another shard.
        let skipped = planner.take_skipped();
        drop(planner);
        self.runner.advance(1000 * skipped * self.runs_per_part);
        Ok(unit)
    }

    /// Runs a unit and writes its results; after an interruption, those that are finished.
    fn run_unit(&self, unit: Unit) -> Result<(), Error> {
        let mut results = Results::new(self.folder);
        let mut result = Ok(());
        for part in unit.parts {
            if self.runner.has_to_end() {
                break;
            }
            match self.runner.run(part, &mut |run| results.add(run)) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        results.write()?;
        result
    }
}

/// Finished runs of a unit that are not written yet.
struct Results<'a> {
    folder: &'a Path,
    runs: Vec<UnitRun>,
    written: Instant,
}

impl<'a> Results<'a> {
    #[expect(clippy::disallowed_methods, reason = "the time of a unit, not of a simulation")]
    fn new(folder: &'a Path) -> Self {
        Self { folder, runs: Vec::new(), written: Instant::now() }
    }

    /// Adds a run, and writes all if the last ones were written long ago.
    #[expect(clippy::disallowed_methods, reason = "the time of a unit, not of a simulation")]
    fn add(&mut self, run: UnitRun) -> Result<(), Error> {
        self.runs.push(run);
        if self.written.elapsed() > WRITE_AFTER {
            self.write()?;
            self.written = Instant::now();
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), Error> {
        store::write(self.folder, &std::mem::take(&mut self.runs)).map_err(Error::Input)
    }
}
