//! `gridhaul sweep` and `gridhaul merge`: a scenario for several values of keys. The result of
//! every run of the simulator is stored, so that an interrupted sweep resumes.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::{
    ANSWER_POINTS_MAX, Observer, Shard, StoredSweep, SweepProgress, TableOutput, UnitSweep,
    shards_of, without_units,
};
use anyhow::{Context, anyhow};
use gridhaul_cli::{print, say};
use gridhaul_scenario::answer::{Answer, Warning};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::table::TableName;
use gridhaul_scenario::units::counted;

use super::error::CommandError;
use super::run::{Job, shown};
use crate::args::{MergeArgs, SweepArgs};
use crate::interrupt::Graceful;
use crate::results_folder::{Destination, Folder};
use crate::results_kind::{SWEEP_TABLES, sweep_table_file};
use crate::terminal::Terminal;

/// Runs a scenario for several values of keys.
pub(crate) fn sweep(args: &SweepArgs) -> Result<(), CommandError> {
    let job = Job { args: &args.run, vary: &args.vary, suffix: "-sweep" };
    let scenario = job.load()?;
    check_swept(&scenario, &job)?;
    if let Some(reason) = without_units(&scenario, &args.run.engine.to_engine()) {
        if args.shard.is_some() || args.missing.is_some() || args.units.is_some() {
            return Err(anyhow!(
                "{reason}\n  help: run the sweep without --shard, --missing and --units"
            )
            .into());
        }
        return job.run_scenario(&scenario);
    }
    let folder = args.units.clone().unwrap_or_else(|| units_folder(&job.target()));
    let (label, file) = (job.label(), job.file());
    let sweep = UnitSweep::new(&scenario, &label, vec![folder])?.with_file(&file);
    let sweep = sweep.with_unit_time(args.unit_time).with_threads(args.run.engine.threads);
    warn_of_damaged(&sweep.stored()?);
    let part = SweepPart { job: &job, scenario: &scenario, sweep: &sweep };
    match (args.missing, args.shard) {
        (Some(shards), shard) => part.print_missing(shards, shard.unwrap_or(Shard::ALL)),
        (None, Some(shard)) => part.run_shard(shard),
        (None, None) => part.run(),
    }
}

/// Writes the results folder of a sweep whose runs are stored.
pub(crate) fn merge(args: &MergeArgs) -> Result<(), CommandError> {
    let job = Job { args: &args.run, vary: &args.vary, suffix: "-sweep" };
    let scenario = job.load()?;
    check_swept(&scenario, &job)?;
    if let Some(reason) = without_units(&scenario, &args.run.engine.to_engine()) {
        return Err(anyhow!("{reason}: there is nothing to merge").into());
    }
    let folders = match &args.units[..] {
        [] => vec![units_folder(&job.target())],
        folders => folders.to_vec(),
    };
    let label = job.label();
    let sweep = UnitSweep::new(&scenario, &label, folders)?.with_threads(args.run.engine.threads);
    let stored = sweep.stored()?;
    warn_of_damaged(&stored);
    let part = SweepPart { job: &job, scenario: &scenario, sweep: &sweep };
    if !stored.may_be_complete() {
        part.check_complete(&stored)?;
    }
    let destination = job.destination(&scenario, true)?;
    let finished = part.finish(&stored, destination, &Terminal::new(part.is_quiet()));
    if finished.is_err() {
        // The reason may be a missing result: there may be others than those of the sweep.
        part.check_complete(&stored)?;
    }
    finished
}

/// The folder with the results of runs, next to the results folder.
fn units_folder(target: &Path) -> PathBuf {
    let mut name = target.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".units");
    target.with_file_name(name)
}

fn check_swept(scenario: &Scenario, job: &Job<'_>) -> Result<(), CommandError> {
    if scenario.sweep.is_empty() {
        return Err(anyhow!(
            "{}: the scenario has no sweep\n  help: vary a key with --vary KEY=VALUES, such as \
             'link.uplink.forward.rate=1 Mbit/s,2 Mbit/s', or with [[sweep]] in the file",
            job.file()
        )
        .into());
    }
    Ok(())
}

fn warn_of_damaged(stored: &StoredSweep<'_>) {
    for path in stored.damaged() {
        say(format_args!(
            "warning: {} is damaged, or of an earlier version without a checksum: its runs are \
             repeated; remove this file",
            shown(path)
        ));
    }
}

