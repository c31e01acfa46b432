//! Sweeps in units: the result of every run is stored under a key of everything that determines it,
//! so that an interrupted sweep resumes, an edit repeats only the runs that it changes, and several
//! machines can share the work.

mod execute;
mod parallel;
mod part_runner;
mod parts;
mod planner;
mod point_key;
mod remote;
mod shard;
mod store;
mod stored;
mod tables;
mod unit_file;

use std::path::{Path, PathBuf};
use std::thread;

use gridhaul_data::trace;
use gridhaul_scenario::answer::{Answer, StoppingRule};
use gridhaul_scenario::backend::{Backend, RunError};
use gridhaul_scenario::scenario::{Scenario, ScenarioError, SweepPoints};
use gridhaul_scenario::units::Duration;
use gridhaul_sim::Sim;

use crate::engine::{BackendName, Engine};
use crate::error::Error;
use crate::estimate::ensure_possible;
use crate::observer::Observer;
use execute::Workers;
use parts::{Parts, part_count};
use planner::Planner;
use point_key::PointKeys;
use store::Store;

pub use parts::PartPlace;
pub use remote::RemoteUnit;
pub use shard::Shard;
pub use stored::{StoredSweep, TableOutput};

/// A sweep whose results are stored in a folder.
pub struct UnitSweep<'a> {
    scenario: &'a Scenario,
    /// Name of the scenario in tables.
    label: &'a str,
    /// Name of the scenario in messages and progress.
    file: &'a str,
    points: SweepPoints,
    keys: PointKeys,
    /// Folders with results. Those of this process go to the first one.
    folders: Vec<PathBuf>,
    rule: StoppingRule,
    /// Longest estimated time of a unit.
    unit_time: Duration,
    /// Number of threads that read results; 0 for one per processor.
    threads: usize,
}

/// Work of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SweepProgress {
    /// Runs whose results were computed and stored.
    pub finished: u64,
    /// Whether the observer interrupted the work, so that results may be missing.
    pub interrupted: bool,
}

/// Largest number of points of an answer in memory; the results of a larger sweep are tables.
pub const ANSWER_POINTS_MAX: usize = 100_000;

/// The reason for which a scenario cannot be swept in units; `None` if it can.
#[must_use]
pub fn without_units(scenario: &Scenario, engine: &Engine) -> Option<&'static str> {
    let record = &scenario.record;
    if engine.backends != [BackendName::Sim] {
        Some("only backend `sim` alone stores the result of each run")
    } else if record.interval.is_some()
        || !record.pcap.is_empty()
        || !record.events.is_empty()
        || !record.members.is_empty()
    {
        Some("a sweep with recordings does not store the result of each run")
    } else {
        None
    }
}

impl<'a> UnitSweep<'a> {
    /// A sweep with results in these folders, of which the first one is written.
    ///
    /// # Errors
    /// A sweep that is not well formed, or a key that the simulator does not support at the first
    /// point.
    pub fn new(
        scenario: &'a Scenario,
        label: &'a str,
        folders: Vec<PathBuf>,
    ) -> Result<Self, Error> {
        let points = scenario.sweep_points()?;
        let first = points.get(0)?.scenario;
        Sim::default().supports(&first).map_err(RunError::Unsupported)?;
        let rule = StoppingRule::of(scenario);
        let (keys, unit_time) = (PointKeys::default(), Duration::from_secs(30));
        Ok(Self {
            scenario,
            label,
            file: label,
            points,
            keys,
            folders,
            rule,
            unit_time,
            threads: 0,
        })
    }

    /// The sweep with the name of the scenario's file, which messages have in place of the label.
    #[must_use]
    pub fn with_file(self, file: &'a str) -> Self {
        Self { file, ..self }
    }

    /// The sweep with another longest estimated time of a unit than 30 s. A crash loses at most one
    /// unit per thread.
    #[must_use]
    pub fn with_unit_time(self, unit_time: Duration) -> Self {
        Self { unit_time, ..self }
    }

