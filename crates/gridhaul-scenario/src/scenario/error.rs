//! What is wrong with a scenario, shown so that it can be put right without a manual.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

/// Why a text is not a scenario. Displayed, it shows for each diagnostic the file, line and column,
/// the line itself with a caret, what was expected and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}", render(.file, .diagnostics))]
pub struct ScenarioError {
    /// Name of the file, as it was given; empty for a scenario that came from no file.
    pub file: String,
    /// From one to a hundred diagnostics, in the order of the file. Ten of them are displayed.
    pub diagnostics: Vec<Diagnostic>,
}

/// One thing that is wrong with a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Diagnostic {
    /// Path of the key, such as `link.uplink.forward.rate`; empty where none is concerned.
    pub key: String,
    /// What is wrong and what was expected.
    pub message: String,
    /// What to do about it; empty where the message says it.
    pub remedy: String,
    /// Where it stands in the file, where that is known.
    pub place: Option<SourceLocation>,
}

/// A place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// Line, counted from 1; 0 in an argument of the command line.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// The line.
    pub text: String,
    /// Number of characters that are concerned, at least 1.
    pub length: usize,
}

/// Diagnostics that are shown; of more, only the number is told.
const SHOWN: usize = 10;

/// Diagnostics that are collected. A file with more is wrong in one way many times, and finding the
/// place of each would take long.
pub(super) const COLLECTED: usize = 100;

/// Characters of a line that are shown.
const SHOWN_CHARACTERS: usize = 100;

impl ScenarioError {
    pub(crate) fn one(file: &str, diagnostic: Diagnostic) -> Self {
        Self { file: file.to_owned(), diagnostics: vec![diagnostic] }
    }
}

impl Diagnostic {
    /// A diagnostic without a place.
    pub fn new(
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { key: key.into(), message: message.into(), remedy: remedy.into(), place: None }
    }
}

impl SourceLocation {
    /// Where bytes `span` of `text` stand. A span of several lines is cut at the end of its first.
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

    /// Where bytes `span` of an argument of the command line stand.
    #[must_use]
    pub fn of_argument(argument: &str, span: Range<usize>) -> Self {
        Self { line: 0, ..Self::of(argument, span) }
    }

    /// The line with a caret below. Of a long line, the part around the caret is shown.
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
        if let Some(place) = &self.place {
            write!(f, "\n{}", place.excerpt())?;
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
        let least = if diagnostics.len() >= COLLECTED { "at least " } else { "" };
        texts.push(format!("and {least}{} more problems", diagnostics.len() - SHOWN));
    }
    texts.join("\n\n")
}

fn render_one(file: &str, diagnostic: &Diagnostic) -> String {
    match &diagnostic.place {
        Some(place) if place.line > 0 => {
            format!("{file}:{}:{}: {diagnostic}", place.line, place.column)
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
