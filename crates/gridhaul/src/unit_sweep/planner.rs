//! Divides the missing runs of a sweep into units of some seconds, one at a time, so that the first
//! unit begins before the points of a large sweep have been built.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Scenario, SweepPoints};

use super::point_key::{PointKey, PointKeys};
use super::shard::Shard;
use super::store::Store;
use crate::estimate::simulation_seconds;

/// A part of a sweep whose results are written to one file.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) runs: Vec<PlannedRun>,
}

/// A run that has no stored result.
#[derive(Debug)]
pub(super) struct PlannedRun {
    pub(super) scenario: Arc<Scenario>,
    pub(super) key: PointKey,
    pub(super) replication: u32,
}

/// The runs of a sweep, in their order.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    pub(super) points: &'a SweepPoints,
    pub(super) keys: &'a PointKeys,
    pub(super) store: &'a Store,
    pub(super) shard: Shard,
    pub(super) replications: u32,
    /// Estimated length of a unit.
    pub(super) unit_seconds: f64,
    /// The next run, counted over all points and replications.
    next: u64,
    current: Option<CurrentPoint>,
}

/// The point of the next run.
#[derive(Debug)]
struct CurrentPoint {
    index: u64,
    scenario: Arc<Scenario>,
    key: PointKey,
    seconds: f64,
}

/// Units per thread, so that threads finish at about the same time.
const UNITS_PER_THREAD: f64 = 8.0;

/// Points whose run time is estimated to choose the length of units.
const POINTS_SAMPLED: usize = 50;

/// Run time that is assumed for every run in addition: to build the point and to write its results.
const SECONDS_PER_RUN: f64 = 1e-4;

impl<'a> Planner<'a> {
    pub(super) fn new(
        (points, keys, store): (&'a SweepPoints, &'a PointKeys, &'a Store),
        (shard, replications): (Shard, u32),
        unit_seconds_max: f64,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let step = points.len().div_ceil(POINTS_SAMPLED).max(1);
        let mut sampled = 0.0;
        for index in (0..points.len()).step_by(step) {
            sampled += simulation_seconds(&points.get(index)?.scenario) + SECONDS_PER_RUN;
        }
        let total = sampled * step as f64 * f64::from(replications);
        let unit_seconds = total / (UNITS_PER_THREAD * threads as f64);
        let unit_seconds = unit_seconds.min(unit_seconds_max);
        let (next, current) = (0, None);
        Ok(Self { points, keys, store, shard, replications, unit_seconds, next, current })
    }

    /// All runs, of all shards.
    pub(super) fn count(&self) -> u64 {
        self.points.len() as u64 * u64::from(self.replications)
    }

    /// The next run without a stored result.
    ///
    /// # Errors
    /// A point that is not a valid scenario, or a trace that cannot be read.
    fn next_run(&mut self) -> anyhow::Result<Option<(PlannedRun, f64)>> {
        loop {
            let run = self.shard.next(self.next);
            if run >= self.count() {
                self.next = run;
                return Ok(None);
            }
            self.next = run + 1;
            let index = run / u64::from(self.replications);
            let replication = (run % u64::from(self.replications)) as u32;
            if self.current.as_ref().is_none_or(|current| current.index != index) {
                let scenario = self.points.get(index as usize)?.scenario;
                let key = self.keys.of(&scenario)?;
                let seconds = simulation_seconds(&scenario) + SECONDS_PER_RUN;
                let scenario = Arc::new(scenario);
                self.current = Some(CurrentPoint { index, scenario, key, seconds });
            }
            let Some(CurrentPoint { scenario, key, seconds, .. }) = &self.current else { continue };
            if !self.store.has(*key, replication) {
                let (scenario, key) = (scenario.clone(), *key);
                return Ok(Some((PlannedRun { scenario, key, replication }, *seconds)));
            }
        }
    }

    /// The next unit; `None` if no run is missing.
    ///
    /// # Errors
    /// A point that is not a valid scenario, or a trace that cannot be read.
    pub(super) fn next_unit(&mut self) -> anyhow::Result<Option<Unit>> {
        let mut unit = Unit::default();
        let mut seconds = 0.0;
        while seconds < self.unit_seconds || unit.runs.is_empty() {
            let Some((run, expected)) = self.next_run()? else { break };
            unit.runs.push(run);
            seconds += expected;
        }
        Ok((!unit.runs.is_empty()).then_some(unit))
    }

    /// The number of runs that have been passed: planned, stored or of other shards.
    pub(super) fn passed(&self) -> u64 {
        self.next.min(self.count())
    }

    /// The numbers of the missing runs, counted over all points and replications.
    ///
    /// # Errors
    /// Those of [`Planner::next_unit`].
    pub(super) fn missing(mut self) -> anyhow::Result<Vec<u64>> {
        let mut missing = Vec::new();
        while self.next_run()?.is_some() {
            missing.push(self.next - 1);
        }
        Ok(missing)
    }
}
