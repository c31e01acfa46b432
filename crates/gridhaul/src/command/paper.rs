//! `gridhaul paper`: repeats a paper's experiments and checks every published figure.

use std::path::Path;

use anyhow::anyhow;
use gridhaul::paper::{Paper, Reproduction};
use gridhaul_report::TextTable;

use super::error::CommandError;
use super::run::{json, shown};
use crate::args::PaperArgs;
use crate::results_folder::Destination;
use crate::terminal::{Terminal, print, print_tables, say};

/// Runs a paper, or lists all of them.
pub(crate) fn run(args: &PaperArgs) -> Result<(), CommandError> {
    match &args.name {
        None => list(&Paper::all()?),
        Some(name) => check(Paper::named(name)?, args),
    }
}

fn list(papers: &[Paper]) -> Result<(), CommandError> {
    let row = |paper: &Paper| {
        let figures = paper.figures().to_string();
        vec![paper.name.into(), figures, paper.title().into(), paper.source().into()]
    };
    let table = TextTable {
        headers: ["name", "figures", "title", "source"].map(String::from).to_vec(),
        rows: papers.iter().map(row).collect(),
        key_columns: 4,
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn check(paper: Paper, args: &PaperArgs) -> Result<(), CommandError> {
    let output = &args.output;
    let default = || Path::new("results").join(format!("paper-{}", paper.name));
    let destination =
        Destination::new(&output.out.clone().unwrap_or_else(default), output.common.force)?;
    let terminal = Terminal::new(output.common.quiet);
    let found = paper.reproduce(args.quick, &args.engine.to_engine(), &terminal)?;
    let document = json(&found)?;
    let folder = write(destination, &found, &document, output.svg)?;
    if output.common.json {
        print(&document)?;
    } else {
        print_tables(&found.tables())?;
    }
    if !output.common.quiet {
        say(format_args!("report: {folder}"));
    }
    verdict(&found)
}

fn write(
    destination: Destination,
    found: &Reproduction,
    document: &str,
    svg: bool,
) -> Result<String, CommandError> {
    let mut folder = destination.begin()?;
    folder.write("paper.json", document.as_bytes())?;
    let charts = found.charts();
    folder.write("report.html", found.html(&charts).as_bytes())?;
    if svg {
        folder.write_charts(&charts)?;
    }
    for (name, answer) in found.answers() {
        folder.write(&format!("answer-{name}.json"), json(answer)?.as_bytes())?;
    }
    Ok(shown(&folder.commit()?.join("report.html")))
}

fn verdict(found: &Reproduction) -> Result<(), CommandError> {
    let (all, failed) = (found.checks(), found.failed());
    if all == 0 {
        return Err(CommandError::Internal(anyhow!("the paper has nothing to check")));
    }
    if failed.is_empty() {
        say(format_args!("{}", found.summary()));
        return Ok(());
    }
    let (failed_count, names) = (failed.len(), failed.join(", "));
    Err(CommandError::Check(format!("{failed_count} of {all} checks do not hold: {names}")))
}
