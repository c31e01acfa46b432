//! Errors of a changed scenario with the names of command-line arguments, or of keys.

use gridhaul_scenario::scenario::{Diagnostic, Scenario, ScenarioError, SourceLocation};

use super::argument::{ArgumentText, Setting, Vary};

/// Where changes of a scenario come from, for their names in errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    /// Arguments of the command line, such as `--set link.uplink.forward.rate`.
    #[default]
    Arguments,
    /// A program, which has no options: errors name the key alone.
    Program,
}

impl Origin {
    /// The name of a change that the command line makes with an option.
    pub(super) fn name(self, option: &str, change: &str) -> String {
        match self {
            Self::Arguments => format!("{option} {change}"),
            Self::Program => change.to_owned(),
        }
    }
}

/// The sweep entries of a scenario that come from command-line arguments.
#[derive(Debug, Default)]
pub(super) struct ArgumentContext {
    arguments: Vec<Argument>,
}

#[derive(Debug)]
struct Argument {
    /// Path of the entry: `sweep[0].vary."link.uplink.both.rate"`.
    entry: String,
    /// `link.uplink.both.rate`.
    key: String,
    /// `--set link.uplink.both.rate`, or the key alone.
    name: String,
    source: ArgumentText,
}

impl ArgumentContext {
    /// Context of settings that were added as sweep entries, in this order.
    pub(super) fn of_settings<'a>(
        settings: impl Iterator<Item = &'a Setting>,
        origin: Origin,
    ) -> Self {
        let argument = |(index, Setting { key, source, .. }): (usize, &Setting)| {
            Argument::new(index, key, origin.name("--set", key), source)
        };
        Self { arguments: settings.enumerate().map(argument).collect() }
    }

    /// Context of axes that were appended to the sweep, in this order.
    pub(super) fn of_axes(scenario: &Scenario, vary: &[Vary], origin: Origin) -> Self {
        let first = scenario.sweep.len().saturating_sub(vary.len());
        let argument = |(index, Vary { key, source, .. }): (usize, &Vary)| {
            Argument::new(first + index, key, origin.name("--vary", key), source)
        };
        Self { arguments: vary.iter().enumerate().map(argument).collect() }
    }
}

impl Argument {
    fn new(index: usize, key: &str, name: String, source: &ArgumentText) -> Self {
        let entry = format!("sweep[{index}].vary.{key:?}");
        Self { entry, key: key.to_owned(), name, source: source.clone() }
    }

    /// Makes a diagnostic name the argument and point into it; `rest` is the path below the sweep
    /// entry.
    fn point(&self, diagnostic: &mut Diagnostic, rest: &str) {
        let (value, below) = match rest {
            "" | ".linear" | ".log" => (None, ""),
            ".points" => (Some(2), ""),
            _ => split_index(rest.trim_start_matches(".linear").trim_start_matches(".log")),
        };
        diagnostic.key = format!("{}{below}", self.name);
        // The message of a value that refers to something else begins with the key as well.
        let repeated = format!("{}{below}: ", self.key);
        if let Some(message) = diagnostic.message.strip_prefix(&repeated) {
            diagnostic.message = message.to_owned();
        }
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
