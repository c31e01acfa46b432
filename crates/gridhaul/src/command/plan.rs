//! `gridhaul plan`: the cheapest choice that keeps limits.

use std::path::{Path, PathBuf};

use gridhaul::plan::{Depth, Outcome, PlanRequest};
use gridhaul_report::{Report, Summary};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use super::run::{json, load, shown, stem};
use crate::args::{Output, PlanArgs, Verify};
use crate::folder::Place;
use crate::terminal::{Terminal, print, say, texts};

/// Plans, writes a folder, prints what was found. A request without a choice is a failed check.
pub(crate) fn run(args: &PlanArgs) -> Result<(), CommandError> {
    let scenario = load(&args.file, &args.changes, &[], args.output.quiet)?;
    gridhaul::plan::check(&scenario, &args.file.display().to_string())?;
    let place = Place::new(&target(args), args.output.force)?;
    let request = PlanRequest {
        verify: match args.verify {
            Verify::None => None,
            Verify::Winner => Some(Depth::Winner),
            Verify::Full => Some(Depth::Full),
        },
        max_candidates: args.max_candidates.into(),
        threads: args.threads,
        ignore_estimate: args.ignore_estimate,
    };
    let terminal = Terminal::new(args.output.quiet);
    let outcome = gridhaul::plan(&scenario, &request, &stem(&args.file), &terminal)?;
    let text = json(&outcome.document(&scenario))?;
    let written = write(place, &scenario, &outcome, &text, &args.output)?;
    if args.output.json {
        print(&text)?;
    } else {
        let tables = texts(&outcome.tables());
        let finding =
            if outcome.choice().is_some() { outcome.finding() + "\n" } else { String::new() };
        print([finding, tables].join("\n").trim_start())?;
    }
    if !args.output.quiet {
        say(format_args!("report: {}", shown(&written.join("report.html"))));
    }
    match outcome.choice() {
        Some(_) => Ok(()),
        None => Err(CommandError::Check(outcome.finding())),
    }
}

fn target(args: &PlanArgs) -> PathBuf {
    let name = || Path::new("results").join(stem(&args.file) + "-plan");
    args.output.out.clone().unwrap_or_else(name)
}

fn write(
    place: Place,
    scenario: &Scenario,
    outcome: &Outcome,
    json: &str,
    output: &Output,
) -> Result<PathBuf, CommandError> {
    let answers = outcome.answers()?;
    let shown: Vec<(String, &Answer)> =
        answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
    let winner = outcome.choice().map(Scenario::to_toml);
    let (finding, tables) = (outcome.finding(), outcome.tables());
    let report = gridhaul_report::html(&Report {
        title: &scenario.title,
        description: &scenario.description,
        answers: &shown,
        scenario_toml: winner.as_deref().unwrap_or_default(),
        summary: Summary {
            finding: &finding,
            tables: &tables,
            charts: outcome.charts(),
            answers: if shown.is_empty() { "" } else { "The choice in detail" },
        },
    });
    let mut folder = place.begin()?;
    folder.write("plan.json", json.as_bytes())?;
    if let Some(winner) = winner {
        folder.write("scenario.toml", winner.as_bytes())?;
    }
    folder.write("report.html", report.as_bytes())?;
    if output.svg {
        folder.write_charts(outcome.charts())?;
        folder.write_charts(&gridhaul_report::charts(&shown))?;
    }
    Ok(folder.commit()?)
}
