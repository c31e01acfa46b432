//! The backend: all sweep points and repeats, on as many threads as wanted, as one answer.

use std::mem;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use gridhaul_scenario::answer::{Answer, Capture, Point, RunRows, Series, TimeBase, Warning};
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};
use rayon::prelude::*;

use crate::addresses::addresses;
use crate::audit::Account;
use crate::build::{Layout, build};
use crate::collect::refusals;
use crate::limits;
use crate::measure::rows;
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
        let repeats = scenario.repeat as usize;
        let total = (points.len() * repeats) as u64;
        let done = AtomicU64::new(0);
        let job = |index: usize| {
            let (point, repeat) = (index / repeats, index % repeats);
            let outcome = run_once(&points[point].scenario, repeat as u32);
            progress.advance(done.fetch_add(1, Ordering::Relaxed) + 1, total);
            outcome
        };
        let jobs = points.len() * repeats;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(self.threads_for(jobs))
            .build()
            .map_err(|error| RunError::Invalid(format!("threads: {error}")))?;
        let outcomes: Result<Vec<Outcome>, RunError> =
            pool.install(|| (0..jobs).into_par_iter().map(job).collect());
        answer(scenario, &points, outcomes?)
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

fn run_once(scenario: &Scenario, repeat: u32) -> Result<Outcome, RunError> {
    let layout = Layout::new(scenario)?;
    let mut world = build(scenario, &layout, repeat, repeat == 0)?;
    world.run()?;
    audit(&mut world, &layout, repeat)?;
    let rows = rows(&world, &layout);
    let names = addresses(scenario, &layout);
    let taps = world.net.links.iter_mut().filter_map(|slot| slot.tap.take());
    let captures = taps.map(|tap| tap.into_capture(&names)).collect();
    let mut warnings = rows.warnings(scenario);
    warnings.extend(limits::warnings(scenario, &rows));
    let gave_up = world.proxies.gave_up(&world.flows);
    warnings.extend(gave_up.map(|row| limits::gave_up(&layout.flows[row as usize].0)));
    let series = world.recorder.take().map_or_else(Vec::new, |recorder| recorder.into_series());
    Ok(Outcome { rows, series, captures, warnings })
}

/// Has the run re-checked.
fn audit(world: &mut World, layout: &Layout, repeat: u32) -> Result<(), RunError> {
    for (slot, &row) in world.net.links.iter_mut().zip(layout.directions.row_of()) {
        let name = &layout.directions.rows()[row as usize].0;
        let account = Account {
            offered: slot.stats.offered,
            refused: slot.stats.refused,
            copies: slot.link.copies(),
            inside: slot.link.inside() as u64,
        };
        slot.audit.finish(account).map_err(|violation| {
            RunError::Audit(format!("repeat {repeat}: {name}: {violation}"))
        })?;
    }
    for (index, flow) in world.flows.iter().enumerate() {
        let name = &layout.flows[flow.row as usize].0;
        world.proxies.audit(index, flow).map_err(|violation| {
            RunError::Audit(format!("repeat {repeat}: {name}: {violation}"))
        })?;
    }
    world.collect.audit(&world.flows).map_err(|(row, violation)| {
        let name = &layout.flows[row as usize].0;
        RunError::Audit(format!("repeat {repeat}: {name}: {violation}"))
    })?;
    Ok(())
}

/// Puts the runs of all points together.
fn answer(
    scenario: &Scenario,
    points: &[ScenarioPoint],
    outcomes: Vec<Outcome>,
) -> Result<Answer, RunError> {
    let repeats = scenario.repeat as usize;
    let mut answer = Answer::without_points(scenario, "sim");
    let mut outcomes = outcomes.into_iter();
    for (index, point) in points.iter().enumerate() {
        let layout = Layout::new(&point.scenario)?;
        let mut runs: Vec<Outcome> = outcomes.by_ref().take(repeats).collect();
        for run in &mut runs {
            answer.warnings.append(&mut run.warnings);
        }
        if let Some(first) = runs.first_mut() {
            let recorded = (mem::take(&mut first.series), mem::take(&mut first.captures));
            answer.keep((points.len() > 1).then_some(index), recorded);
        }
        let runs: Vec<RunRows> = runs.into_iter().map(|run| run.rows).collect();
        let names = (&layout.flows, layout.directions.rows());
        answer.points.push(Point::of_runs(point, names, &runs, TimeBase::Virtual));
    }
    answer.warn_of_unopened(scenario);
    answer.warnings.sort();
    answer.warnings.dedup();
    Ok(answer)
}
