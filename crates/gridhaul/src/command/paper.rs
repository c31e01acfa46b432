//! `gridhaul paper`: repeats a paper's experiments and checks every published figure.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, anyhow};
use gridhaul_report::TextTable;
use gridhaul_scenario::answer::Answer;
use serde::Serialize;

use super::run::{json, shown};
use crate::args::PaperArgs;
use crate::backends;
use crate::failure::Failure;
use crate::folder::Place;
use crate::paper::{Judged, Paper, judge, page, pictures, points_of, tables};
use crate::terminal::{print, print_tables};

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
    cells: &'a [Judged],
}

fn list(papers: &[Paper]) -> Result<(), Failure> {
    let row = |paper: &Paper| {
        let figures = paper.cells.len().to_string();
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
    let mut answers = BTreeMap::new();
    for (name, scenario) in paper.scenarios(args.quick).map_err(Failure::Fault)? {
        let answer = backends::answer(&scenario, &args.engine, &name, output.quiet)?;
        answers.insert(name, answer);
    }
    let judged: Vec<_> = paper
        .cells
        .iter()
        .map(|cell| {
            let points = answers.get(&cell.scenario).map_or(&[][..], |answer| &answer.points);
            let found = points_of(cell, points.iter().map(|point| &point.parameters));
            judge(cell, found.first().and_then(|index| points.get(*index)))
        })
        .collect();
    let outcome = json(&Outcome {
        gridhaul: env!("CARGO_PKG_VERSION"),
        paper: paper.name,
        quick: args.quick,
        cells: &judged,
    })?;
    let folder = write(place, paper, &answers, &judged, &outcome, output.svg)?;
    if output.json {
        print(&outcome)?;
    } else {
        print_tables(&tables(paper, &judged))?;
    }
    if !output.quiet {
        eprintln!("report: {folder}");
    }
    verdict(&judged)
}

fn write(
    place: Place,
    paper: &Paper,
    answers: &BTreeMap<String, Answer>,
    judged: &[Judged],
    outcome: &str,
    svg: bool,
) -> Result<String, Failure> {
    let mut folder = place.begin()?;
    folder.write("paper.json", outcome.as_bytes())?;
    let pictures = pictures(paper, judged, answers);
    folder.write("report.html", page(paper, judged, &pictures).as_bytes())?;
    if svg {
        folder.write_charts(&pictures)?;
    }
    for (name, answer) in answers {
        folder.write(&format!("answer-{name}.json"), json(answer)?.as_bytes())?;
    }
    Ok(shown(&folder.commit()?.join("report.html")))
}

fn verdict(judged: &[Judged]) -> Result<(), Failure> {
    let failed: Vec<_> =
        judged.iter().filter(|cell| !cell.ok).map(|cell| cell.expected.cell.as_str()).collect();
    if judged.is_empty() {
        return Err(Failure::Fault(anyhow!("the paper has no figures to check")));
    }
    if failed.is_empty() {
        eprintln!("all {} figures are within their tolerance", judged.len());
        return Ok(());
    }
    let (failed_count, all) = (failed.len(), judged.len());
    let names = failed.join(", ");
    Err(Failure::Check(format!("{failed_count} of {all} figures are outside: {names}")))
}
