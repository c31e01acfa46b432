//! `gridhaul plan`: the cheapest choice that keeps limits.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use gridhaul_model::Model;
use gridhaul_report::{Opening, Report};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, Progress, Quiet};
use gridhaul_scenario::scenario::Scenario;

use super::run::{json, shown, stem};
use crate::args::{Engine, Output, PlanArgs, Verify};
use crate::ask;
use crate::backends::BoundedSim;
use crate::failure::Failure;
use crate::folder::Place;
use crate::plan::{Depth, Outcome, Verification, document, finding, plan, tables};
use crate::terminal::{Bar, print, say, texts};

/// Plans, writes a folder, prints what was found. A request without a choice is a failed check.
pub(crate) fn run(args: &PlanArgs) -> Result<(), Failure> {
    let scenario = ask::load(&args.file, &args.changes, &[], args.output.quiet)?;
    usable(&scenario, &args.file)?;
    let place = Place::new(&target(args), args.output.force)?;
    // Each replication is a job of its own; the plan decides how many run at the same time.
    let simulator = BoundedSim(Engine::sim(1, args.ignore_estimate));
    let (label, quiet) = (stem(&args.file), args.output.quiet);
    let progress = |what: &str| -> Box<dyn Progress> {
        Box::new(Bar::new(&format!("{label}, {what}"), quiet))
    };
    let depth = match args.verify {
        Verify::None => None,
        Verify::Winner => Some(Depth::Winner),
        Verify::Full => Some(Depth::Full),
    };
    let verification = depth.map(|depth| Verification {
        simulator: &simulator,
        depth,
        tries: args.tries.into(),
        threads: args.threads,
        progress: &progress,
    });
    let outcome = plan(&scenario, &Model, verification.as_ref())?;
    let text = json(&document(&scenario, &outcome))?;
    let written = write(place, &scenario, &outcome, &text, &args.output)?;
    if args.output.json {
        print(&text)?;
    } else {
        let tables = texts(&tables(&outcome));
        let finding =
            if outcome.winner.is_some() { finding(&outcome) + "\n" } else { String::new() };
        print([finding, tables].join("\n").trim_start())?;
    }
    if !args.output.quiet {
        say(format_args!("report: {}", shown(&written.join("report.html"))));
    }
    match outcome.winner {
        Some(_) => Ok(()),
        None => Err(Failure::Check(finding(&outcome))),
    }
}

/// Whether there is something to plan, and nothing that would be ignored.
fn usable(scenario: &Scenario, file: &Path) -> anyhow::Result<()> {
    let file = file.display();
    if scenario.plan.is_none() {
        return Err(anyhow!(
            "{file}: there is no [plan] in this scenario\n  help: add what may be chosen \
             ([plan.choose]), what it costs ([plan.cost]) and what must hold ([plan.limit.<flow>])"
        ));
    }
    if !scenario.sweep.is_empty() {
        return Err(anyhow!(
            "{file}: sweep: a plan chooses one value for each key, and a sweep wants them all\n  \
             help: move the keys of the sweep to [plan.choose], or remove it"
        ));
    }
    Ok(())
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
) -> Result<PathBuf, Failure> {
    let answers = answers(outcome)?;
    let shown: Vec<(String, &Answer)> =
        answers.iter().map(|answer| (answer.backend.clone(), answer)).collect();
    let winner = outcome.winner.as_ref().map(|winner| winner.scenario.to_toml());
    let (finding, tables) = (finding(outcome), tables(outcome));
    let report = gridhaul_report::html(&Report {
        title: &scenario.title,
        description: &scenario.description,
        answers: &shown,
        scenario_toml: winner.as_deref().unwrap_or_default(),
        opening: Opening {
            finding: &finding,
            tables: &tables,
            charts: &outcome.pictures,
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
        folder.write_charts(&outcome.pictures)?;
        folder.write_charts(&gridhaul_report::charts(&shown))?;
    }
    Ok(folder.commit()?)
}

/// What the equations and the simulation answer to the winner.
fn answers(outcome: &Outcome) -> Result<Vec<Answer>, Failure> {
    let Some(winner) = &outcome.winner else { return Ok(Vec::new()) };
    let mut answers = vec![Model.run(&winner.scenario, &Quiet)?];
    answers.extend(outcome.simulation());
    Ok(answers)
}
