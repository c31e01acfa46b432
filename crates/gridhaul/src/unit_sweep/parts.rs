//! The parts of a sweep, which shards share and a unit has several of.
//!
//! A part is a run. Where results decide about further replications (`replications.until`), a part
//! is a point with all of them, so that the number of replications depends on this point alone.

use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::answer::{NeededReplications, RunRows, StoppingRule};
use gridhaul_scenario::scenario::{Replications, Scenario, SweepPoints};

use super::parallel::in_parallel;
use super::point_key::{PointKey, PointKeys};
use super::shard::Shard;
use super::store::Store;
use crate::estimate::simulation_seconds;

/// The place of a part in a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartPlace {
    /// Index of the point.
    pub point: usize,
    /// Number of the replication; `None` for all that the point needs.
    pub replication: Option<u32>,
}

/// A part that has missing results.
#[derive(Debug)]
pub(super) struct PlannedPart {
    pub(super) place: PartPlace,
    pub(super) scenario: Arc<Scenario>,
    pub(super) key: PointKey,
    pub(super) runs: PlannedRuns,
    /// Estimated run time.
    pub(super) seconds: f64,
}

/// The missing runs of a part.
#[derive(Debug)]
pub(super) enum PlannedRuns {
    /// One replication.
    One(u32),
    /// The replications after those with these stored results, until the point is complete.
    Rest(Vec<RunRows>),
}

/// The parts of a shard, and the results that are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) points: &'a SweepPoints,
    pub(super) keys: &'a PointKeys,
    pub(super) store: &'a Store,
    pub(super) shard: Shard,
    pub(super) rule: StoppingRule,
}

/// Builds parts one after the other. The replications of a point follow each other, and share its
/// scenario.
#[derive(Debug)]
pub(super) struct PartBuilder<'a> {
    parts: Parts<'a>,
    current: Option<BuiltPoint>,
}

/// The point of the last part.
#[derive(Debug)]
struct BuiltPoint {
    index: u64,
    scenario: Arc<Scenario>,
    key: PointKey,
    /// Estimated time of a run.
    seconds: f64,
}

/// Run time that is assumed for every run in addition: to build the point and to write its results.
const SECONDS_PER_RUN: f64 = 1e-4;

impl Parts<'_> {
    /// Number of parts of the shard.
    pub(super) const fn count(&self) -> u64 {
        self.shard.count_of(part_count(self.points, &self.rule))
    }

    /// The numbers of the parts of the shard that have missing results, in the whole sweep.
    ///
    /// # Errors
    /// A point that is not a valid scenario, a trace that cannot be read, or a damaged result.
    pub(super) fn missing(self, threads: usize) -> anyhow::Result<Vec<u64>> {
        in_parallel(0..self.count(), threads, |range: Range<u64>| {
            let mut builder = PartBuilder::new(self);
            let mut missing = Vec::new();
            for index in range {
                if builder.missing(index)?.is_some() {
                    missing.push(self.shard.part(index));
                }
            }
            Ok(missing)
        })
    }

    /// The missing runs of a part, and how many are needed in any case; `None` if it is complete.
    fn missing_runs(
        &self,
        key: PointKey,
        replication: Option<u32>,
    ) -> anyhow::Result<Option<(PlannedRuns, u32)>> {
        if let Some(replication) = replication {
            let is_missing = !self.store.has(key, replication);
            return Ok(is_missing.then_some((PlannedRuns::One(replication), 1)));
        }
        let stored = self.store.first_runs(key, self.rule.replications().max())?;
        let stored: Vec<RunRows> = stored.into_iter().map(|run| run.rows).collect();
        Ok(match self.rule.decide(&stored) {
            NeededReplications::Complete(_) => None,
            NeededReplications::AtLeast(count) => {
                let missing = count - stored.len() as u32;
                Some((PlannedRuns::Rest(stored), missing))
            }
        })
    }
}

impl<'a> PartBuilder<'a> {
    pub(super) const fn new(parts: Parts<'a>) -> Self {
        Self { parts, current: None }
    }

    /// The part at an index of the shard; `None` if its results are stored.
    ///
    /// # Errors
    /// A point that is not a valid scenario, a trace that cannot be read, or a damaged result.
    pub(super) fn missing(&mut self, index: u64) -> anyhow::Result<Option<PlannedPart>> {
        let parts = self.parts;
        let per_point = u64::from(parts_per_point(&parts.rule));
        let part = parts.shard.part(index);
        let point = match self.current.take().filter(|point| point.index == part / per_point) {
            Some(point) => point,
            None => BuiltPoint::new(part / per_point, &parts)?,
        };
        let BuiltPoint { index, scenario, key, seconds } = self.current.insert(point);
        let is_run = parts.rule.replications().until().is_none();
        let replication = is_run.then_some((part % per_point) as u32);
        let missing = parts.missing_runs(*key, replication)?;
        Ok(missing.map(|(runs, count)| PlannedPart {
            place: PartPlace { point: *index as usize, replication },
            scenario: Arc::clone(scenario),
            key: *key,
            runs,
            seconds: *seconds * f64::from(count),
        }))
    }
}

impl BuiltPoint {
    fn new(index: u64, parts: &Parts<'_>) -> anyhow::Result<Self> {
        let scenario = parts.points.get(index as usize)?.scenario;
        let key = parts.keys.of(&scenario)?;
        let seconds = run_seconds(&scenario);
        Ok(Self { index, scenario: Arc::new(scenario), key, seconds })
    }
}

/// Estimated time of a run.
pub(super) fn run_seconds(scenario: &Scenario) -> f64 {
    simulation_seconds(scenario) + SECONDS_PER_RUN
}

/// Number of parts of a sweep, of all shards.
pub(super) const fn part_count(points: &SweepPoints, rule: &StoppingRule) -> u64 {
    points.len() as u64 * parts_per_point(rule) as u64
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
