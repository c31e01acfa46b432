//! Divides the missing runs of a sweep into units of some seconds, one at a time, so that the first
//! unit begins before the points of a large sweep have been built.
//!
//! The parts of a sweep, which shards share and a unit has several of, are its runs. Where results
//! decide about further replications (`replications.until`), a part is a point with all of them, so
//! that the number of replications depends on this point alone.

use std::sync::Arc;

use gridhaul_scenario::answer::{NeededReplications, RunRows, StoppingRule};
use gridhaul_scenario::scenario::{Replications, Scenario, SweepPoints};

use super::point_key::{PointKey, PointKeys};
use super::shard::Shard;
use super::store::Store;
use crate::estimate::simulation_seconds;

/// Parts of a sweep whose results are written to one file.
#[derive(Debug, Default)]
pub(super) struct Unit {
    pub(super) parts: Vec<PlannedPart>,
}

/// A part of a sweep that has missing results.
#[derive(Debug)]
pub(super) struct PlannedPart {
    pub(super) place: PartPlace,
    pub(super) scenario: Arc<Scenario>,
    pub(super) key: PointKey,
    pub(super) runs: PlannedRuns,
}

/// The place of a part in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartPlace {
    /// Index of the point.
    pub point: usize,
    /// Number of the replication; `None` for all that the point needs.
    pub replication: Option<u32>,
}

/// The missing runs of a part.
#[derive(Debug)]
pub(super) enum PlannedRuns {
    /// One replication.
    One(u32),
    /// The replications after those with these stored results, until the point is complete.
    Rest(Vec<RunRows>),
}

/// The parts of a sweep, in their order.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    pub(super) points: &'a SweepPoints,
    pub(super) keys: &'a PointKeys,
    pub(super) store: &'a Store,
    pub(super) shard: Shard,
    pub(super) rule: StoppingRule,
    /// Estimated length of a unit.
    pub(super) unit_seconds: f64,
    /// Number of the next part.
    next: u64,
    /// Parts that were passed since they were last counted, because their results are stored or
    /// because they belong to other shards.
    skipped: u64,
    current: Option<CurrentPoint>,
}

/// The point of the next part.
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
        (shard, rule): (Shard, StoppingRule),
        unit_seconds_max: f64,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let step = points.len().div_ceil(POINTS_SAMPLED).max(1);
        let mut sampled = 0.0;
        for index in (0..points.len()).step_by(step) {
            sampled += simulation_seconds(&points.get(index)?.scenario) + SECONDS_PER_RUN;
        }
        let total = sampled * step as f64 * f64::from(rule.replications().min());
        let unit_seconds = total / (UNITS_PER_THREAD * threads as f64);
        let unit_seconds = unit_seconds.min(unit_seconds_max);
        let (next, skipped, current) = (0, 0, None);
        Ok(Self { points, keys, store, shard, rule, unit_seconds, next, skipped, current })
    }

    /// Number of parts, of all shards.
    pub(super) fn count(&self) -> u64 {
        part_count(self.points, &self.rule)
    }

    /// The next part with missing results, and its estimated run time.
    ///
    /// # Errors
    /// A point that is not a valid scenario, a trace that cannot be read, or a damaged result.
    fn next_part(&mut self) -> anyhow::Result<Option<(PlannedPart, f64)>> {
        let per_point = u64::from(parts_per_point(&self.rule));
        loop {
            let part = self.shard.next(self.next);
            self.skipped += part.min(self.count()).saturating_sub(self.next);
            if part >= self.count() {
                self.next = part;
                return Ok(None);
            }
            self.next = part + 1;
            let index = part / per_point;
            if self.current.as_ref().is_none_or(|current| current.index != index) {
                let scenario = self.points.get(index as usize)?.scenario;
                let key = self.keys.of(&scenario)?;
                let seconds = simulation_seconds(&scenario) + SECONDS_PER_RUN;
                let scenario = Arc::new(scenario);
                self.current = Some(CurrentPoint { index, scenario, key, seconds });
            }
            let Some(CurrentPoint { scenario, key, seconds, .. }) = &self.current else { continue };
            let is_run = self.rule.replications().until().is_none();
            let replication = is_run.then_some((part % per_point) as u32);
            match missing_runs(&self.rule, self.store, *key, replication)? {
                None => self.skipped += 1,
                Some((runs, count)) => {
                    let place = PartPlace { point: index as usize, replication };
                    let seconds = seconds * f64::from(count);
                    let (scenario, key) = (scenario.clone(), *key);
                    return Ok(Some((PlannedPart { place, scenario, key, runs }, seconds)));
                }
            }
        }
    }

    /// The next unit; `None` if no result is missing.
    ///
    /// # Errors
    /// A point that is not a valid scenario, a trace that cannot be read, or a damaged result.
    pub(super) fn next_unit(&mut self) -> anyhow::Result<Option<Unit>> {
        let mut unit = Unit::default();
        let mut seconds = 0.0;
        while seconds < self.unit_seconds || unit.parts.is_empty() {
            let Some((part, expected)) = self.next_part()? else { break };
            unit.parts.push(part);
            seconds += expected;
        }
        Ok((!unit.parts.is_empty()).then_some(unit))
    }

    /// The number of parts that were passed since the last call, because their results are stored
    /// or because they belong to other shards.
    pub(super) fn take_skipped(&mut self) -> u64 {
        std::mem::take(&mut self.skipped)
    }

    /// The numbers of the parts with missing results.
    ///
    /// # Errors
    /// Those of [`Planner::next_unit`].
    pub(super) fn missing(mut self) -> anyhow::Result<Vec<u64>> {
        let mut missing = Vec::new();
        while self.next_part()?.is_some() {
            missing.push(self.next - 1);
        }
        Ok(missing)
    }
}

/// Number of parts of a sweep, of all shards.
pub(super) fn part_count(points: &SweepPoints, rule: &StoppingRule) -> u64 {
    points.len() as u64 * u64::from(parts_per_point(rule))
}

/// Largest number of runs of a part.
pub(super) fn runs_per_part(rule: &StoppingRule) -> u64 {
    u64::from(rule.replications().max() / parts_per_point(rule))
}

/// Number of parts of a point.
const fn parts_per_point(rule: &StoppingRule) -> u32 {
    match rule.replications() {
        Replications::Fixed(count) => count,
        Replications::Until(_) => 1,
    }
}

/// The missing runs of a part, and how many are needed in any case; `None` if it is complete.
fn missing_runs(
    rule: &StoppingRule,
    store: &Store,
    key: PointKey,
    replication: Option<u32>,
) -> anyhow::Result<Option<(PlannedRuns, u32)>> {
    if let Some(replication) = replication {
        let is_missing = !store.has(key, replication);
        return Ok(is_missing.then_some((PlannedRuns::One(replication), 1)));
    }
    let stored = store.first_runs(key, rule.replications().max())?;
    let stored: Vec<RunRows> = stored.into_iter().map(|run| run.rows).collect();
    Ok(match rule.decide(&stored) {
        NeededReplications::Complete(_) => None,
        NeededReplications::AtLeast(count) => {
            let missing = count - stored.len() as u32;
            Some((PlannedRuns::Rest(stored), missing))
        }
    })
}