fn missing_text(missing: u64, sweep: &UnitSweep<'_>) -> String {
    format!("{missing} of {} have no result", counted(sweep.part_count(), sweep.part_noun()))
}

fn interrupted(done: SweepProgress) -> CommandError {
    let finished = counted(done.finished, "run");
    CommandError::Interrupted(format!("interrupted after {finished}; the same command resumes"))
}

/// A sweep with stored results.
struct SweepPart<'a> {
    job: &'a Job<'a>,
    scenario: &'a Scenario,
    sweep: &'a UnitSweep<'a>,
}

impl SweepPart<'_> {
    fn print_missing(&self, shards: u32, shard: Shard) -> Result<(), CommandError> {
        let missing = self.sweep.missing(shard)?;
        if !missing.is_empty() {
            print(&format!("--array={}\n", shards_of(&missing, shards)))?;
        }
        if !self.is_quiet() {
            let text = missing_text(missing.len() as u64, self.sweep);
            say(format_args!("{text}"));
        }
        Ok(())
    }

    fn is_quiet(&self) -> bool {
        self.job.args.output.common.quiet
    }

    /// Computes the runs of a shard, without a results folder.
    fn run_shard(&self, shard: Shard) -> Result<(), CommandError> {
        let graceful = Graceful::begin();
        let terminal = Terminal::new(self.is_quiet());
        let done = self.sweep.run(shard, &self.job.args.engine.to_engine(), &terminal);
        drop(graceful);
        let done = done?;
        if done.interrupted {
            return Err(interrupted(done));
        }
        if !self.is_quiet() {
            say(format_args!("finished: {}", counted(done.finished, "run")));
        }
        Ok(())
    }

    /// Computes all runs and writes the results folder.
    fn run(&self) -> Result<(), CommandError> {
        let destination = self.job.destination(self.scenario, true)?;
        let graceful = Graceful::begin();
        let terminal = Terminal::new(self.is_quiet());
        let done = self.sweep.run(Shard::ALL, &self.job.args.engine.to_engine(), &terminal);
        drop(graceful);
        let done = done?;
        if done.interrupted && !self.has_answer() {
            return Err(interrupted(done));
        }
        let stored = self.sweep.stored()?;
        if !done.interrupted {
            return self.finish(&stored, destination, &terminal);
        }
        let answer = stored.answer()?;
        terminal.on_answer(&answer, true);
        self.job.finish(self.scenario, destination, vec![answer], &|_| Ok(()))
    }

    const fn has_answer(&self) -> bool {
        self.sweep.point_count() <= ANSWER_POINTS_MAX
    }

    /// Checks that no result is missing.
    fn check_complete(&self, stored: &StoredSweep<'_>) -> Result<(), CommandError> {
        match stored.missing(Shard::ALL)?.len() {
            0 => Ok(()),
            missing => Err(CommandError::Check(format!(
                "{}\n  help: run `gridhaul sweep` with the same options again",
                missing_text(missing as u64, self.sweep)
            ))),
        }
    }

    /// Writes the results folder of a complete sweep.
    fn finish(
        &self,
        stored: &StoredSweep<'_>,
        destination: Destination,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let answer =
            if self.has_answer() { stored.answer()? } else { self.answer_without_points() };
        if answer.incomplete {
            self.check_complete(stored)?;
        }
        terminal.on_answer(&answer, true);
        let tables = |folder: &mut Folder| write_tables(stored, folder);
        self.job.finish(self.scenario, destination, vec![answer], &tables)
    }

    /// The answer of a sweep whose points are in the tables only.
    fn answer_without_points(&self) -> Answer {
        let mut answer = self.sweep.answer_without_points();
        let message = format!(
            "the {} points of the sweep are in answers.parquet and replications.parquet only",
            self.sweep.point_count()
        );
        answer.warnings.push(Warning { about: "sweep".to_owned(), message });
        answer
    }
}

fn write_tables(stored: &StoredSweep<'_>, folder: &mut Folder) -> anyhow::Result<()> {
    let output = |name: TableName| -> anyhow::Result<TableOutput<File>> {
        Ok(TableOutput { name, out: folder.create(&sweep_table_file(name))? })
    };
    let outputs = SWEEP_TABLES.map(output);
    let outputs = outputs.into_iter().collect::<anyhow::Result<_>>()?;
    stored.write_tables(outputs).context("the tables of the sweep")
}
