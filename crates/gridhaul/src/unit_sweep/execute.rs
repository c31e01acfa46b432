//! Runs the missing units of a sweep on several threads.

use std::mem;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_scenario::backend::Progress;

use super::part_runner::PartRunner;
use super::parts::{PartBuilder, runs_per_part};
use super::planner::Planner;
use super::unit_file::{self, UnitRun};
use crate::error::Error;

/// The threads that run units.
pub(super) struct Workers<'a> {
    planner: Planner<'a>,
    /// Largest number of runs of a part.
    runs_per_part: u64,
    folder: &'a Path,
    runner: PartRunner<'a>,
}

/// Longest time until finished runs of a unit are written: the estimate of a unit's length may be
/// wrong by a factor of ten.
const WRITE_AFTER: Duration = Duration::from_secs(60);

/// Largest number of runs of a unit, whose results are in memory until they are written.
const UNIT_RUNS_MAX: usize = 10_000;

/// Estimated length of the first unit of a thread. Each further one is twice as long until units
/// have their full length, so that the beginning of a large sweep is stored soon.
const FIRST_UNIT_SECONDS: f64 = 0.1;

impl<'a> Workers<'a> {
    pub(super) fn new(planner: Planner<'a>, folder: &'a Path, progress: &'a dyn Progress) -> Self {
        let runs_per_part = runs_per_part(&planner.parts.rule);
        let runs = planner.parts.count().saturating_mul(runs_per_part);
        let runner = PartRunner::new(planner.parts.rule, runs, progress);
        Self { planner, runs_per_part, folder, runner }
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
        let mut unit = Unit::new(self.folder, self.planner.unit_seconds);
        let result = self.run_parts(&mut unit);
        if result.is_err() {
            self.runner.fail();
        }
        // Also after a failure or an interruption, for the runs that are finished.
        let written = unit.write();
        result.and(written)
    }

    fn run_parts(&self, unit: &mut Unit<'_>) -> Result<(), Error> {
        let mut builder = PartBuilder::new(self.planner.parts);
        while let Some(parts) = self.planner.take() {
            let mut stored = 0;
            for part in parts {
                if self.runner.has_to_end() {
                    return Ok(());
                }
                let Some(part) = builder.missing(part).map_err(Error::Input)? else {
                    stored += 1;
                    continue;
                };
                self.advance(mem::take(&mut stored));
                let seconds = part.seconds;
                if !self.runner.run(part, &mut |run| unit.add(run))? {
                    return Ok(());
                }
                unit.on_part_finished(seconds)?;
            }
            self.advance(stored);
        }
        Ok(())
    }

    /// Reports parts whose results are stored.
    fn advance(&self, parts: u64) {
        if parts > 0 {
            self.runner.advance(1000 * parts * self.runs_per_part);
        }
    }
}

/// The unit of a thread: finished runs that are not written yet.
struct Unit<'a> {
    folder: &'a Path,
    runs: Vec<UnitRun>,
    /// Estimated time of the finished parts, of a unit, and of a unit at full length.
    seconds: f64,
    seconds_max: f64,
    full_seconds: f64,
    written: Instant,
}

impl<'a> Unit<'a> {
    #[expect(clippy::disallowed_methods, reason = "the time of a unit, not of a simulation")]
    fn new(folder: &'a Path, full_seconds: f64) -> Self {
        let seconds_max = full_seconds.min(FIRST_UNIT_SECONDS);
        let (runs, seconds, written) = (Vec::new(), 0.0, Instant::now());
        Self { folder, runs, seconds, seconds_max, full_seconds, written }
    }

    /// Adds a run, and writes all if the last ones were written long ago.
    fn add(&mut self, run: UnitRun) -> Result<(), Error> {
        self.runs.push(run);
        if self.written.elapsed() > WRITE_AFTER || self.runs.len() >= UNIT_RUNS_MAX {
            self.write()?;
        }
        Ok(())
    }

    /// Writes the unit if it has its length.
    fn on_part_finished(&mut self, seconds: f64) -> Result<(), Error> {
        self.seconds += seconds;
        if self.seconds >= self.seconds_max {
            self.write()?;
            self.seconds_max = self.full_seconds.min(2.0 * self.seconds_max);
        }
        Ok(())
    }

    /// Writes the unit and begins the next one.
    #[expect(clippy::disallowed_methods, reason = "the time of a unit, not of a simulation")]
    fn write(&mut self) -> Result<(), Error> {
        let runs = mem::take(&mut self.runs);
        (self.seconds, self.written) = (0.0, Instant::now());
        unit_file::write(self.folder, &runs).map_err(Error::Input)
    }
}
