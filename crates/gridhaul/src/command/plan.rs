//! `gridhaul plan`: the cheapest configuration that meets limits.

use std::path::PathBuf;

use crate::plan::{PlanOutcome, PlanRequest, VerificationDepth};
use gridhaul_cli::{print, say};
use gridhaul_report::{Report, Summary};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use super::run::{json, load, shown};
use crate::args::{OutputOptions, PlanArgs, Verify};
use crate::interrupt::Graceful;
use crate::results_folder::{Destination, default_folder, scenario_name};
use crate::results_kind::{ResultsKind, ResultsOf};
use crate::terminal::{Terminal, texts};

/// Plans, writes the results folder and prints the result. If no candidate meets the limits, the
/// check has failed.
pub(crate) fn run(args: &PlanArgs) -> Result<(), CommandError> {
    let scenario = load(&args.file, &args.changes.to_changes(), &[], args.output.common.quiet)?;
    crate::plan::check(&scenario, &args.file.display().to_string())?;
    let kind = ResultsKind::of(ResultsOf::Plan, Some(&scenario.title));
    let destination = Destination::new(&target(args), kind, args.output.common.force)?;
    let request = PlanRequest {
        verify: match args.verify {
            Verify::None => None,
            Verify::Winner => Some(VerificationDepth::Winner),
            Verify::Full => Some(VerificationDepth::Full),
        },
        max_candidates: args.max_candidates.into(),
        runs: args.runs.into(),
        threads: args.threads,
        ignore_estimate: args.ignore_estimate,
    };
    let terminal = Terminal::new(args.output.common.quiet).with_lines();
    let graceful = Graceful::begin();
    let outcome = crate::plan(&scenario, &request, &scenario_name(&args.file), &terminal)?;
    drop(graceful);
    let text = json(&outcome.document(&scenario))?;
    let written = write(destination, &scenario, &outcome, &text, &args.output)?;
    if args.output.common.json {
        print(&text)?;
    } else {
        let tables = texts(&outcome.tables());
        let summary =
            if outcome.choice().is_some() { outcome.summary() + "\n" } else { String::new() };
        print([summary, tables].join("\n").trim_start())?;
    }
    if !args.output.common.quiet {
        say(format_args!("report: {}", shown(&written.join("report.html"))));
    }
    match outcome.choice() {
        Some(_) => Ok(()),
        None => Err(CommandError::Check(outcome.summary())),
    }
}

fn target(args: &PlanArgs) -> PathBuf {
    args.output.out.clone().unwrap_or_else(|| default_folder(&args.file, "-plan"))
}

fn write(
    destination: Destination,
    scenario: &Scenario,
    outcome: &PlanOutcome,
    json: &str,
    output: &OutputOptions,
) -> Result<PathBuf, CommandError> {
    let answers = outcome.answers()?;
    let shown: Vec<(String, &Answer)> =
        answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
    let winner = outcome.choice().map(Scenario::to_toml);
    let (summary, tables) = (outcome.summary(), outcome.tables());
    let report = gridhaul_report::html(&Report {
        title: &scenario.title,
        description: &scenario.description,
        answers: &shown,
        scenario_toml: winner.as_deref().unwrap_or_default(),
        summary: Summary {
            finding: &summary,
            tables: &tables,
            charts: outcome.charts(),
            answers: if shown.is_empty() { "" } else { "Results of the chosen configuration" },
        },
    });
    let mut folder = destination.begin()?;
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
