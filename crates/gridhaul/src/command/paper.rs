//! `gridhaul paper`: reproduces the experiments of a paper and checks every published figure.

use std::ffi::OsString;
use std::path::Path;

use crate::paper::{Paper, Reproduction};
use anyhow::anyhow;
use gridhaul_cli::{print, say};
use gridhaul_report::TextTable;

use super::error::CommandError;
use super::program::start_program;
use super::run::{json, shown};
use crate::args::PaperArgs;
use crate::results_folder::Destination;
use crate::results_kind::{ResultsKind, ResultsOf};
use crate::terminal::{Terminal, print_tables};

/// A paper without scenarios, which a program of its own reproduces.
struct MeasuredPaper {
    name: &'static str,
    figures: usize,
    title: &'static str,
    source: &'static str,
    program: &'static str,
    command: &'static str,
}

const MEASURED: [MeasuredPaper; 1] = [MeasuredPaper {
    name: "reserve",
    // The cells of Table 5.
    figures: 28,
    title: "5G extended functionality integration and testing (deliverable D4.6)",
    source: "Project RESERVE, 2018; Ericsson and RWTH Aachen",
    program: "gridhaul-measure",
    command: "reserve",
}];

/// Reproduces a paper, or lists all papers.
pub(crate) fn run(args: &PaperArgs) -> Result<(), CommandError> {
    let Some(name) = &args.name else { return list(&Paper::all()?) };
    match MEASURED.iter().find(|paper| paper.name == name) {
        Some(paper) => measure(paper, args),
        None => check(named(name)?, args),
    }
}

/// The paper of this name that has scenarios.
fn named(name: &str) -> Result<Paper, CommandError> {
    let mut papers = Paper::all()?;
    if let Some(place) = papers.iter().position(|paper| paper.name == name) {
        return Ok(papers.swap_remove(place));
    }
    let measured = MEASURED.iter().map(|paper| paper.name);
    let names: Vec<_> = papers.iter().map(|paper| paper.name).chain(measured).collect();
    let known = names.join(", ");
    Err(CommandError::Input(anyhow!("unknown paper {name:?}\n  help: choose one of: {known}")))
}

/// Starts the program of a measured paper, which prints its results.
fn measure(paper: &MeasuredPaper, args: &PaperArgs) -> Result<(), CommandError> {
    let output = &args.output;
    if output.svg {
        return Err(CommandError::Input(anyhow!(
            "paper {}: unexpected --svg: the charts are in the report\n  help: use --out DIR for \
             the report, --json for data",
            paper.name
        )));
    }
    let mut arguments = vec![OsString::from(paper.command)];
    let common = &output.common;
    let flags = [
        (common.json, "--json"),
        (common.quiet, "--quiet"),
        (common.force, "--force"),
        (args.quick, "--quick"),
    ];
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    arguments.extend(set.map(|(_, flag)| OsString::from(flag)));
    if let Some(folder) = &output.out {
        arguments.extend([OsString::from("--out"), OsString::from(folder)]);
    }
    start_program(paper.program, &arguments)
}

fn list(papers: &[Paper]) -> Result<(), CommandError> {
    let row = |paper: &Paper| {
        let figures = paper.figures().to_string();
        vec![paper.name.into(), figures, paper.title().into(), paper.source().into()]
    };
    let measured = |paper: &MeasuredPaper| {
        vec![paper.name.into(), paper.figures.to_string(), paper.title.into(), paper.source.into()]
    };
    let table = TextTable {
        headers: ["name", "values and figures", "title", "source"].map(String::from).to_vec(),
        rows: papers.iter().map(row).chain(MEASURED.iter().map(measured)).collect(),
        key_columns: 4,
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn check(paper: Paper, args: &PaperArgs) -> Result<(), CommandError> {
    let output = &args.output;
    let default = || Path::new("results").join(format!("paper-{}", paper.name));
    let target = output.out.clone().unwrap_or_else(default);
    let kind = ResultsKind::of(ResultsOf::Paper, None);
    let destination = Destination::new(&target, kind, output.common.force)?;
    let terminal = Terminal::new(output.common.quiet);
    let reproduction = paper.reproduce(args.quick, &args.engine.to_engine(), &terminal)?;
    let document = json(&reproduction)?;
    let folder = write(destination, &reproduction, &document, output.svg)?;
    if output.common.json {
        print(&document)?;
    } else {
        print_tables(&reproduction.tables())?;
    }
    if !output.common.quiet {
        say(format_args!("report: {folder}"));
    }
    check_result(&reproduction)
}

fn write(
    destination: Destination,
    reproduction: &Reproduction,
    document: &str,
    svg: bool,
) -> Result<String, CommandError> {
    let mut folder = destination.begin()?;
    folder.write("paper.json", document.as_bytes())?;
    let charts = reproduction.charts();
    folder.write("report.html", reproduction.html(&charts).as_bytes())?;
    if svg {
        folder.write_charts(&charts)?;
    }
    for (name, answer) in reproduction.answers() {
        let mut answer = answer.clone();
        answer.remove_replications();
        folder.write_json(&format!("answer-{name}.json"), &answer)?;
    }
    Ok(shown(&folder.commit()?.join("report.html")))
}

fn check_result(reproduction: &Reproduction) -> Result<(), CommandError> {
    let (all, failed) = (reproduction.checks(), reproduction.failed());
    if all == 0 {
        return Err(CommandError::Internal(anyhow!("the paper has no checks")));
    }
    if failed.is_empty() {
        say(format_args!("{}", reproduction.summary()));
        return Ok(());
    }
    let (failed_count, names) = (failed.len(), failed.join(", "));
    let counts = reproduction.summary();
    Err(CommandError::Check(format!("{failed_count} of {all} checks failed: {names}\n  {counts}")))
}
