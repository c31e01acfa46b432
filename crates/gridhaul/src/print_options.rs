//! CSV output and the selection of metrics of `run`, `sweep` and `compare`.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use gridhaul_scenario::answer::Answer;

use crate::args::PrintOptions;
use crate::terminal::print;

impl PrintOptions {
    /// Checks that only one format goes to standard output.
    ///
    /// # Errors
    /// Both JSON and CSV go to standard output.
    pub(crate) fn check(&self, json: bool) -> anyhow::Result<()> {
        if json && self.prints_csv() {
            bail!(
                "--csv and --json both print on standard output\n  \
                 help: remove one of the two options, or write the CSV to a file: --csv=answers.csv"
            );
        }
        Ok(())
    }

    fn prints_csv(&self) -> bool {
        self.csv.as_deref() == Some(Path::new("-"))
    }

    /// Prints the CSV or writes it to a file, if requested. Returns whether it was printed.
    pub(crate) fn csv(&self, answers: &[(String, &Answer)]) -> anyhow::Result<bool> {
        let Some(file) = &self.csv else { return Ok(false) };
        let text = gridhaul::csv(answers, &self.only)?;
        if self.prints_csv() {
            print(&text)?;
            return Ok(true);
        }
        fs::write(file, text).with_context(|| format!("--csv: cannot write {}", file.display()))?;
        Ok(false)
    }

    /// The answer with the selected metrics only.
    pub(crate) fn columns(&self, answer: &Answer) -> Answer {
        let mut answer = answer.clone();
        if self.only.is_empty() {
            return answer;
        }
        for point in &mut answer.points {
            for row in point.flows.iter_mut().chain(&mut point.links) {
                row.metrics.retain(|metric, _| self.only.contains(metric));
            }
        }
        answer
    }
}
