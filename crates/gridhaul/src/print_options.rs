//! CSV output and the selection of metrics of `run`, `sweep` and `compare`.

use std::borrow::Cow;
use std::fs::{self, OpenOptions};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use gridhaul_cli::print;
use gridhaul_scenario::answer::Answer;

use crate::args::PrintOptions;
use crate::atomic_file;

impl PrintOptions {
    /// Checks before a run that only one format goes to standard output and that the CSV file can
    /// be written. `folder` is the results folder, which may not exist yet.
    ///
    /// # Errors
    /// Both JSON and CSV go to standard output, or the file cannot be written.
    pub(crate) fn check(&self, json: bool, folder: Option<&Path>) -> anyhow::Result<()> {
        if json && self.prints_csv() {
            bail!(
                "--csv and --json both print on standard output\n  \
                 help: remove one of the two options, or write the CSV to a file: --csv=answers.csv"
            );
        }
        match &self.csv {
            Some(file) if !self.prints_csv() && !is_created_later(file, folder) => {
                check_writable(file)
            }
            _ => Ok(()),
        }
    }

    /// Whether CSV goes to standard output.
    pub(crate) fn prints_csv(&self) -> bool {
        self.csv.as_deref() == Some(Path::new("-"))
    }

    /// Prints the CSV or writes it to a file, if requested. Returns whether it was printed.
    pub(crate) fn csv(&self, answers: &[(String, &Answer)]) -> anyhow::Result<bool> {
        let Some(file) = &self.csv else { return Ok(false) };
        let text = crate::csv(answers, &self.only)?;
        if self.prints_csv() {
            print(&text)?;
            return Ok(true);
        }
        atomic_file::write(file, text.as_bytes()).with_context(|| cannot_write(file))?;
        Ok(false)
    }

    /// The answer with the selected metrics only.
    pub(crate) fn columns<'a>(&self, answer: &'a Answer) -> Cow<'a, Answer> {
        let mut answer = Cow::Borrowed(answer);
        if self.only.is_empty() {
            return answer;
        }
        for point in &mut answer.to_mut().points {
            for row in point.flows.iter_mut().chain(&mut point.links) {
                row.metrics.retain(|metric, _| self.only.contains(metric));
            }
        }
        answer
    }
}

/// Whether a file is in a results folder that is created or replaced only after the run.
fn is_created_later(file: &Path, folder: Option<&Path>) -> bool {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    folder.is_some_and(|folder| absolute(file).starts_with(absolute(folder)))
}

/// Opens a file for writing without changing it; a file that did not exist is removed again.
fn check_writable(file: &Path) -> anyhow::Result<()> {
    let exists = file.exists();
    let opened = OpenOptions::new().append(true).create(true).open(file);
    let removed = opened.and_then(|_| if exists { Ok(()) } else { fs::remove_file(file) });
    removed.map_err(|error| {
        anyhow!(
            "{}: {error}\n  help: choose a file in an existing folder: --csv=answers.csv",
            cannot_write(file)
        )
    })
}

fn cannot_write(file: &Path) -> String {
    format!("--csv: cannot write {}", file.display())
}
