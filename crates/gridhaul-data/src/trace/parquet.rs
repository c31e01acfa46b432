//! Traces in Parquet, read in batches of a few thousand rows.

use std::fmt;
use std::fs::File;

use gridhaul_scenario::units::Duration;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::error::{Unit, gap, of_cell, of_file};
use super::{Columns, RawRow, RowError};

/// Rows per batch.
const BATCH: usize = 4096;

pub(super) struct ParquetRows {
    file: SerializedFileReader<File>,
    columns: Columns,
    /// The row group that is read next.
    group: usize,
    /// Column readers for time, bytes and member in the current row group.
    readers: Option<[Option<ColumnReader>; 3]>,
    batch: [Vec<Cell>; 3],
    /// Rows of the batch, and of the file, that have been returned.
    taken: usize,
    row: u64,
}

/// A cell that may be null.
type Cell = Option<Number>;

#[derive(Debug, Clone, Copy)]
enum Number {
    Real(f64),
    Whole(i64),
}

impl ParquetRows {
    pub(super) fn new(file: File) -> Result<Self, RowError> {
        let file = SerializedFileReader::new(file).map_err(broken)?;
        let schema = file.metadata().file_metadata().schema_descr();
        let names: Vec<String> =
            schema.columns().iter().map(|column| column.path().string()).collect();
        let columns = Columns::find(&names)?;
        for index in [Some(columns.time), Some(columns.bytes), columns.member].into_iter().flatten()
        {
            let column = schema.column(index);
            let real = matches!(column.physical_type(), Type::DOUBLE | Type::FLOAT);
            let is_whole = matches!(column.physical_type(), Type::INT64 | Type::INT32);
            let flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
            if !flat || !(is_whole || real && index == columns.time) {
                let expected = if index == columns.time { "numbers" } else { "whole numbers" };
                return Err(of_file(
                    format!(
                        "column `{}`: expected {expected}, found {}",
                        names[index],
                        column.physical_type()
                    ),
                    "write times as DOUBLE, `bytes` and `member` as INT64",
                ));
            }
        }
        let batch = [const { Vec::new() }; 3];
        Ok(Self { file, columns, group: 0, readers: None, batch, taken: 0, row: 0 })
    }

    pub(super) fn next_row(&mut self) -> Result<Option<RawRow>, RowError> {
        while self.taken == self.batch[0].len() {
            if !self.fill()? {
                return Ok(None);
            }
        }
        let cells = [0, 1, 2].map(|column| self.batch[column].get(self.taken).copied().flatten());
        self.taken += 1;
        self.row += 1;
        let time = self.columns.unit.column;
        let cell = |cell: Cell, column: &str| cell.ok_or_else(|| gap(Unit::Row, self.row, column));
        let member = match self.columns.member {
            Some(_) => Some(self.whole_number("member", cell(cells[2], "member")?)?),
            None => None,
        };
        Ok(Some(RawRow {
            place: self.row,
            at: self.time(cell(cells[0], time)?)?,
            bytes: self.whole_number("bytes", cell(cells[1], "bytes")?)?,
            member,
        }))
    }

    /// Reads the next rows; false at the end.
    fn fill(&mut self) -> Result<bool, RowError> {
        for batch in &mut self.batch {
            batch.clear();
        }
        self.taken = 0;
        if self.readers.is_none() {
            if self.group == self.file.num_row_groups() {
                return Ok(false);
            }
            let group = self.file.get_row_group(self.group).map_err(broken)?;
            let reader = |index: usize| group.get_column_reader(index).map_err(broken);
            let member = self.columns.member.map(reader).transpose()?;
            let readers =
                [Some(reader(self.columns.time)?), Some(reader(self.columns.bytes)?), member];
            self.readers = Some(readers);
            self.group += 1;
        }
        let Some(readers) = &mut self.readers else { return Ok(false) };
        for (reader, batch) in readers.iter_mut().zip(&mut self.batch) {
            if let Some(reader) = reader {
                read(reader, batch).map_err(broken)?;
            }
        }
        let [time, bytes, member] = self.batch.each_ref().map(Vec::len);
        if time != bytes || self.columns.member.is_some() && time != member {
            return Err(of_file("the columns have different lengths", CUT_OFF));
        }
        if time == 0 {
            self.readers = None;
        }
        Ok(true)
    }

    fn time(&self, number: Number) -> Result<Duration, RowError> {
        let unit = self.columns.unit;
        let refused = |message: String| {
            Err(of_cell(Unit::Row, self.row, unit.column, message, "write it like 1.25"))
        };
        match number {
            Number::Whole(value) => match u64::try_from(value) {
                Err(_) => refused(format!("{value} is negative")),
                Ok(value) => match value.checked_mul(unit.nanos) {
                    Some(nanos) => Ok(Duration::from_nanos(nanos)),
                    None => refused(format!("{value} is too large a time")),
                },
            },
            Number::Real(value) => {
                let nanos = (value * unit.nanos as f64).round();
                if value.is_nan() {
                    refused("this is not a number".into())
                } else if value < 0.0 {
                    refused(format!("{value} is negative"))
                } else if nanos >= u64::MAX as f64 {
                    refused(format!("{value} is too large a time"))
                } else {
                    Ok(Duration::from_nanos(nanos as u64))
                }
            }
        }
    }

    fn whole_number(&self, column: &str, number: Number) -> Result<u64, RowError> {
        let value = match number {
            Number::Whole(value) => u64::try_from(value).ok(),
            Number::Real(_) => None,
        };
        value.ok_or_else(|| {
            let message = "expected a whole number, not negative";
            of_cell(Unit::Row, self.row, column, message, "write it like 200")
        })
    }
}

impl fmt::Debug for ParquetRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetRows").field("row", &self.row).finish_non_exhaustive()
    }
}

const CUT_OFF: &str =
    "the file may be truncated or corrupted: write it again, uncompressed or with Snappy";

#[expect(clippy::needless_pass_by_value, reason = "the function is passed to `map_err`")]
fn broken(error: ParquetError) -> RowError {
    of_file(format!("this Parquet file cannot be read: {error}"), CUT_OFF)
}

fn read(reader: &mut ColumnReader, into: &mut Vec<Cell>) -> Result<(), ParquetError> {
    match reader {
        ColumnReader::Int32ColumnReader(reader) => {
            batch(reader, into, |value| Number::Whole(value.into()))
        }
        ColumnReader::Int64ColumnReader(reader) => batch(reader, into, Number::Whole),
        ColumnReader::FloatColumnReader(reader) => {
            batch(reader, into, |value| Number::Real(value.into()))
        }
        ColumnReader::DoubleColumnReader(reader) => batch(reader, into, Number::Real),
        _ => Err(ParquetError::General("a column of another type".into())),
    }
}

/// Fills a batch, up to the end of the row group.
fn batch<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    into: &mut Vec<Cell>,
    number: impl Fn(T::T) -> Number,
) -> Result<(), ParquetError> {
    while into.len() < BATCH {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let wanted = BATCH - into.len();
        let (rows, ..) = reader.read_records(wanted, Some(&mut levels), None, &mut values)?;
        if rows == 0 {
            break;
        }
        // A required column has no definition levels; in optional columns, level 0 is null.
        let mut values = values.into_iter();
        if levels.is_empty() {
            into.extend(values.map(|value| Some(number(value))));
        } else {
            into.extend(
                levels
                    .iter()
                    .map(|&level| if level > 0 { values.next().map(&number) } else { None }),
            );
        }
    }
    Ok(())
}
