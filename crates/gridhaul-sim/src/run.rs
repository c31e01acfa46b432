//! The backend: runs all sweep points and replications on several threads and combines them to one answer.

use std::cell::Cell;
use std::mem;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Capture, Point, RunRows, Series, TimeBase, Warning};
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use crate::aggregation::unsupported;
use crate::audit::{AuditError, LinkTotals};
use crate::build::build;
use crate::layout::Layout;
use crate::limitations;
use crate::proxy;
use crate::world::World;

/// The packet simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sim {
    /// Threads for replications and sweep points; 0: one for each core. The answer does not depend on the
    /// number.
    pub threads: usize,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        let mut unsupported = unsupported(scenario);
        unsupported.extend(proxy::unsupported(scenario));
        unsupported.extend(scenario.shaper_keys().map(|(key, _)| Unsupported {
            key,
            reason:
                "the simulator has no shapers; use backend `emu`, or set `on = false`".to_owned(),
        }));
        if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
        for point in &points {
            self.supports(&point.scenario).map_err(RunError::Unsupported)?;
        }
        let queue = RunQueue::new(points.len(), scenario.replications as usize, progress);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads_for(queue.count))
            .build()
            .map_err(|error| RunError::Machine(format!("threads: {error}")))?;
        let outcomes = pool.broadcast(|_| queue.work(&points));
        let outcomes: Result<Vec<_>, RunError> = outcomes.into_iter().collect();
        let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
        outcomes.sort_by_key(|(number, _)| *number);
        answer(scenario, &points, outcomes)
    }
}

/// The runs of a scenario, which threads take in order: point by point, and the replications of a point one
/// after another, so that an interruption leaves complete points.
struct RunQueue<'a> {
    count: usize,
    replications: usize,
    next: AtomicUsize,
    /// Completed thousandths of all runs.
    done: AtomicU64,
    progress: &'a dyn Progress,
}

impl<'a> RunQueue<'a> {
    const fn new(points: usize, replications: usize, progress: &'a dyn Progress) -> Self {
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { count: points * replications, replications, next, done, progress }
    }

    /// Takes runs until none is left, one fails or the user interrupts.
    fn work(&self, points: &[ScenarioPoint]) -> Result<Vec<(usize, Outcome)>, RunError> {
        let mut outcomes = Vec::new();
        while !self.progress.is_interrupted() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let (point, replication) = (number / self.replications, number % self.replications);
            let reported = Cell::new(0);
            let continues = |share: u64| self.on_slice(share - reported.replace(share));
            let scenario = &points[point].scenario;
            let outcome = run_once(scenario, replication as u32, self.progress, continues);
            // No thread begins another run after a failure.
            let outcome =
                outcome.inspect_err(|_| self.next.store(self.count, Ordering::Relaxed))?;
            outcomes.extend(outcome.map(|outcome| (number, outcome)));
        }
        Ok(outcomes)
    }

    /// Reports completed thousandths of a run. Returns whether the run is to continue.
    fn on_slice(&self, thousandths: u64) -> bool {
        let done = self.done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
        self.progress.advance(done, (self.count as u64).saturating_mul(1000));
        !self.progress.is_interrupted()
    }
}

impl Sim {
    /// The number of threads: no more than runs.
    fn threads_for(self, runs: usize) -> usize {
        let wanted = match self.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            wanted => wanted,
        };
        wanted.min(runs).max(1)
    }
}

/// The results of one run.
struct Outcome {
    rows: RunRows,
    series: Vec<Series>,
    captures: Vec<Capture>,
    warnings: Vec<Warning>,
}

/// Simulates one run. Returns `None` if `continues` has ended it early.
fn run_once(
    scenario: &Scenario,
    replication: u32,
    progress: &dyn Progress,
    continues: impl Fn(u64) -> bool,
) -> Result<Option<Outcome>, RunError> {
    let layout = Layout::new(scenario)?;
    let mut world = build(scenario, &layout, replication, progress)?;
    if !world.run(continues)? {
        return Ok(None);
    }
    audit(&mut world, &layout, replication)?;
    let rows = world.rows(&layout);
    let taps = world.net.links.iter_mut().filter_map(|link| link.observer.tap.take());
    let captures = taps.map(|tap| tap.into_capture()).collect::<Result<_, _>>()?;
    let mut warnings = rows.warnings(scenario);
    warnings.extend(limitations::warnings(scenario, &rows));
    let reset = world.proxies.rows_reset_with_loss(&world.flows);
    warnings.extend(reset.map(|row| limitations::proxy_reset(&layout.flows[row as usize].0)));
    let close = world.counters.outage_ends.rows();
    warnings.extend(close.map(|row| limitations::outage_end(&layout.flows[row as usize].0)));
    let series = world.recorder.take().map_or_else(Vec::new, |recorder| recorder.into_series());
    Ok(Some(Outcome { rows, series, captures, warnings }))
}

/// Audits a finished run.
fn audit(world: &mut World, layout: &Layout, replication: u32) -> Result<(), RunError> {
    let failed = |entity: &str, violation| {
        let error = AuditError { replication, entity: entity.to_owned(), violation };
        RunError::Audit(Box::new(error))
    };
    let flow_name = |row: u32| layout.flows[row as usize].0.as_str();
    for (link, &row) in world.net.links.iter_mut().zip(layout.directions.row_of()) {
        let totals = LinkTotals {
            offered: link.account.offered,
            refused: link.account.refused,
            copies: link.direction.copies(),
            inside: link.direction.inside() as u64,
        };
        let name = &layout.directions.rows()[row as usize].0;
        link.observer.audit.finish(totals).map_err(|violation| failed(name, violation))?;
    }
    for (index, flow) in world.flows.iter().enumerate() {
        let audited = world.proxies.audit(index, flow);
        audited.map_err(|violation| failed(flow_name(flow.row), violation))?;
    }
    let audited = world.aggregators.audit(&world.flows);
    audited.map_err(|(row, violation)| failed(flow_name(row), violation))
}

/// Combines the finished runs of all points. Of an interrupted point, the replications before the first
/// unfinished one count, so that the answer is that of fewer replications.
fn answer(
    scenario: &Scenario,
    points: &[ScenarioPoint],
    outcomes: Vec<(usize, Outcome)>,
) -> Result<Answer, RunError> {
    let replications = scenario.replications as usize;
    let mut answer = Answer::without_points(scenario, "sim");
    let mut outcomes = outcomes.into_iter().peekable();
    let mut finished = Vec::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        let mut runs: Vec<Outcome> = Vec::new();
        while let Some((number, run)) =
            outcomes.next_if(|(number, _)| number / replications == index)
        {
            if number % replications == runs.len() {
                runs.push(run);
            }
        }
        finished.push(runs.len());
        if runs.is_empty() {
            continue;
        }
        let layout = Layout::new(&point.scenario)?;
        for run in &mut runs {
            answer.warnings.append(&mut run.warnings);
        }
        if let Some(first) = runs.first_mut() {
            let recorded = (mem::take(&mut first.series), mem::take(&mut first.captures));
            answer.add_recordings(points.len() > 1, recorded);
        }
        let runs: Vec<RunRows> = runs.into_iter().map(|run| run.rows).collect();
        let names = (&layout.flows, layout.directions.rows());
        answer.points.push(Point::of_runs(point, names, &runs, TimeBase::Virtual));
    }
    answer.warn_of_failed_connections(scenario);
    answer.warnings.sort();
    answer.warnings.dedup();
    answer.with_finished(&finished, replications)
}
