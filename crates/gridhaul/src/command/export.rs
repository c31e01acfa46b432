//! `gridhaul export`: tables of the stored answers of results folders as CSV, JSON or Parquet.

use std::fs;
use std::path::{Path, PathBuf};

use crate::read_answers;
use anyhow::{Context, anyhow};
use gridhaul_cli::{print, say};
use gridhaul_data::table;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::table::Table;

use super::error::CommandError;
use crate::args::ExportArgs;
use crate::atomic_file;
use crate::results_folder::scenario_name;

/// Reads the answers, and prints or writes them.
pub(crate) fn run(args: &ExportArgs) -> Result<(), CommandError> {
    let mut answers = Vec::new();
    for (results, label) in args.results.iter().zip(labels(&args.results)) {
        for path in answer_files(results)? {
            let read = read_answers(&path)?.into_iter();
            answers.extend(read.map(|answer| (label.clone(), answer)));
        }
    }
    let answers: Vec<(String, &Answer)> =
        answers.iter().map(|(label, answer)| (label.clone(), answer)).collect();
    let prints = |file: &Option<PathBuf>| file.as_deref() == Some(Path::new("-"));
    if prints(&args.csv) && prints(&args.json) {
        return Err(anyhow!(
            "--csv and --json both print on standard output\n  \
             help: write one of them to a file: --csv=answers.csv"
        )
        .into());
    }
    let table = Table::new(args.table, &answers, &args.only).map_err(anyhow::Error::new)?;
    if let Some(file) = &args.parquet {
        let bytes = table::encode(table.name.name(), &table.columns)
            .map_err(|error| CommandError::Internal(error.into()))?;
        write(file, &bytes, args.quiet)?;
    }
    if let Some(file) = &args.csv {
        write_text(file, &crate::table_csv(&table)?, args.quiet)?;
    }
    if let Some(file) = &args.json {
        write_text(file, &crate::table_json(&table), args.quiet)?;
    }
    Ok(())
}

/// Prints a text if the file is `-`, or writes it.
fn write_text(file: &Path, text: &str, quiet: bool) -> Result<(), CommandError> {
    if file == Path::new("-") { Ok(print(text)?) } else { write(file, text.as_bytes(), quiet) }
}

fn write(file: &Path, bytes: &[u8], quiet: bool) -> Result<(), CommandError> {
    atomic_file::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))?;
    if !quiet {
        say(format_args!("written: {}", file.display()));
    }
    Ok(())
}

/// The files with answers: the given file, or those of a results folder, `answer.json` first.
pub(super) fn answer_files(results: &Path) -> Result<Vec<PathBuf>, CommandError> {
    if !results.is_dir() {
        return Ok(vec![results.to_owned()]);
    }
    let unreadable = || format!("cannot read {}", results.display());
    let entries = fs::read_dir(results).with_context(unreadable)?;
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>();
    let mut files = paths.with_context(unreadable)?;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "answer.json" || name.starts_with("answer-") && name.ends_with(".json")
    });
    // `answer.json` sorts after `answer-model.json` by its bytes.
    files.sort_by_key(|path| (path.file_stem().is_none_or(|stem| stem != "answer"), path.clone()));
    if files.is_empty() {
        return Err(anyhow!(
            "{}: there is no answer.json in this folder\n  \
             help: give a results folder of `gridhaul run`, `sweep` or `paper`, or an answer.json",
            results.display()
        )
        .into());
    }
    Ok(files)
}

/// The names of results; where several have the same one, their paths as they were given.
fn labels(results: &[PathBuf]) -> Vec<String> {
    let names: Vec<String> = results.iter().map(|results| label(results)).collect();
    let is_unique = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let label = |(name, results): (&String, &PathBuf)| match is_unique(name) {
        true => name.clone(),
        false => results.display().to_string(),
    };
    names.iter().zip(results).map(label).collect()
}

/// The name of the results: that of the folder.
pub(super) fn label(results: &Path) -> String {
    if results.is_dir() {
        return scenario_name(&results.join("scenario.toml"));
    }
    let is_answer = results.file_name().is_some_and(|name| name == "answer.json");
    let absolute = std::path::absolute(results).unwrap_or_else(|_| results.to_owned());
    match absolute.parent().filter(|_| is_answer) {
        Some(folder) => scenario_name(&folder.join("scenario.toml")),
        None => scenario_name(results),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_the_same_name_have_their_paths_as_labels() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["d1/x", "d2/x", "d2/y"].map(|name| folder.path().join(name));
        for path in &paths {
            fs::create_dir_all(path).unwrap();
        }
        let [one, other, _] = paths.each_ref().map(|path| path.display().to_string());
        assert_eq!(labels(&paths), [one, other, "y".to_owned()]);
        assert_eq!(labels(&paths[1..]), ["x", "y"]);
    }
}
