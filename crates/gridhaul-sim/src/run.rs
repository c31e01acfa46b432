//! The backend: all sweep points and repeats, on as many threads as wanted, as one answer.

use std::cell::Cell;
use std::mem;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Capture, Point, RunRows, Series, TimeBase, Warning};
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};

use crate::addresses::addresses;
use crate::audit::{Account, AuditError};
use crate::build::build;
use crate::collect::refusals;
use crate::layout::Layout;
use crate::limits;
use crate::proxy;
use crate::world::World;

/// The packet simulator.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sim {
    /// Threads for repeats and sweep points; 0: one for each core. The answer does not depend
    /// on it.
    pub threads: usize,
}

impl Backend for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        let mut unsupported = refusals(scenario);
        unsupported.extend(proxy::refusals(scenario));
        unsupported.extend(scenario.shaper_keys().map(|(key, _)| Unsupported {
            key,
            reason: "the simulator has no shapers; use `--on emu`, or set `on = false`".to_owned(),
        }));
        if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
        for point in &points {
            self.supports(&point.scenario).map_err(RunError::Unsupported)?;
        }
        let jobs = Jobs::new(points.len(), scenario.replications as usize, progress);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads_for(jobs.count))
            .build()
            .map_err(|error| RunError::Machine(format!("threads: {error}")))?;
        let outcomes = pool.broadcast(|_| jobs.work(&points));
        let outcomes: Result<Vec<_>, RunError> = outcomes.into_iter().collect();
        let mut outcomes: Vec<_> = outcomes?.into_iter().flatten().collect();
        outcomes.sort_by_key(|(number, _)| *number);
        answer(scenario, &points, outcomes)
    }
}

/// The runs of a scenario, which threads take one after the other: point by point, and the
/// replications of a point in their order, so that an interruption leaves whole points.
struct Jobs<'a> {
    count: usize,
    replications: usize,
    next: AtomicUsize,
    /// Thousandths of runs that are done.
    done: AtomicU64,
    progress: &'a dyn Progress,
}

impl<'a> Jobs<'a> {
    const fn new(points: usize, replications: usize, progress: &'a dyn Progress) -> Self {
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { count: points * replications, replications, next, done, progress }
    }

    /// Takes runs until none is left, one fails or the user interrupts.
    fn work(&self, points: &[ScenarioPoint]) -> Result<Vec<(usize, Outcome)>, RunError> {
        let mut own = Vec::new();
        while !self.progress.is_interrupted() {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let (point, replication) = (number / self.replications, number % self.replications);
            let reported = Cell::new(0);
            let goes_on = |share: u64| self.on_slice(share - reported.replace(share));
            let outcome = run_once(&points[point].scenario, replication as u32, goes_on);
            // No thread begins another run after one has failed.
            let outcome =
                outcome.inspect_err(|_| self.next.store(self.count, Ordering::Relaxed))?;
            own.extend(outcome.map(|outcome| (number, outcome)));
        }
        Ok(own)
    }

    /// Reports so many thousandths of a run. Returns whether the run is to go on.
    fn on_slice(&self, thousandths: u64) -> bool {
        let done = self.done.fetch_add(thousandths, Ordering::Relaxed) + thousandths;
        self.progress.advance(done, (self.count as u64).saturating_mul(1000));
        !self.progress.is_interrupted()
    }
}

impl Sim {
    /// A thread more than there are jobs would have nothing to do.
    fn threads_for(self, jobs: usize) -> usize {
        let wanted = match self.threads {
            0 => thread::available_parallelism().map_or(1, NonZero::get),
            wanted => wanted,
        };
        wanted.min(jobs).max(1)
    }
}

/// What comes out of one run.
struct Outcome {
    rows: RunRows,
    series: Vec<Series>,
    captures: Vec<Capture>,
    warnings: Vec<Warning>,
}

/// One run; none if `goes_on` has ended it early.
fn run_once(
    scenario: &Scenario,
    replication: u32,
    goes_on: impl Fn(u64) -> bool,
) -> Result<Option<Outcome>, RunError> {
    let layout = Layout::new(scenario)?;
    let mut world = build(scenario, &layout, replication, replication == 0)?;
    if !world.run(goes_on)? {
        return Ok(None);
    }
    audit(&mut world, &layout, replication)?;
    let rows = world.rows(&layout);
    let names = addresses(scenario, &layout);
    let taps = world.net.links.iter_mut().filter_map(|link| link.observer.tap.take());
    let captures = taps.map(|tap| tap.into_capture(&names)).collect();
    let mut warnings = rows.warnings(scenario);
    warnings.extend(limits::warnings(scenario, &rows));
    let gave_up = world.proxies.gave_up(&world.flows);
    warnings.extend(gave_up.map(|row| limits::gave_up(&layout.flows[row as usize].0)));
    let series = world.recorder.take().map_or_else(Vec::new, |recorder| recorder.into_series());
    Ok(Some(Outcome { rows, series, captures, warnings }))
}

/// Has the run re-checked.
fn audit(world: &mut World, layout: &Layout, replication: u32) -> Result<(), RunError> {
    let failed = |entity: &str, violation| {
        let error = AuditError { replication, entity: entity.to_owned(), violation };
        RunError::Audit(Box::new(error))
    };
    let flow_name = |row: u32| layout.flows[row as usize].0.as_str();
    for (link, &row) in world.net.links.iter_mut().zip(layout.directions.row_of()) {
        let account = Account {
            offered: link.account.offered,
            refused: link.account.refused,
            copies: link.direction.copies(),
            inside: link.direction.inside() as u64,
        };
        let name = &layout.directions.rows()[row as usize].0;
        link.observer.audit.finish(account).map_err(|violation| failed(name, violation))?;
    }
    for (index, flow) in world.flows.iter().enumerate() {
        let audited = world.proxies.audit(index, flow);
        audited.map_err(|violation| failed(flow_name(flow.row), violation))?;
    }
    let audited = world.collect.audit(&world.flows);
    audited.map_err(|(row, violation)| failed(flow_name(row), violation))
}

/// Puts the finished runs of all points together. Of a point that was interrupted, the replications
/// before the first unfinished one count: the answer is that of fewer replications.
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
