//! `gridhaul compare`: compares scenarios, results and backends.

use std::path::{Path, PathBuf};

use crate::{compare, read_answers};
use anyhow::anyhow;
use gridhaul_cli::{print, say};
use gridhaul_data::trace;
use gridhaul_report::Report;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::{Replications, Scenario};

use super::error::CommandError;
use super::run::{json, shown};
use crate::args::CompareArgs;
use crate::results_folder::{Destination, scenario_name};
use crate::results_kind::{ResultsKind, ResultsOf};
use crate::terminal::{Terminal, print_tables};

/// Compares every answer with the first one.
pub(crate) fn run(args: &CompareArgs) -> Result<(), CommandError> {
    let target = args.out.clone().unwrap_or_else(|| default_folder(&args.files));
    args.print.check(args.common.json, Some(&target))?;
    let kind = ResultsKind::of(ResultsOf::Compare, None);
    let destination = Destination::new(&target, kind, args.common.force)?;
    let terminal = Terminal::new(args.common.quiet);
    let mut compared = Vec::new();
    for file in &args.files {
        compared.extend(answers_of(file, args, &terminal)?);
    }
    if compared.len() < 2 {
        let help = "give a second file, or several backends: --on sim,model";
        return Err(anyhow!("compare needs at least two answers, found one\n  help: {help}").into());
    }
    if args.replications.is_some() && compared.iter().all(|one| one.scenario.is_none()) {
        let help = "give scenario files, or leave the option out";
        return Err(
            anyhow!("--replications: stored answers are not run again\n  help: {help}").into()
        );
    }
    make_labels_unique(&mut compared);
    let answers: Vec<_> = compared.iter().map(|one| (one.label.clone(), &one.answer)).collect();
    let comparison = compare(&answers, &args.print.only)?;
    let without_rows = comparison.without_rows();
    if let Some(reason) = &without_rows {
        say(format_args!("warning: nothing is compared: {reason}"));
    }
    let text = json(&comparison)?;
    if args.print.csv(&answers)? {
        // With CSV on standard output, the comparison is only written to the folder.
    } else if args.common.json {
        print(&text)?;
    } else {
        let mut tables = comparison.tables();
        tables.extend(gridhaul_report::deadline_checks(&answers));
        print_tables(&tables)?;
    }
    let folder = write(destination, &compared, &text)?;
    if !args.common.quiet {
        say(format_args!("report: {folder}"));
    }
    match comparison.differences() {
        0 if args.must_agree && without_rows.is_some() => {
            Err(CommandError::Check("no metric is compared".into()))
        }
        0 => Ok(()),
        _ if !args.must_agree => Ok(()),
        1 => Err(CommandError::Check("1 metric differs significantly".into())),
        count => Err(CommandError::Check(format!("{count} metrics differ significantly"))),
    }
}

/// The results folder without `--out`: named after the first compared files.
fn default_folder(files: &[PathBuf]) -> PathBuf {
    let names: Vec<_> = files.iter().take(NAMES_MAX).map(|file| label(file)).collect();
    Path::new("results").join(format!("compare-{}", names.join("-")))
}

/// Largest number of names in the name of a folder.
const NAMES_MAX: usize = 4;

/// An answer and its origin.
struct LabelledAnswer {
    label: String,
    file: String,
    answer: Answer,
    scenario: Option<Scenario>,
}

fn answers_of(
    file: &Path,
    args: &CompareArgs,
    terminal: &Terminal,
) -> Result<Vec<LabelledAnswer>, CommandError> {
    let stored = if file.is_dir() { Some(file.join(ResultsOf::Run.file())) } else { None };
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    let (label, shown) = (label(file), file.display().to_string());
    if let Some(path) = stored.or_else(|| is_json.then(|| file.to_owned())) {
        return Ok(with_labels(read_answers(&path)?, &label, &shown, None));
    }
    let mut scenario = trace::load_scenario(file)?;
    scenario.replications = args.replications.map_or(scenario.replications, Replications::Fixed);
    let answers =
        crate::run(&scenario, &args.engine.to_engine(), &Scenario::name_of(file), terminal)?;
    Ok(with_labels(answers, &label, &shown, Some(&scenario)))
}

/// The answers of a file with their origin. Several of them have the name of their backend.
fn with_labels(
    answers: Vec<Answer>,
    label: &str,
    file: &str,
    scenario: Option<&Scenario>,
) -> Vec<LabelledAnswer> {
    let several = answers.len() > 1;
    let one = |answer: Answer| {
        let by = |name: &str| match several {
            true => format!("{name} ({})", answer.backend),
            false => name.to_owned(),
        };
        let (label, file) = (by(label), by(file));
        LabelledAnswer { label, file, answer, scenario: scenario.cloned() }
    };
    answers.into_iter().map(one).collect()
}

fn label(file: &Path) -> String {
    let answer = file.file_name().is_some_and(|name| name == ResultsOf::Run.file());
    let named = if answer { file.parent().unwrap_or(file) } else { file };
    scenario_name(named)
}

/// Replaces labels that occur more than once by the whole path.
fn make_labels_unique(compared: &mut [LabelledAnswer]) {
    let labels: Vec<_> = compared.iter().map(|one| one.label.clone()).collect();
    for one in compared {
        if labels.iter().filter(|label| **label == one.label).count() > 1 {
            one.label.clone_from(&one.file);
        }
    }
}

fn write(
    destination: Destination,
    compared: &[LabelledAnswer],
    comparison: &str,
) -> Result<String, CommandError> {
    let answers: Vec<_> = compared.iter().map(|one| (one.label.clone(), &one.answer)).collect();
    let scenarios = compared.iter().filter_map(|one| one.scenario.as_ref());
    let toml: Vec<_> = scenarios.map(Scenario::to_toml).collect();
    let title = answers.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>().join(" / ");
    let report = gridhaul_report::html(&Report {
        title: &title,
        description: "",
        answers: &answers,
        scenario_toml: &toml.join("\n\n"),
        ..Report::default()
    });
    let mut folder = destination.begin()?;
    folder.write("comparison.json", comparison.as_bytes())?;
    folder.write("report.html", report.as_bytes())?;
    Ok(shown(&folder.commit()?.join("report.html")))
}
