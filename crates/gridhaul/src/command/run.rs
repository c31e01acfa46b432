//! `gridhaul run`: one scenario, the answer of each backend, one results folder.

use std::io;
use std::path::{Path, PathBuf};

use crate::{Changes, Comparison, Vary, compare};
use anyhow::Context;
use gridhaul_cli::{print, say};
use gridhaul_data::series;
use gridhaul_report::{Detail, Report, TextTable};
use gridhaul_scenario::answer::{Answer, Metric, Point, Row};
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use crate::args::RunArgs;
use crate::concurrent::both;
use crate::interrupt::Graceful;
use crate::results_folder::{Destination, Folder, default_folder, scenario_name};
use crate::results_kind::{ResultsKind, ResultsOf, SCENARIO};
use crate::terminal::{Terminal, texts};

/// Runs a scenario.
pub(crate) fn run(args: &RunArgs) -> Result<(), CommandError> {
    Job { args, vary: &[], suffix: "" }.run()
}

/// The command line of a run or a sweep.
pub(super) struct Job<'a> {
    pub(super) args: &'a RunArgs,
    pub(super) vary: &'a [Vary],
    /// Distinguishes the default folder of a sweep from that of a run.
    pub(super) suffix: &'a str,
}

/// Tables of a sweep, written to the results folder.
pub(super) type WriteTables<'a> = &'a dyn Fn(&mut Folder) -> anyhow::Result<()>;

