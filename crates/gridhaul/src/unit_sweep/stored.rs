//! The stored results of a sweep: what is missing, the answer, and the tables.

use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Context;
use gridhaul_scenario::answer::{Answer, FinishedRun, Point, Run, RunRows, TimeBase};
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::ScenarioPoint;
use gridhaul_scenario::table::TableName;
use gridhaul_sim::Sim;

use super::UnitSweep;
use super::parallel::in_parallel;
use super::parts::Parts;
use super::shard::Shard;
use super::store::Store;
use super::tables::{self, SweepTable};
use crate::error::Error;

/// The results of a sweep that were stored when its folders were read.
pub struct StoredSweep<'a> {
    sweep: &'a UnitSweep<'a>,
    store: Store,
}

/// A table of a sweep, and the file for it.
#[derive(Debug)]
pub struct TableOutput<W> {
    /// The table.
    pub name: TableName,
    /// Takes the table as Parquet.
    pub out: W,
}

/// A point, and its stored replications with their numbers.
type StoredPoint = (ScenarioPoint, Vec<(u32, Run)>);

impl<'a> StoredSweep<'a> {
    pub(super) fn new(sweep: &'a UnitSweep<'a>) -> Result<Self, Error> {
        Ok(Self { sweep, store: Store::open(&sweep.folders)? })
    }

    /// Files in the folders that are damaged; their results are not used.
    #[must_use]
    pub fn damaged(&self) -> &[PathBuf] {
        &self.store.damaged
    }

    /// Whether there are as many results as the sweep needs. They may be those of other points.
    #[must_use]
    pub fn may_be_complete(&self) -> bool {
        let replications = self.sweep.rule.replications().min();
        self.store.run_count() >= self.sweep.points.len() as u64 * u64::from(replications)
    }

    /// The numbers of the parts of a shard with missing results; runs are counted over all points
    /// and replications.
    ///
    /// # Errors
    /// A point that is not a valid scenario, or a damaged result.
    pub fn missing(&self, shard: Shard) -> Result<Vec<u64>, Error> {
        Ok(self.parts(shard).missing(self.sweep.threads())?)
    }

    /// The answer of all stored results, as that of a run: of a point, the replications before the
    /// first missing one count.
    ///
    /// # Errors
    /// No result is stored, or one cannot be read.
    pub fn answer(&self) -> Result<Answer, Error> {
        let sweep = self.sweep;
        let stored: Vec<StoredPoint> =
            self.of_points(0..sweep.points.len(), |number| self.stored_point(number))?;
        let mut ended = Vec::new();
        let mut points = Vec::with_capacity(stored.len());
        for (number, (point, runs)) in stored.into_iter().enumerate() {
            let finished =
                |(replication, run)| FinishedRun { point: number, replication, result: Ok(run) };
            ended.extend(runs.into_iter().map(finished));
            points.push(point);
        }
        let rows = |point: usize| Sim::rows(&points[point].scenario);
        let (backend, time) = (Sim::default(), TimeBase::Virtual);
        let answer =
            Answer::of_replications(sweep.scenario, backend.name(), time, &points, ended, rows)?;
        Ok(answer)
    }

    /// Writes tables of a complete sweep as Parquet. Any number of points fits: a part of them is
    /// in memory at a time. Each point is built once for all tables.
    ///
    /// # Errors
    /// A result is missing or cannot be read, or a table cannot be written.
    pub fn write_tables<W: Write + Send>(&self, outputs: Vec<TableOutput<W>>) -> io::Result<()> {
        self.write(outputs).map_err(tables::io_error)
    }

    fn write<W: Write + Send>(&self, outputs: Vec<TableOutput<W>>) -> anyhow::Result<()> {
        let sweep = self.sweep;
        let (numbers, without_points) =
            (sweep.points.number_columns(), sweep.answer_without_points());
        let table =
            |TableOutput { name, out }| SweepTable::new(name, out, numbers.clone(), sweep.scenario);
        let mut tables: Vec<SweepTable<W>> = outputs.into_iter().map(table).collect();
        for start in (0..sweep.points.len()).step_by(tables::POINTS_PER_PART) {
            let end = sweep.points.len().min(start + tables::POINTS_PER_PART);
            let points = self.of_points(start..end, |number| self.point(number))?;
            let part = Answer { points, ..without_points.clone() };
            for table in &mut tables {
                table.write(sweep.label, &part)?;
            }
        }
        tables.into_iter().try_for_each(SweepTable::finish)
    }

    /// The results of `of_point` for the points of a range.
    fn of_points<T: Send>(
        &self,
        range: Range<usize>,
        of_point: impl Fn(usize) -> anyhow::Result<T> + Sync,
    ) -> anyhow::Result<Vec<T>> {
        let range = range.start as u64..range.end as u64;
        in_parallel(range, self.sweep.threads(), |points: Range<u64>| {
            points.map(|point| of_point(point as usize)).collect()
        })
    }

    pub(super) const fn parts(&self, shard: Shard) -> Parts<'_> {
        let UnitSweep { points, keys, rule, .. } = self.sweep;
        Parts { points, keys, store: &self.store, shard, rule: *rule }
    }

    fn stored_point(&self, number: usize) -> anyhow::Result<StoredPoint> {
        let point = self.sweep.points.get(number)?;
        let max = self.sweep.rule.replications().max();
        let runs = self.store.runs(self.sweep.keys.of(&point.scenario)?, max)?;
        Ok((point, runs))
    }

    /// A point of the answer.
    fn point(&self, number: usize) -> anyhow::Result<Point> {
        let rule = self.sweep.rule;
        let point = self.sweep.points.get(number)?;
        let key = self.sweep.keys.of(&point.scenario)?;
        let runs = self.store.first_runs(key, rule.replications().max())?;
        let mut rows: Vec<RunRows> = runs.into_iter().map(|run| run.rows).collect();
        let complete = rule.complete(&rows);
        rows.truncate(
            complete.with_context(|| format!("point {number}: results are missing"))? as usize
        );
        let names = Sim::rows(&point.scenario)?;
        Ok(Point::of_runs(&point, &names, &rows, TimeBase::Virtual))
    }
}
