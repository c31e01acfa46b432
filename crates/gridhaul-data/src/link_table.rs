//! Tables in CSV that describe links: columns whose names have a quantity and a unit.

use std::fs;
use std::path::Path;

use gridhaul_scenario::units::{Decimal, Duration, Probability};

use crate::trace::csv::cells;
use crate::trace::error::{RowError, Unit, of_cell, of_file, shown, unreadable_file};

/// Largest size of a file in bytes: about five million delivery opportunities.
const SIZE_MAX: u64 = 64 << 20;

/// A column with a number in each row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Column {
    quantity: Quantity,
    name: &'static str,
    /// The unit of the column in nanoseconds, bits per second or parts of one.
    scale: u64,
    /// Index in the file.
    index: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quantity {
    Time,
    Rank,
    Rate,
    Delay,
    Loss,
}

const fn column(quantity: Quantity, name: &'static str, scale: u64) -> Column {
    Column { quantity, name, scale, index: 0 }
}

const COLUMNS: [Column; 13] = [
    column(Quantity::Time, "time_s", 1_000_000_000),
    column(Quantity::Time, "time_ms", 1_000_000),
    column(Quantity::Time, "time_us", 1_000),
    column(Quantity::Time, "time_ns", 1),
    column(Quantity::Rank, "rank_percent", 100),
    column(Quantity::Rank, "rank_ratio", 1),
    column(Quantity::Rate, "rate_bit_per_s", 1),
    column(Quantity::Rate, "rate_kbit_per_s", 1_000),
    column(Quantity::Rate, "rate_mbit_per_s", 1_000_000),
    column(Quantity::Delay, "delay_ms", 1_000_000),
    column(Quantity::Delay, "delay_s", 1_000_000_000),
    column(Quantity::Loss, "loss_percent", 100),
    column(Quantity::Loss, "loss_ratio", 1),
];

/// First words of the names of all columns of this kind.
const STEMS: [&str; 5] = ["time", "rank", "rate", "delay", "loss"];

/// The columns of a file that are used.
#[derive(Debug)]
pub(crate) struct Columns {
    width: usize,
    found: Vec<Column>,
}

/// The columns and the rows of a table. `known` are the quantities that it may have, and `header`
/// explains the first line.
pub(crate) fn rows<'t>(
    text: &'t str,
    known: &[Quantity],
    header: &str,
) -> Result<(Columns, Vec<Row<'t>>), RowError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let Some((_, first)) = lines.next() else { return Err(of_file("the file is empty", header)) };
    let columns = Columns::parse(first.trim_start_matches('\u{feff}'), known, header)?;
    let rows = lines.map(|(number, line)| columns.row(number, line));
    let rows: Vec<_> = rows.collect::<Result<_, _>>()?;
    if rows.is_empty() {
        return Err(of_file("the file has no rows", header));
    }
    Ok((columns, rows))
}

impl Columns {
    fn parse(line: &str, known: &[Quantity], header: &str) -> Result<Self, RowError> {
        let names: Vec<_> = cells(line).map(str::to_ascii_lowercase).collect();
        if names.len() == 1 && line.contains([';', '\t']) {
            return Err(of_file("the columns are not separated by commas", header));
        }
        let mut found: Vec<Column> = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let column = COLUMNS.iter().find(|column| column.name == name);
            let Some(column) = column.filter(|column| known.contains(&column.quantity)) else {
                // A misspelt optional column would be ignored silently.
                let stem = name.split('_').next().unwrap_or_default();
                if STEMS.contains(&stem) {
                    let message = format!("there is no column `{}`", shown(name));
                    return Err(of_file(message, format!("{header}; {}", names_of(stem))));
                }
                continue;
            };
            if let Some(other) = found.iter().find(|other| other.quantity == column.quantity) {
                let message = format!(
                    "there are two columns of the same kind: `{}` and `{}`",
                    other.name, column.name
                );
                return Err(of_file(message, "remove or rename one of them"));
            }
            found.push(Column { index, ..*column });
        }
        Ok(Self { width: names.len(), found })
    }

    /// The column of a quantity, if the file has one.
    pub(crate) fn find(&self, quantity: Quantity) -> Option<Column> {
        self.found.iter().find(|column| column.quantity == quantity).copied()
    }

    /// The column of a quantity that every file has.
    pub(crate) fn required(
        &self,
        quantity: Quantity,
        name: &str,
        header: &str,
    ) -> Result<Column, RowError> {
        let missing = || of_file(format!("there is no column `{name}`"), header);
        self.find(quantity).ok_or_else(missing)
    }

    fn row<'t>(&self, number: u64, line: &'t str) -> Result<Row<'t>, RowError> {
        let row = Row { number, line };
        let found = cells(line).count();
        if found == self.width {
            return Ok(row);
        }
        let message = format!("{found} cells, but the first line names {} columns", self.width);
        let remedy = "separate cells by commas and write numbers with a decimal point: 0.5,250000";
        Err(row.located("", line, message, remedy))
    }
}

