//! The queue of the runs of a scenario, from which the threads of a backend take work.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Progress;
use crate::answer::{FinishedRun, NeededReplications, Run, RunRows, StoppingRule};
use crate::run_error::RunError;

/// The runs of a scenario, which threads take in order: point by point, and the replications of a
/// point one after another, so that an interruption leaves complete points. Where results decide
/// about further replications, only those are run that are needed in any case.
pub struct RunQueue<'a> {
    rule: StoppingRule,
    /// Largest number of runs.
    count: u64,
    state: Mutex<State>,
    /// A point has got further runs, or a run has ended.
    changed: Condvar,
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

/// The runs that are left.
struct State {
    points: Vec<PointRuns>,
    /// Points with runs that can be taken.
    ready: BTreeSet<usize>,
    /// Runs in progress.
    running: usize,
    /// Whether a run has failed: no thread begins another one.
    failed: bool,
}

/// The runs of a point.
#[derive(Clone)]
struct PointRuns {
    /// Replications that are needed in any case.
    needed: u32,
    /// Replications that were taken.
    taken: u32,
    /// Results of the replications, if they decide about further ones.
    results: Vec<Option<RunRows>>,
}

/// Counts a run as in progress, also if it panics.
struct Running<'q, 'a>(&'q RunQueue<'a>);

impl<'a> RunQueue<'a> {
    /// The runs of `points` points, each complete by `rule`.
    #[must_use]
    pub fn new(points: usize, rule: StoppingRule, progress: &'a dyn Progress) -> Self {
        let replications = rule.replications();
        let runs = PointRuns { needed: replications.min(), taken: 0, results: Vec::new() };
        let (points_left, ready) = (vec![runs; points], (0..points).collect());
        let state = State { points: points_left, ready, running: 0, failed: false };
        Self {
            rule,
            count: points as u64 * u64::from(replications.max()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            done: AtomicU64::new(0),
            progress,
        }
    }

    /// The number of threads for the queue: no more than runs, at least one.
    #[must_use]
    pub fn threads(&self, wanted: usize) -> usize {
        wanted.min(usize::try_from(self.count).unwrap_or(usize::MAX)).max(1)
    }

    /// The work of one thread: executes runs until none is left, one fails or the user interrupts.
    /// `execute` returns `None` for a run that was interrupted.
    pub fn work(
        &self,
        execute: impl Fn(&QueuedRun<'_>) -> Result<Option<Run>, RunError>,
    ) -> Vec<FinishedRun> {
        let mut finished = Vec::new();
        while let Some((run, running)) = self.take() {
            let result = execute(&run);
            match &result {
                Ok(Some(done)) => {
                    run.report(1000);
                    self.decide(&run, done);
                }
                Ok(None) => {}
                Err(_) => self.state().failed = true,
            }
            drop(running);
            let (point, replication) = (run.point, run.replication);
            let result = result.transpose();
            finished.extend(result.map(|result| FinishedRun { point, replication, result }));
        }
        finished
    }

    /// The next run. While none can be taken, waits for those in progress, which may decide that
    /// more are needed.
    fn take(&self) -> Option<(QueuedRun<'_>, Running<'_, 'a>)> {
        let mut state = self.state();
        loop {
            if state.failed || self.progress.is_interrupted() {
                return None;
            }
            if let Some(&point) = state.ready.first() {
                let runs = &mut state.points[point];
                let replication = runs.taken;
                runs.taken += 1;
                if runs.taken == runs.needed {
                    state.ready.remove(&point);
                }
                state.running += 1;
                let run = QueuedRun { point, replication, queue: self, reported: Cell::new(0) };
                return Some((run, Running(self)));
            }
            if state.running == 0 || self.rule.replications().until().is_none() {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Decides about further replications of a point when those that are needed have ended.
    fn decide(&self, run: &QueuedRun<'_>, done: &Run) {
        let replications = self.rule.replications();
        if replications.until().is_none() {
            return;
        }
        let mut state = self.state();
        let runs = &mut state.points[run.point];
        let index = run.replication as usize;
        runs.results.resize(runs.results.len().max(index + 1), None);
        runs.results[index] = Some(done.rows.deciding());
        if runs.results.len() < runs.needed as usize {
            return;
        }
        let Some(results) = runs.results.iter().cloned().collect::<Option<Vec<_>>>() else {
            return;
        };
        match self.rule.decide(&results) {
            NeededReplications::AtLeast(count) => {
                runs.needed = count;
                state.ready.insert(run.point);
            }
            NeededReplications::Complete(count) => {
                runs.results.clear();
                drop(state);
                self.advance(1000 * u64::from(replications.max() - count));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn advance(&self, thousandths: u64) {
        let done = self.done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
        self.progress.advance(done, self.count.saturating_mul(1000));
    }
}

impl QueuedRun<'_> {
    /// Reports that so many thousandths of the run are completed. Returns whether the run is to
    /// continue.
    pub fn report(&self, thousandths: u64) -> bool {
        let more = thousandths - self.reported.replace(thousandths);
        self.queue.advance(more);
        !self.queue.progress.is_interrupted()
    }
}

impl Drop for Running<'_, '_> {
    fn drop(&mut self) {
        self.0.state().running -= 1;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::Scenario;
    use crate::answer::Metric;
    use crate::backend::NoProgress;

    fn rule(replications: &str) -> StoppingRule {
        let text = format!(
            "title = \"t\"\nduration = \"1 s\"\nreplications = {replications}\n[node]\na = {{}}\n\
             b = {{}}\n[link.l]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n"
        );
        StoppingRule::of(&Scenario::from_toml(&text, "test.toml").unwrap())
    }

    /// The replications that four threads run at each of three points, where the goodput of the
    /// second point varies.
    fn replications(rule: StoppingRule) -> Vec<(usize, u32)> {
        let queue = RunQueue::new(3, rule, &NoProgress);
        let execute = |run: &QueuedRun<'_>| {
            let varies = run.point == 1 && run.replication < 8;
            let goodput = if varies { f64::from(run.replication % 3) } else { 1.0 };
            let flows = vec![vec![(Metric::Goodput, goodput)]];
            Ok(Some(Run { rows: RunRows { flows, ..RunRows::default() }, ..Run::default() }))
        };
        let mut ended = thread::scope(|scope| {
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(|| queue.work(execute))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
        });
        ended.sort_by_key(|run| (run.point, run.replication));
        ended.into_iter().map(|run| (run.point, run.replication)).collect()
    }

    #[test]
    fn each_point_has_as_many_replications_as_its_results_need() {
        let ended = replications(rule("{ until = \"30 %\", min = 3, max = 20 }"));
        let of_point = |point| ended.iter().filter(|run| run.0 == point).count();
        assert_eq!((of_point(0), of_point(2)), (3, 3));
        assert!((9..20).contains(&of_point(1)), "{}", of_point(1));
        for _ in 0..20 {
            assert_eq!(replications(rule("{ until = \"30 %\", min = 3, max = 20 }")), ended);
        }
        assert_eq!(replications(rule("2")).len(), 6);
    }

    #[test]
    fn a_failure_ends_all_threads() {
        let queue = RunQueue::new(5, rule("{ until = \"5 %\", max = 100 }"), &NoProgress);
        let execute = |_: &QueuedRun<'_>| Err(RunError::Machine("failed".to_owned()));
        let ended = thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|_| scope.spawn(|| queue.work(execute))).collect();
            workers.into_iter().flat_map(|worker| worker.join().unwrap()).count()
        });
        assert!((1..=3).contains(&ended), "{ended}");
    }
}
