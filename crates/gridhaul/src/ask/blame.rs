//! Errors of a changed scenario in the words of the command line.

use gridhaul_scenario::scenario::{Diagnostic, Scenario, ScenarioError, SourceLocation};

use super::argument::{Setting, Vary, Written};

/// Which entries of a scenario's sweep the command line has made.
#[derive(Debug, Default)]
pub(super) struct Blame {
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Argument {
    /// Path of the entry: `sweep[0].vary."link.uplink.both.rate"`.
    entry: String,
    /// `--set link.uplink.both.rate`.
    flag: String,
    written: Written,
}

impl Blame {
    /// The settings are the entries of the sweep, in their order.
    pub(super) fn of_settings<'a>(settings: impl Iterator<Item = &'a Setting>) -> Self {
        let argument = |(index, setting): (usize, &Setting)| {
            Argument::new(index, "--set", &setting.key, &setting.written)
        };
        Self { arguments: settings.enumerate().map(argument).collect() }
    }

    /// The axes are the last entries of the sweep, in their order.
    pub(super) fn of_axes(scenario: &Scenario, vary: &[Vary]) -> Self {
        let first = scenario.sweep.len().saturating_sub(vary.len());
        let argument = |(index, vary): (usize, &Vary)| {
            Argument::new(first + index, "--vary", &vary.key, &vary.written)
        };
        Self { arguments: vary.iter().enumerate().map(argument).collect() }
    }
}

impl Argument {
    fn new(index: usize, flag: &str, key: &str, written: &Written) -> Self {
        Self {
            entry: format!("sweep[{index}].vary.{key:?}"),
            flag: format!("{flag} {key}"),
            written: written.clone(),
        }
    }

    /// Names the argument and points into it; `rest` is the path below the entry.
    fn point(&self, diagnostic: &mut Diagnostic, rest: &str) {
        let (value, below) = match rest {
            "" | ".linear" | ".log" => (None, ""),
            ".points" => (Some(2), ""),
            _ => split(rest.trim_start_matches(".linear").trim_start_matches(".log")),
        };
        diagnostic.key = format!("{}{below}", self.flag);
        let argument = &self.written.text;
        // A single value is meant by its key, too.
        let whole = self.written.values.first().zip(self.written.values.last());
        diagnostic.location = match (value.and_then(|value| self.written.values.get(value)), whole)
        {
            (Some(span), _) => Some(SourceLocation::in_argument(argument, span.clone(), below)),
            (None, Some((first, last))) if rest.starts_with('.') => {
                Some(SourceLocation::of_argument(argument, first.start..last.end))
            }
            _ => Some(SourceLocation::of_argument(argument, self.written.key.clone())),
        };
    }
}

/// `[1].periodic.size` as 1 and `.periodic.size`.
fn split(path: &str) -> (Option<usize>, &str) {
    let entry = path.strip_prefix('[').and_then(|path| path.split_once(']'));
    entry.map_or((None, path), |(entry, below)| (entry.parse().ok(), below))
}

/// Names the flags of the command line where the error names entries of a sweep.
pub(super) fn named(mut error: ScenarioError, file: &str, blame: &Blame) -> anyhow::Error {
    file.clone_into(&mut error.file);
    for diagnostic in &mut error.diagnostics {
        let key = diagnostic.key.clone();
        for argument in &blame.arguments {
            if let Some(rest) = key.strip_prefix(&argument.entry) {
                argument.point(diagnostic, rest);
            }
        }
    }
    error.into()
}
