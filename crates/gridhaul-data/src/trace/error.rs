//! Errors in traces, with location and remedy.

use std::fmt;
use std::io;
use std::ops::Range;

use gridhaul_scenario::scenario::SourceLocation;
use thiserror::Error;

/// An error in a trace. The display text has the file, the line or row, the column, what was
/// expected and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}{details}")]
pub struct TraceError {
    file: String,
    details: RowError,
}

/// An error without the name of the file.
pub(crate) type RowError = Box<Details>;

/// Message, remedy and location of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Details {
    place: Option<(Unit, u64)>,
    /// The line with the invalid cell; `None` for Parquet.
    excerpt: Option<SourceLocation>,
    column: String,
    message: String,
    remedy: String,
}

/// Unit in which positions are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Lines of a text.
    Line,
    /// Rows of a table.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "only Parquet has rows"))]
    Row,
}

impl TraceError {
    /// File, location, line and message, without the remedy.
    #[must_use]
    pub fn message(&self) -> String {
        let text = self.to_string();
        text.rsplit_once("\n  help: ").map_or(text.clone(), |(message, _)| message.to_owned())
    }

    /// How to correct the error.
    #[must_use]
    pub fn remedy(&self) -> &str {
        &self.details.remedy
    }

    pub(crate) fn new(file: &str, details: RowError) -> Self {
        Self { file: file.to_owned(), details }
    }
}

/// An error of the whole file.
pub(crate) fn of_file(message: impl Into<String>, remedy: impl Into<String>) -> RowError {
    let (message, remedy) = (message.into(), remedy.into());
    Box::new(Details { place: None, excerpt: None, column: String::new(), message, remedy })
}

/// An error in a line or row; `column` may be empty.
pub(crate) fn of_cell(
    unit: Unit,
    place: u64,
    column: &str,
    message: impl Into<String>,
    remedy: impl Into<String>,
) -> RowError {
    let (message, remedy) = (message.into(), remedy.into());
    let (place, column) = (Some((unit, place)), column.to_owned());
    Box::new(Details { place, excerpt: None, column, message, remedy })
}

impl Details {
    /// Adds the location of these bytes of the line.
    pub(crate) fn at(mut self: Box<Self>, line: &str, cell: Range<usize>) -> RowError {
        if let Some((Unit::Line, number)) = self.place {
            let place = SourceLocation::of(line, cell);
            self.excerpt = Some(SourceLocation { line: number as usize, ..place });
        }
        self
    }

    /// The column with the error; empty if it concerns the whole line.
    pub(super) fn column(&self) -> &str {
        &self.column
    }
}

pub(super) fn unreadable(error: &io::Error) -> RowError {
    unreadable_file(error, "name a CSV or Parquet file")
}

/// A file that cannot be read. `otherwise` is the remedy if the reason is none of the common ones.
pub(crate) fn unreadable_file(error: &io::Error, otherwise: &str) -> RowError {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => {
            "check the spelling; a relative path is relative to the folder of the scenario file"
        }
        io::ErrorKind::PermissionDenied => "make the file readable, for example with `chmod u+r`",
        _ => otherwise,
    };
    of_file(format!("cannot read this file: {error}"), remedy)
}

pub(super) fn missing_column(missing: &str, found: &[String]) -> RowError {
    const SHOWN: usize = 8;
    let more = if found.len() > SHOWN { ", …" } else { "" };
    let shown: Vec<_> = found.iter().take(SHOWN).map(|name| format!("`{}`", shown(name))).collect();
    of_file(
        format!("there is no column `{missing}`; the file has {}{more}", shown.join(", ")),
        "the first line lists the columns, separated by commas: time_s,bytes or \
         time_s,bytes,member",
    )
}

/// Two columns with the same meaning.
pub(super) fn doubled_column(one: &str, other: &str) -> RowError {
    let message = if one == other {
        format!("there are two columns `{one}`")
    } else {
        format!("there are two columns of times, `{one}` and `{other}`")
    };
    of_file(message, "remove or rename one of them")
}

/// A cell that is empty.
pub(super) fn gap(unit: Unit, place: u64, column: &str) -> RowError {
    of_cell(
        unit,
        place,
        column,
        "this cell is empty",
        "add the value, or remove the row; times without rows have no messages",
    )
}

/// Text of a file for display, truncated and without control characters.
pub(crate) fn shown(text: &str) -> String {
    const SHOWN: usize = 40;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let more = if text.chars().count() > SHOWN { "…" } else { "" };
    text.chars().take(SHOWN).map(plain).chain(more.chars()).collect()
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some((Unit::Line, line)) => {
                write!(f, ":{line}")?;
                if let Some(place) = &self.excerpt {
                    write!(f, ":{}", place.column)?;
                }
            }
            Some((Unit::Row, row)) => write!(f, ": row {row}")?,
            None => {}
        }
        if !self.column.is_empty() {
            write!(f, ": column `{}`", self.column)?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(place) = &self.excerpt {
            write!(f, "\n{}", place.excerpt())?;
        }
        write!(f, "\n  help: {}", self.remedy)
    }
}
