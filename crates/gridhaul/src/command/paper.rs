//! `gridhaul paper`: repeats a paper's experiments and checks every published figure.

use std::path::Path;

use anyhow::{Context, anyhow};
use gridhaul_report::TextTable;
use serde::Serialize;

use super::run::{json, shown};
use crate::args::PaperArgs;
use crate::failure::Failure;
use crate::folder::Place;
use crate::paper::{
    Answers, Findings, Paper, agreement_tables, claim_table, page, pictures, tables,
};
use crate::terminal::{print, print_tables, say};

/// Runs a paper, or lists all of them.
pub(crate) fn run(args: &PaperArgs) -> Result<(), Failure> {
    let papers = Paper::all().map_err(Failure::Fault)?;
    let Some(name) = &args.name else {
        return list(&papers);
    };
    let paper = papers.iter().find(|paper| paper.name == *name).with_context(|| {
        let names: Vec<_> = papers.iter().map(|paper| paper.name).collect();
        format!("there is no paper {name:?}\n  help: choose one of: {}", names.join(", "))
    })?;
    check(paper, args)
}

/// The file `paper.json`.
#[derive(Serialize)]
struct Outcome<'a> {
    gridhaul: &'a str,
    paper: &'a str,
    quick: bool,
    #[serde(flatten)]
    findings: &'a Findings,
}

fn list(papers: &[Paper]) -> Result<(), Failure> {
    let row = |paper: &Paper| {
        let figures = (paper.cells.len() + paper.about.figure.len()).to_string();
        vec![paper.name.into(), figures, paper.about.title.clone(), paper.about.source.clone()]
    };
    let table = TextTable {
        headers: ["name", "figures", "title", "source"].map(String::from).to_vec(),
        rows: papers.iter().map(row).collect(),
        key_columns: 4,
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn check(paper: &Paper, args: &PaperArgs) -> Result<(), Failure> {
    let output = &args.output;
    let default = || Path::new("results").join(format!("paper-{}", paper.name));
    let place = Place::new(&output.out.clone().unwrap_or_else(default), output.force)?;
    let answers = Answers::ask(paper, args.quick, &args.engine, output.quiet)?;
    let findings = Findings::of(paper, &answers, args.quick);
    let outcome = json(&Outcome {
        gridhaul: env!("CARGO_PKG_VERSION"),
        paper: paper.name,
        quick: args.quick,
        findings: &findings,
    })?;
    let folder = write(place, paper, &answers, &findings, &outcome, output.svg)?;
    if output.json {
        print(&outcome)?;
    } else {
        let mut all = tables(paper, &findings.cells);
        all.extend(agreement_tables(paper, &findings.agreements));
        all.extend(claim_table(&findings.claims));
        print_tables(&all)?;
    }
    if !output.quiet {
        say(format_args!("report: {folder}"));
    }
    verdict(&findings)
}

fn write(
    place: Place,
    paper: &Paper,
    answers: &Answers,
    findings: &Findings,
    outcome: &str,
    svg: bool,
) -> Result<String, Failure> {
    let mut folder = place.begin()?;
    folder.write("paper.json", outcome.as_bytes())?;
    let pictures = pictures(paper, findings, answers);
    folder.write("report.html", page(paper, findings, &pictures).as_bytes())?;
    if svg {
        folder.write_charts(&pictures)?;
    }
    for (name, answer) in answers.named() {
        folder.write(&format!("answer-{name}.json"), json(answer)?.as_bytes())?;
    }
    Ok(shown(&folder.commit()?.join("report.html")))
}

fn verdict(findings: &Findings) -> Result<(), Failure> {
    let (all, failed) = (findings.checks(), findings.failed());
    if all == 0 {
        return Err(Failure::Fault(anyhow!("the paper has nothing to check")));
    }
    if failed.is_empty() {
        say(format_args!("{}", findings.summary()));
        return Ok(());
    }
    let (failed_count, names) = (failed.len(), failed.join(", "));
    Err(Failure::Check(format!("{failed_count} of {all} checks do not hold: {names}")))
}
