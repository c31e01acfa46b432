//! What `run`, `sweep` and `compare` print besides their tables: CSV, and some columns of many.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use gridhaul_scenario::answer::Answer;

use crate::args::PrintOptions;
use crate::terminal::print;

impl PrintOptions {
    /// Whether something else is printed on standard output.
    ///
    /// # Errors
    /// JSON and CSV are both asked for there.
    pub(crate) fn check(&self, json: bool) -> anyhow::Result<()> {
        if json && self.prints_csv() {
            bail!(
                "--csv and --json both print on standard output\n  \
                 help: leave one of the two out, or write the CSV into a file: --csv=answers.csv"
            );
        }
        Ok(())
    }

    fn prints_csv(&self) -> bool {
        self.csv.as_deref() == Some(Path::new("-"))
    }

    /// Prints or writes the CSV, if it is asked for. Returns whether it was printed.
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

    /// The answer with the columns that are asked for.
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
