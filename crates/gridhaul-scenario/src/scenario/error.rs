//! Errors in scenarios, with location and remedy.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

/// The errors of a scenario. The display text has for each diagnostic the file, line and column,
/// the line itself with a caret, what was expected and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", render(.file, .diagnostics))]
pub struct ScenarioError {
    /// Name of the file, as given; empty for a scenario that was not read from a file.
    pub file: String,
    /// From 1 to 100 diagnostics, in the order of the file. Ten of them are displayed.
    pub diagnostics: Vec<Diagnostic>,
}

/// One error in a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostic {
    /// Path of the key, such as `link.uplink.forward.rate`; empty if the error concerns no key.
    pub key: String,
    /// The error, and the expected value.
    pub message: String,
    /// How to correct the error; empty if the message is sufficient.
    pub remedy: String,
    /// Location in the file, if known.
    pub location: Option<SourceLocation>,
}

/// A location in the text of a file or in a command-line argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// Line number from 1; 0 in a command-line argument.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line.
    pub text: String,
    /// Number of characters to mark, at least 1.
    pub length: usize,
}

/// Number of diagnostics that are displayed; the number of the others follows.
const SHOWN: usize = 10;

/// Largest number of diagnostics that are collected. A file with more diagnostics contains one
/// error many times, and locating each of them would take long.
pub(super) const COLLECTED: usize = 100;

/// Largest number of characters of a line that are displayed.
const SHOWN_CHARACTERS: usize = 100;

impl ScenarioError {
    pub(crate) fn one(file: &str, diagnostic: Diagnostic) -> Self {
        Self { file: file.to_owned(), diagnostics: vec![diagnostic] }
    }
}

impl Diagnostic {
    /// A diagnostic without a location.
    pub fn new(
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), message: message.into(), remedy: remedy.into(), location: None }
    }
}

impl SourceLocation {
    /// Location of the bytes `span` of `text`. A span of several lines ends at the end of its first
    /// line.
    #[must_use]
    pub fn of(text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start);
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let stop = floor(text, span.end).clamp(start, end);
        Self {
            line: text[..begin].matches('\n').count() + 1,
            column: text[begin..start].chars().count() + 1,
            text: text[begin..end].trim_end_matches('\r').to_owned(),
            length: text[start..stop].chars().count().max(1),
        }
    }

    /// The marked part of the line.
    pub(super) fn marked(&self) -> &str {
        let start = self.text.char_indices().nth(self.column - 1).map_or(0, |(start, _)| start);
        let rest = &self.text[start..];
        rest.char_indices().nth(self.length).map_or(rest, |(end, _)| &rest[..end])
    }

    /// Location of the bytes `span` of a command-line argument.
    #[must_use]
    pub fn of_argument(argument: &str, span: Range<usize>) -> Self {
        Self { line: 0, ..Self::of(argument, span) }
    }

    /// The line with a caret below it. Of a long line, only the part around the caret.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let characters = self.text.chars().count();
        let first = match characters {
            0..=SHOWN_CHARACTERS => 0,
            _ => (self.column - 1).saturating_sub(SHOWN_CHARACTERS / 3),
        };
        let shown: String = self.text.chars().skip(first).take(SHOWN_CHARACTERS).collect();
        let shown = shown.replace(|c: char| c == '\t' || c.is_control(), " ");
        let line = if self.line == 0 { " ".to_owned() } else { self.line.to_string() };
        let margin = " ".repeat(line.len());
        let before = if first > 0 { "…" } else { "" };
        let after = if first + SHOWN_CHARACTERS < characters { "…" } else { "" };
        let offset = self.column - 1 - first + before.chars().count();
        let length = self.length.min((SHOWN_CHARACTERS + 1).saturating_sub(offset).max(1));
        format!(
            "{margin} |\n{line} | {before}{shown}{after}\n{margin} | {}{}",
            " ".repeat(offset),
            "^".repeat(length),
        )
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        if let Some(location) = &self.location {
            write!(f, "\n{}", location.excerpt())?;
        }
        if !self.remedy.is_empty() {
            write!(f, "\n  help: {}", self.remedy)?;
        }
        Ok(())
    }
}

fn render(file: &str, diagnostics: &[Diagnostic]) -> String {
    let mut texts: Vec<_> =
        diagnostics.iter().take(SHOWN).map(|diagnostic| render_one(file, diagnostic)).collect();
    if diagnostics.len() > SHOWN {
        let at_least = if diagnostics.len() >= COLLECTED { "at least " } else { "" };
        texts.push(format!("and {at_least}{} more errors", diagnostics.len() - SHOWN));
    }
    texts.join("\n\n")
}

fn render_one(file: &str, diagnostic: &Diagnostic) -> String {
    match &diagnostic.location {
        Some(location) if location.line > 0 => {
            format!("{file}:{}:{}: {diagnostic}", location.line, location.column)
        }
        _ if file.is_empty() => diagnostic.to_string(),
        _ => format!("{file}: {diagnostic}"),
    }
}

/// The largest character boundary that is not above `index`.
fn floor(text: &str, index: usize) -> usize {
    let index = index.min(text.len());
    (0..=index).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0)
}