/// A line of the file with values.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'t> {
    number: u64,
    line: &'t str,
}

impl Row<'_> {
    /// The value of a cell in the base unit.
    pub(crate) fn number(&self, column: Column) -> Result<u64, RowError> {
        let cell = self.cell(column);
        let value = Decimal::parse(cell)
            .filter(|decimal| !decimal.negative || decimal.digits == 0)
            .and_then(|decimal| u64::try_from(decimal.times(column.scale)?).ok())
            .filter(|value| *value <= Duration::MAX.as_nanos());
        value.ok_or_else(|| {
            let message = format!("expected a number of at least 0, found `{}`", shown(cell));
            self.refused(column, message, "write it like 1.25, without unit")
        })
    }

    /// The probability or rank of a cell.
    pub(crate) fn probability(&self, column: Column) -> Result<Probability, RowError> {
        let cell = self.cell(column);
        let ratio = cell.parse::<f64>().ok().map(|value| value / column.scale as f64);
        ratio.and_then(Probability::new).ok_or_else(|| {
            let most = column.scale;
            let message = format!("expected a number from 0 to {most}, found `{}`", shown(cell));
            self.refused(column, message, "write it like 0.5, without unit")
        })
    }

    /// An error in the cell of a column.
    pub(crate) fn refused(
        &self,
        column: Column,
        message: impl Into<String>,
        remedy: &str,
    ) -> RowError {
        self.located(column.name, self.cell(column), message.into(), remedy)
    }

    fn cell(&self, column: Column) -> &str {
        cells(self.line).nth(column.index).unwrap_or_default()
    }

    fn located(&self, column: &str, cell: &str, message: String, remedy: &str) -> RowError {
        let start = (cell.as_ptr() as usize).saturating_sub(self.line.as_ptr() as usize);
        let span = if cell.is_empty() || start + cell.len() > self.line.len() {
            0..self.line.len()
        } else {
            start..start + cell.len()
        };
        of_cell(Unit::Line, self.number, column, message, remedy).at(self.line, span)
    }
}

/// The names of the columns that begin with a word.
fn names_of(stem: &str) -> String {
    let names = COLUMNS.iter().filter(|column| column.name.starts_with(stem));
    let names: Vec<_> = names.map(|column| column.name).collect();
    format!("columns of this kind: {}", names.join(", "))
}

/// The text of a file; `kind` names it in a remedy.
pub(crate) fn text_of(path: &Path, kind: &str) -> Result<String, RowError> {
    let unreadable = |error| unreadable_file(&error, kind);
    let metadata = path.metadata().map_err(unreadable)?;
    // Reading a device or a pipe may never end.
    if !metadata.is_file() {
        return Err(of_file("this is not a regular file", kind));
    }
    if metadata.len() > SIZE_MAX {
        let message = format!("this file is larger than {} MiB", SIZE_MAX >> 20);
        return Err(of_file(message, "shorten the trace: it starts again at its end"));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        of_file(
            format!("this is not a text file: line {line} is not valid UTF-8"),
            "save the trace as text; decompress compressed files first",
        )
    })
}
