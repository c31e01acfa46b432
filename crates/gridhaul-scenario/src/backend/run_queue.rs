//! The queue of the runs of a scenario, from which the threads of a backend take work.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::Progress;
use crate::answer::{FinishedRun, Run};
use crate::run_error::RunError;

/// The runs of a scenario, which threads take in order: point by point, and the replications of a
/// point one after another, so that an interruption leaves complete points.
pub struct RunQueue<'a> {
    count: usize,
    replications: usize,
    next: AtomicUsize,
    /// Completed thousandths of all runs.
    done: AtomicU64,
    progress: &'a dyn Progress,
}

/// A run that a thread has taken from the queue.
pub struct QueuedRun<'a> {
    /// Index of the point of the sweep.
    pub point: usize,
    /// Number of the replication.
    pub replication: u32,
    queue: &'a RunQueue<'a>,
    /// Thousandths of the run that are reported as completed.
    reported: Cell<u64>,
}

impl<'a> RunQueue<'a> {
    /// The runs of `points` points with `replications` replications each.
    #[must_use]
    pub const fn new(points: usize, replications: u32, progress: &'a dyn Progress) -> Self {
        let replications = replications as usize;
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { count: points * replications, replications, next, done, progress }
    }

    /// The number of threads for the queue: no more than runs, at least one.
    #[must_use]
    pub fn threads(&self, wanted: usize) -> usize {
        wanted.min(self.count).max(1)
    }

    /// The work of one thread: executes runs until none is left, one fails or the user interrupts.
    /// `execute` returns `None` for a run that was interrupted.
    pub fn work(
        &self,
        execute: impl Fn(&QueuedRun<'_>) -> Result<Option<Run>, RunError>,
    ) -> Vec<FinishedRun> {
        let mut finished = Vec::new();
        while !self.progress.is_interrupted() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let (point, replication) = (number / self.replications, number % self.replications);
            let replication = replication as u32;
            let run = QueuedRun { point, replication, queue: self, reported: Cell::new(0) };
            let result = execute(&run);
            if result.is_err() {
                // No thread begins another run after a failure.
                self.next.store(self.count, Ordering::Relaxed);
            }
            if let Ok(Some(_)) = result {
                run.report(1000);
            }
            let result = result.transpose();
            finished.extend(result.map(|result| FinishedRun { point, replication, result }));
        }
        finished
    }
}

impl QueuedRun<'_> {
    /// Reports that so many thousandths of the run are completed. Returns whether the run is to
    /// continue.
    pub fn report(&self, thousandths: u64) -> bool {
        let RunQueue { count, done, progress, .. } = self.queue;
        let more = thousandths - self.reported.replace(thousandths);
        let done = done.fetch_add(more, Ordering::Relaxed) + more;
        progress.advance(done, (*count as u64).saturating_mul(1000));
        !progress.is_interrupted()
    }
}
