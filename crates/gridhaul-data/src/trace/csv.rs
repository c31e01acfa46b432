//! Traces in CSV: a header line, then lines of numbers separated by commas.

use std::fmt;
use std::io::{BufRead, Read};

use super::error::{self, Unit, gap, of_cell, of_file, shown};
use super::{Columns, RawRow, RowError, TimeUnit};
use gridhaul_scenario::units::{Decimal, Duration};

/// Longest line in bytes: far above the length of three numbers, but small in memory.
const LINE_MAX: usize = 64 * 1024;

pub(super) struct CsvRows {
    text: Box<dyn BufRead + Send>,
    columns: Columns,
    /// Number of cells of each line.
    width: usize,
    line: u64,
    buffer: Vec<u8>,
}

impl CsvRows {
    pub(super) fn new(text: Box<dyn BufRead + Send>) -> Result<Self, RowError> {
        let columns = Columns { time: 0, unit: super::TIME_UNITS[0], bytes: 0, member: None };
        let mut rows = Self { text, columns, width: 0, line: 0, buffer: Vec::new() };
        let Some(line) = rows.next_line()? else {
            return Err(of_file("the file is empty", "write a header line first: time_s,bytes"));
        };
        let header = line.text.trim_start_matches('\u{feff}');
        let names: Vec<_> = cells(header).map(|name| name.to_ascii_lowercase()).collect();
        if names.len() == 1 && header.contains([';', '\t']) {
            return Err(of_file("the columns are not separated by commas", "write time_s,bytes"));
        }
        (rows.columns, rows.width) = (Columns::find(&names)?, names.len());
        Ok(rows)
    }

    /// The next row; empty lines are skipped.
    pub(super) fn next_row(&mut self) -> Result<Option<RawRow>, RowError> {
        self.parse_row().map_err(|error| self.with_location(error))
    }

    /// Adds the location of the invalid cell of the current line, or of the line.
    pub(super) fn with_location(&self, error: RowError) -> RowError {
        let Ok(line) = std::str::from_utf8(&self.buffer) else { return error };
        let line = line.trim_end();
        let column = match error.column() {
            "" => None,
            "bytes" => Some(self.columns.bytes),
            "member" => self.columns.member,
            _ => Some(self.columns.time),
        };
        let cell =
            column.and_then(|column| cells(line).nth(column)).filter(|cell| !cell.is_empty());
        let span = match cell {
            Some(cell) => {
                let start = cell.as_ptr() as usize - line.as_ptr() as usize;
                start..start + cell.len()
            }
            None => 0..line.len(),
        };
        error.at(line, span)
    }

    fn parse_row(&mut self) -> Result<Option<RawRow>, RowError> {
        let (columns, width) = (self.columns, self.width);
        let Some(Line { number: line, text }) = self.next_line()? else { return Ok(None) };
        let row = RowCells::of(text, columns);
        let count = row.count;
        if count != width {
            return Err(of_cell(
                Unit::Line,
                line,
                "",
                format!("{count} cells, but the first line names {width} columns"),
                "separate cells by commas and write numbers with a decimal point: 0.5,200",
            ));
        }
        let member = match columns.member {
            Some(_) => Some(whole_number(line, "member", row.member)?),
            None => None,
        };
        Ok(Some(RawRow {
            place: line,
            at: time_of(line, columns.unit, row.time)?,
            bytes: whole_number(line, "bytes", row.bytes)?,
            member,
        }))
    }

    /// The next line that is not empty.
    fn next_line(&mut self) -> Result<Option<Line<'_>>, RowError> {
        loop {
            self.line += 1;
            self.buffer.clear();
            let mut limited = (&mut self.text).take(LINE_MAX as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.buffer);
            if read.map_err(|error| error::unreadable(&error))? == 0 {
                return Ok(None);
            }
            if self.buffer.len() > LINE_MAX {
                let message = format!("this line is longer than {LINE_MAX} bytes");
                let remedy = "check that this is a CSV file with one message per line";
                return Err(of_cell(Unit::Line, self.line, "", message, remedy));
            }
            if !self.buffer.trim_ascii().is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.buffer).map_err(|_| {
            let remedy = "save the file as CSV in UTF-8; decompress compressed files first";
            of_cell(Unit::Line, self.line, "", "this is not text in UTF-8", remedy)
        })?;
        Ok(Some(Line { number: self.line, text: text.trim_end() }))
    }
}

/// A line of the file, without its line end.
struct Line<'t> {
    number: u64,
    text: &'t str,
}

/// The cells of a line that a trace uses, and the number of all cells.
#[derive(Default)]
struct RowCells<'t> {
    time: &'t str,
    bytes: &'t str,
    member: &'t str,
    count: usize,
}

impl<'t> RowCells<'t> {
    fn of(line: &'t str, columns: Columns) -> Self {
        let mut row = Self::default();
        for (index, cell) in cells(line).enumerate() {
            if index == columns.time {
                row.time = cell;
            } else if index == columns.bytes {
                row.bytes = cell;
            } else if Some(index) == columns.member {
                row.member = cell;
            }
            row.count += 1;
        }
        row
    }
}

impl fmt::Debug for CsvRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvRows").field("line", &self.line).finish_non_exhaustive()
    }
}

/// The cells of a line (RFC 4180), trimmed and without quotes around them.
pub(crate) fn cells(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let outside = move |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    line.split(outside).map(|cell| {
        let cell = cell.trim();
        cell.strip_prefix('"').and_then(|cell| cell.strip_suffix('"')).unwrap_or(cell).trim()
    })
}

fn number(line: u64, column: &str, cell: &str, example: &str) -> Result<Decimal, RowError> {
    if cell.is_empty() {
        return Err(gap(Unit::Line, line, column));
    }
    let refused = |message: String| {
        let remedy = format!("write it like {example}, without unit");
        of_cell(Unit::Line, line, column, message, remedy)
    };
    match Decimal::parse(cell.strip_prefix('+').unwrap_or(cell)) {
        None => Err(refused(format!("expected a number, found `{}`", shown(cell)))),
        Some(number) if number.negative && number.digits > 0 => {
            Err(refused(format!("{} is negative", shown(cell))))
        }
        Some(number) => Ok(number),
    }
}

fn time_of(line: u64, unit: TimeUnit, cell: &str) -> Result<Duration, RowError> {
    let number = number(line, unit.column, cell, "1.25")?;
    let nanos = number.times(unit.nanos).and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| {
        let message = format!("`{}` is too large a time", shown(cell));
        of_cell(Unit::Line, line, unit.column, message, "count from the beginning of the trace")
    })
}

fn whole_number(line: u64, column: &str, cell: &str) -> Result<u64, RowError> {
    let decimal = number(line, column, cell, "200")?;
    let value = decimal.times(1).and_then(|value| u64::try_from(value).ok());
    // `times` rounds: the value is whole only if the scaled number equals the scaled value.
    let exact = value
        .filter(|&value| decimal.times(1_000_000_000) == Some(u128::from(value) * 1_000_000_000));
    exact.ok_or_else(|| {
        let message = format!("expected a whole number, found `{}`", shown(cell));
        of_cell(Unit::Line, line, column, message, "write it like 200")
    })
}