impl Job<'_> {
    fn run(&self) -> Result<(), CommandError> {
        let scenario = self.load()?;
        self.run_scenario(&scenario)
    }

    /// Reads the scenario with the changes of the command line.
    pub(super) fn load(&self) -> Result<Scenario, CommandError> {
        let RunArgs { file, changes, record, output, print, .. } = self.args;
        print.check(output.common.json, Some(&self.target()))?;
        let changes = record.added_to(changes.to_changes());
        load(file, &changes, self.vary, output.common.quiet)
    }

    /// Checks and locks the results folder.
    pub(super) fn destination(
        &self,
        scenario: &Scenario,
        sweep_tables: bool,
    ) -> Result<Destination, CommandError> {
        let kind = ResultsKind {
            is_sweep: !scenario.sweep.is_empty(),
            sweep_tables,
            captures: !scenario.record.pcap.is_empty(),
            series: scenario.record.interval.is_some(),
            event_logs: !scenario.record.events.is_empty(),
            several_backends: self.args.engine.on.len() > 1,
            ..ResultsKind::of(ResultsOf::Run, Some(&scenario.title))
        };
        Ok(Destination::new(&self.target(), kind, self.args.output.common.force)?)
    }

    /// Runs all backends in memory.
    pub(super) fn run_scenario(&self, scenario: &Scenario) -> Result<(), CommandError> {
        let RunArgs { output, engine, .. } = self.args;
        let destination = self.destination(scenario, false)?;
        let graceful = Graceful::begin();
        let terminal = Terminal::new(output.common.quiet).recording_in(destination.parent()?);
        let answers = crate::run(scenario, &engine.to_engine(), &self.file(), &terminal);
        // From now on, Ctrl-C ends the program and removes the partial folder.
        drop(graceful);
        self.finish(scenario, destination, answers?, &|_| Ok(()))
    }

    /// Writes the results folder and prints the answers.
    pub(super) fn finish(
        &self,
        scenario: &Scenario,
        destination: Destination,
        mut answers: Vec<Answer>,
        tables: WriteTables<'_>,
    ) -> Result<(), CommandError> {
        let RunArgs { output, engine, .. } = self.args;
        answers.iter_mut().for_each(|answer| answer.remove_unrecorded(&scenario.record));
        let labelled: Vec<_> =
            answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
        let comparison = comparison(&labelled, &[]);
        let results = Results { scenario, answers: &labelled, svg: output.svg };
        let (printed, written) = both(
            engine.threads,
            || self.printed(&labelled, comparison.as_ref(), output.common.json),
            || results.write(destination, comparison.as_ref(), tables, engine.threads),
        );
        let written = written?;
        self.print(&labelled, printed)?;
        if !output.common.quiet {
            say(format_args!("report: {}", shown(&written.join("report.html"))));
        }
        // A backend that was not started before the interruption has no answer.
        let missing = engine.on.len() - answers.len();
        if missing > 0 || answers.iter().any(|answer| answer.incomplete) {
            let kept = shown(&written);
            return Err(CommandError::Interrupted(format!(
                "interrupted: {kept} contains the finished results"
            )));
        }
        Ok(())
    }

    /// The answers as text, in the format that the options select; `None` for CSV. `compared` is
    /// the comparison of the headline metrics.
    fn printed(
        &self,
        answers: &[(String, &Answer)],
        compared: Option<&Comparison>,
        as_json: bool,
    ) -> Result<Option<String>, CommandError> {
        let options = &self.args.print;
        if options.prints_csv() {
            return Ok(None);
        }
        let columns: Vec<_> = answers.iter().map(|(_, answer)| options.columns(answer)).collect();
        Ok(Some(match (as_json, &columns[..]) {
            (true, [answer]) => json(answer)?,
            (true, answers) => json(&answers)?,
            (false, [answer]) => texts(&tables(answer, &options.only)),
            (false, many) => {
                let selected =
                    (!options.only.is_empty()).then(|| comparison(answers, &options.only));
                let compared = selected.as_ref().map_or(compared, Option::as_ref);
                let many = many.iter().any(|answer| answer.points.len() > POINTS_WITH_LINKS);
                let mut tables = match compared {
                    Some(comparison) if many => vec![comparison.overview()],
                    Some(comparison) => comparison.tables(),
                    None if options.only.is_empty() => {
                        gridhaul_report::tables(answers, Detail::Headline)
                    }
                    None => gridhaul_report::tables_of(answers, &options.only),
                };
                tables.extend(gridhaul_report::deadline_checks(answers));
                texts(&tables)
            }
        }))
    }

    /// Prints the answers: this text, or CSV.
    fn print(
        &self,
        answers: &[(String, &Answer)],
        printed: Result<Option<String>, CommandError>,
    ) -> Result<(), CommandError> {
        let label = self.label();
        let named: Vec<_> = answers.iter().map(|(_, answer)| (label.clone(), *answer)).collect();
        self.args.print.csv(&named)?;
        printed?.as_deref().map_or(Ok(()), print)?;
        Ok(())
    }

    /// Name of the scenario in tables.
    pub(super) fn label(&self) -> String {
        scenario_name(&self.args.file)
    }

    /// Name of the scenario's file in messages.
    pub(super) fn file(&self) -> String {
        Scenario::name_of(&self.args.file)
    }

    /// Path of the results folder.
    pub(super) fn target(&self) -> PathBuf {
        let default = || default_folder(&self.args.file, self.suffix);
        self.args.output.out.clone().unwrap_or_else(default)
    }
}

/// The comparison of the answers of several backends. Answers that have nothing in common are kept
/// without a comparison, with a warning.
fn comparison(answers: &[(String, &Answer)], only: &[Metric]) -> Option<Comparison> {
    if answers.len() < 2 {
        return None;
    }
    let reason = match compare(answers, only) {
        Ok(comparison) => match comparison.without_rows() {
            None => return Some(comparison),
            Some(reason) => reason,
        },
        Err(error) => error.to_string(),
    };
    say(format_args!("warning: the answers are not compared: {reason}"));
    None
}

/// Largest number of sweep points for which the links are printed as well.
const POINTS_WITH_LINKS: usize = 4;