    /// The sweep with this number of threads that read results; 0 for one per processor.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Number of points.
    #[must_use]
    pub const fn point_count(&self) -> usize {
        self.points.len()
    }

    /// Number of parts, which shards share: runs, or points if their number of replications depends
    /// on their results (`replications.until`).
    #[must_use]
    pub fn part_count(&self) -> u64 {
        part_count(&self.points, &self.rule)
    }

    /// The singular noun of a part.
    #[must_use]
    pub const fn part_noun(&self) -> &'static str {
        if self.rule.replications().until().is_none() { "run" } else { "point" }
    }

    /// The results that are stored now.
    ///
    /// # Errors
    /// A folder cannot be read.
    pub fn stored(&self) -> Result<StoredSweep<'_>, Error> {
        StoredSweep::new(self)
    }

    /// Computes the runs of a shard that have no stored result, and stores theirs.
    ///
    /// # Errors
    /// The first run that failed, a folder that cannot be read or written, or, for a whole sweep of
    /// up to a hundred thousand points, one that is estimated to need too much memory or time.
    pub fn run(
        &self,
        shard: Shard,
        engine: &Engine,
        observer: &dyn Observer,
    ) -> Result<SweepProgress, Error> {
        if shard == Shard::ALL && self.point_count() <= ANSWER_POINTS_MAX {
            ensure_possible(self.scenario, engine)
                .map_err(|error| error.context(self.file.to_owned()))?;
        }
        trace_check(self.scenario, self.file)?;
        let threads = thread_count(engine.threads);
        let store = Store::open(&self.folders)?;
        let planner = self.planner(&store, shard, threads)?;
        let progress = observer.begin(self.file);
        let folder = self.folders.first().map_or(Path::new("."), PathBuf::as_path);
        let workers = Workers::new(planner, folder, progress.as_ref());
        let finished = workers.run(threads)?;
        Ok(SweepProgress { finished, interrupted: progress.is_interrupted() })
    }

    /// The numbers of the parts of a shard with missing results; runs are counted over all points
    /// and replications.
    ///
    /// # Errors
    /// A folder that cannot be read, or a point that is not a valid scenario.
    pub fn missing(&self, shard: Shard) -> Result<Vec<u64>, Error> {
        self.stored()?.missing(shard)
    }

    /// The answer of all stored results, as that of a run: of a point, the replications before the
    /// first missing one count.
    ///
    /// # Errors
    /// No result is stored, or one cannot be read.
    pub fn answer(&self) -> Result<Answer, Error> {
        self.stored()?.answer()
    }

    /// The answer of a sweep with too many points for one: the tables have them.
    #[must_use]
    pub fn answer_without_points(&self) -> Answer {
        Answer::without_points(self.scenario, Sim::default().name())
    }

    fn planner<'s>(
        &'s self,
        store: &'s Store,
        shard: Shard,
        threads: usize,
    ) -> anyhow::Result<Planner<'s>> {
        let Self { points, keys, rule, .. } = self;
        let parts = Parts { points, keys, store, shard, rule: *rule };
        Planner::new(parts, self.unit_time.as_secs_f64(), threads)
    }

    fn threads(&self) -> usize {
        thread_count(self.threads)
    }
}

fn thread_count(requested: usize) -> usize {
    match requested {
        0 => thread::available_parallelism().map_or(1, std::num::NonZero::get),
        threads => threads,
    }
}

/// Checks that the traces of a scenario can be read.
fn trace_check(scenario: &Scenario, file: &str) -> Result<(), ScenarioError> {
    trace::check(scenario).map_err(|error| ScenarioError { file: file.to_owned(), ..error })
}

/// The missing parts as shards of `count`, in the form of `sbatch --array`: `1,4-7`.
#[must_use]
pub fn shards_of(missing: &[u64], count: u32) -> String {
    let shards: std::collections::BTreeSet<u64> =
        missing.iter().map(|part| part % u64::from(count) + 1).collect();
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for shard in shards {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == shard => *last = shard,
            _ => ranges.push((shard, shard)),
        }
    }
    let range = |(first, last): &(u64, u64)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests;
