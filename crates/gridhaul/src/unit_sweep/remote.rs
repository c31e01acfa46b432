//! Units that another scheduler distributes to its workers, such as Dask: one process plans and
//! stores them, and others compute them.

use std::mem;
use std::path::Path;

use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::Scenario;

use super::part_runner::PartRunner;
use super::parts::{PartPlace, PlannedPart, PlannedRuns, run_seconds, runs_per_part};
use super::shard::Shard;
use super::store::Store;
use super::unit_file::{self, UnitRun};
use super::{UnitSweep, trace_check};
use crate::error::Error;

/// A unit of a sweep for another process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteUnit {
    /// Parts of the sweep without a result.
    pub parts: Vec<PartPlace>,
    /// Parts with stored results since the previous unit.
    pub stored: u64,
}

impl UnitSweep<'_> {
    /// Plans the missing units one at a time for so many threads, until `take` returns false.
    ///
    /// # Errors
    /// A folder that cannot be read, a point that is not a valid scenario, or a trace that cannot
    /// be read.
    pub fn plan(
        &self,
        threads: usize,
        mut take: impl FnMut(RemoteUnit) -> bool,
    ) -> Result<(), Error> {
        trace_check(self.scenario, self.file)?;
        let store = Store::open(&self.folders)?;
        let planner = self.planner(&store, Shard::ALL, threads)?;
        let (mut unit, mut seconds) = (RemoteUnit::default(), 0.0);
        for part in planner.missing() {
            let Some(part) = part? else {
                unit.stored += 1;
                continue;
            };
            unit.parts.push(part.place);
            seconds += part.seconds;
            if seconds >= planner.unit_seconds {
                seconds = 0.0;
                if !take(mem::take(&mut unit)) {
                    return Ok(());
                }
            }
        }
        if !unit.parts.is_empty() {
            take(unit);
        }
        Ok(())
    }

    /// Stores a unit that another process has computed.
    ///
    /// # Errors
    /// Results of another version of the program, or a file that cannot be written.
    pub fn store(folder: &Path, contents: &[u8]) -> Result<(), Error> {
        Ok(unit_file::write_encoded(folder, contents)?)
    }

    /// Computes the parts of a unit, without stored results. Returns the contents for
    /// [`UnitSweep::store`]; `None` after an interruption.
    ///
    /// # Errors
    /// A part that the sweep does not have, or a run that failed.
    pub fn compute(
        &self,
        parts: &[PartPlace],
        progress: &dyn Progress,
    ) -> Result<Option<Vec<u8>>, Error> {
        let runs = parts.len() as u64 * runs_per_part(&self.rule);
        let runner = PartRunner::new(self.rule, runs, progress);
        let mut results: Vec<UnitRun> = Vec::new();
        for place in parts {
            let take = &mut |run| {
                results.push(run);
                Ok(())
            };
            if !runner.run(self.part(*place)?, take)? {
                return Ok(None);
            }
        }
        Ok(unit_file::encode(&results)?.map(|(_, contents)| contents))
    }

    fn part(&self, place: PartPlace) -> anyhow::Result<PlannedPart> {
        anyhow::ensure!(place.point < self.point_count(), "there is no point {}", place.point);
        let scenario: Scenario = self.points.get(place.point)?.scenario;
        let key = self.keys.of(&scenario)?;
        let runs = place.replication.map_or(PlannedRuns::Rest(Vec::new()), PlannedRuns::One);
        let seconds = run_seconds(&scenario);
        Ok(PlannedPart { place, scenario: scenario.into(), key, runs, seconds })
    }
}