/// Tables of the selected metrics or, without a selection, of the headline metrics.
fn tables(answer: &Answer, only: &[Metric]) -> Vec<TextTable> {
    let answers = [(String::new(), answer)];
    if !only.is_empty() {
        return gridhaul_report::tables_of(&answers, only);
    }
    let has =
        |rows: fn(&Point) -> &[Row]| answer.points.iter().any(|point| !rows(point).is_empty());
    let (has_flows, has_links) = (has(|point| &point.flows), has(|point| &point.links));
    let mut tables = if answer.points.len() > POINTS_WITH_LINKS && has_flows && has_links {
        let mut flows = gridhaul_report::table(answer);
        flows.add_note("See the report for the links.");
        vec![flows]
    } else {
        gridhaul_report::tables(&answers, Detail::Headline)
    };
    tables.extend(gridhaul_report::deadline_checks(&[(String::new(), answer)]));
    tables
}

/// Reads a scenario and applies the changes of the command line. Unless `quiet`, reports which
/// sweeps of the file are replaced.
pub(crate) fn load(
    file: &Path,
    changes: &Changes,
    vary: &[Vary],
    quiet: bool,
) -> Result<Scenario, CommandError> {
    let (scenario, notes) = crate::load(file, changes, vary)?;
    for note in notes.iter().filter(|_| !quiet) {
        say(format_args!("note: {note}"));
    }
    Ok(scenario)
}

/// A path for messages: relative if it is below the current folder.
pub(crate) fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

/// The text of `answer.json`.
pub(crate) fn json(answer: &impl serde::Serialize) -> Result<String, CommandError> {
    let text = serde_json::to_string_pretty(answer).context("cannot write an answer as JSON");
    Ok(text.map_err(CommandError::Internal)? + "\n")
}

/// Contents of the results folder.
struct Results<'a> {
    scenario: &'a Scenario,
    answers: &'a [(String, &'a Answer)],
    svg: bool,
}

impl Results<'_> {
    /// Writes the answer of the first backend to `answer.json` and those of further backends to
    /// `answer-<backend>.json`. Series, captures and event logs are named in the same manner.
    fn write(
        &self,
        destination: Destination,
        comparison: Option<&Comparison>,
        tables: WriteTables<'_>,
        threads: usize,
    ) -> Result<PathBuf, CommandError> {
        let toml = self.scenario.to_toml();
        let report = || {
            gridhaul_report::html(&Report {
                title: &self.scenario.title,
                description: &self.scenario.description,
                answers: self.answers,
                scenario_toml: &toml,
                ..Report::default()
            })
        };
        let mut folder = destination.begin()?;
        folder.write(SCENARIO, toml.as_bytes())?;
        let (report, answers) = both(threads, report, || self.write_answers(&mut folder));
        answers?;
        folder.write("report.html", report.as_bytes())?;
        if let Some(comparison) = comparison {
            folder.write_json("comparison.json", comparison)?;
        }
        if self.svg {
            folder.write_charts(&gridhaul_report::charts(self.answers))?;
        }
        tables(&mut folder)?;
        Ok(folder.commit()?)
    }

    fn write_answers(&self, folder: &mut Folder) -> anyhow::Result<()> {
        for (index, (backend, answer)) in self.answers.iter().enumerate() {
            let of_backend = if index == 0 { String::new() } else { format!("-{backend}") };
            folder.write_json(&format!("answer{of_backend}.json"), answer)?;
            for series in &answer.series {
                let name = format!("{}{of_backend}.parquet", series.name);
                folder.write_from(&name, |file| {
                    series::write(series, answer, file).map_err(io::Error::other)
                })?;
            }
            for capture in &answer.captures {
                let name = format!("{}{of_backend}.pcapng", capture.name);
                folder.write_from(&name, |file| capture.pcapng.copy_to(file))?;
            }
            for log in &answer.event_logs {
                let name = format!("{}{of_backend}.jsonl", log.name);
                folder.write_event_log(&name, |file| log.jsonl.copy_to(file))?;
            }
        }
        Ok(())
    }
}
