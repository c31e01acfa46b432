//! Errors of a changed scenario with the names of command-line arguments.

use gridhaul_scenario::scenario::{Diagnostic, Scenario, ScenarioError, SourceLocation};

use super::argument::{ArgumentText, Setting, Vary};

/// The sweep entries of a scenario that come from command-line arguments.
#[derive(Debug, Default)]
pub(super) struct ArgumentContext {
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Argument {
    /// Path of the entry: `sweep[0].vary."link.uplink.both.rate"`.
    entry: String,
    /// `--set link.uplink.both.rate`.
    flag: String,
    source: ArgumentText,
}

impl ArgumentContext {
    /// Context of settings that were added as sweep entries, in this order.
    pub(super) fn of_settings<'a>(settings: impl Iterator<Item = &'a Setting>) -> Self {
        let argument = |(index, setting): (usize, &Setting)| {
            Argument::new(index, "--set", &setting.key, &setting.source)
        };
        Self { arguments: settings.enumerate().map(argument).collect() }
    }

    /// Context of axes that were appended to the sweep, in this order.
    pub(super) fn of_axes(scenario: &Scenario, vary: &[Vary]) -> Self {
        let first = scenario.sweep.len().saturating_sub(vary.len());
        let argument = |(index, vary): (usize, &Vary)| {
            Argument::new(first + index, "--vary", &vary.key, &vary.source)
        };
        Self { arguments: vary.iter().enumerate().map(argument).collect() }
    }
}

impl Argument {
    fn new(index: usize, flag: &str, key: &str, source: &ArgumentText) -> Self {
        Self {
            entry: format!("sweep[{index}].vary.{key:?}"),
            flag: format!("{flag} {key}"),
            source: source.clone(),
        }
    }

    /// Makes a diagnostic name the argument and point into it; `rest` is the path below the sweep
    /// entry.
    fn point(&self, diagnostic: &mut Diagnostic, rest: &str) {
        let (value, below) = match rest {
            "" | ".linear" | ".log" => (None, ""),
            ".points" => (Some(2), ""),
            _ => split_index(rest.trim_start_matches(".linear").trim_start_matches(".log")),
        };
        diagnostic.key = format!("{}{below}", self.flag);
        let argument = &self.source.text;
        // Without an index, the diagnostic points at all values or at the key.
        let ends = self.source.values.first().zip(self.source.values.last());
        diagnostic.location = match (value.and_then(|value| self.source.values.get(value)), ends) {
            (Some(span), _) => Some(SourceLocation::in_argument(argument, span.clone(), below)),
            (None, Some((first, last))) if rest.starts_with('.') => {
                Some(SourceLocation::of_argument(argument, first.start..last.end))
            }
            _ => Some(SourceLocation::of_argument(argument, self.source.key.clone())),
        };
    }
}

/// Splits `[1].periodic.size` into 1 and `.periodic.size`.
fn split_index(path: &str) -> (Option<usize>, &str) {
    let entry = path.strip_prefix('[').and_then(|path| path.split_once(']'));
    entry.map_or((None, path), |(entry, below)| (entry.parse().ok(), below))
}

/// Replaces the names of sweep entries in an error by the command-line arguments that they come
/// from.
pub(super) fn with_argument_names(
    mut error: ScenarioError,
    file: &str,
    context: &ArgumentContext,
) -> anyhow::Error {
    file.clone_into(&mut error.file);
    for diagnostic in &mut error.diagnostics {
        let key = diagnostic.key.clone();
        for argument in &context.arguments {
            if let Some(rest) = key.strip_prefix(&argument.entry) {
                argument.point(diagnostic, rest);
            }
        }
    }
    error.into()
}
