//! Recorded traces: messages read from a CSV or Parquet file, row by row.
//!
//! A trace has the columns `time_s` (or one of `time_ms`, `time_us`, `time_ns`) and `bytes`, and
//! optionally `member`; other columns are ignored. Rows are sorted by time. An empty cell is an
//! error. Only a few thousand rows of a file are in memory at a time.

pub(crate) mod csv;
pub(crate) mod error;
#[cfg(feature = "parquet")]
mod parquet;
mod playback;
mod scenario;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::Path;

use gridhaul_scenario::units::Duration;

use error::RowError;

pub use error::TraceError;
pub use playback::Playback;
pub use scenario::{check, load_file, load_scenario, open};

/// A message of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceRow {
    /// Time at which the message is due, from the beginning of the trace.
    pub at: Duration,
    /// Payload size in bytes, at least 1.
    pub bytes: u64,
    /// Sending member, from 0. `None`: every member sends the message.
    pub member: Option<u64>,
}

/// Limits for the values of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimits {
    /// Number of members.
    pub members: u64,
    /// Largest message in bytes.
    pub bytes_max: u64,
}

/// Reads the rows of a trace in the order of time.
#[derive(Debug)]
pub struct TraceReader {
    file: String,
    rows: Rows,
    limits: TraceLimits,
    /// The first row, which was read when the file was opened.
    first: Option<TraceRow>,
    latest: Duration,
}

/// Rows of a file.
#[derive(Debug)]
enum Rows {
    Csv(Box<csv::CsvRows>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetRows>),
}

/// A row of a file before the checks.
#[derive(Debug, Clone, Copy)]
struct RawRow {
    /// Line or row, counted from 1.
    place: u64,
    at: Duration,
    bytes: u64,
    member: Option<u64>,
}

/// Magic number at the start of Parquet files.
const PARQUET_MAGIC: &[u8; 4] = b"PAR1";

impl TraceReader {
    /// Opens a trace and reads its first row. The content decides whether it is CSV or Parquet.
    ///
    /// # Errors
    /// A missing or unreadable file, missing columns, or an invalid first row.
    pub fn open(path: &Path, limits: TraceLimits) -> Result<Self, TraceError> {
        let name = path.display().to_string();
        let rows = Self::rows_of(path).map_err(|error| TraceError::new(&name, error))?;
        Self::begin(name, rows, limits)
    }

    /// Reads a trace in CSV from a reader; `file` is its name in errors.
    ///
    /// # Errors
    /// Missing columns, or an invalid first row.
    pub fn from_csv(
        text: Box<dyn BufRead + Send>,
        file: &str,
        limits: TraceLimits,
    ) -> Result<Self, TraceError> {
        let rows = csv::CsvRows::new(text).map_err(|error| TraceError::new(file, error))?;
        Self::begin(file.to_owned(), Rows::Csv(Box::new(rows)), limits)
    }

    /// The next row; `None` at the end.
    ///
    /// # Errors
    /// An invalid row, with file, line and column.
    pub fn next_row(&mut self) -> Result<Option<TraceRow>, TraceError> {
        match self.first.take() {
            Some(row) => Ok(Some(row)),
            None => self.read(),
        }
    }

    fn rows_of(path: &Path) -> Result<Rows, RowError> {
        let unreadable = |error: io::Error| error::unreadable(&error);
        let metadata = path.metadata().map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(error::of_file("this is a directory", "name a CSV or Parquet file"));
        }
        // Opening a pipe would wait for a writer, and a device may have no end.
        if !metadata.is_file() {
            return Err(error::of_file("this is not a regular file", "name a CSV or Parquet file"));
        }
        let mut file = File::open(path).map_err(unreadable)?;
        let mut magic = Vec::new();
        (&file).take(PARQUET_MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable)?;
        if magic == PARQUET_MAGIC {
            return Rows::of_parquet(file);
        }
        file.rewind().map_err(unreadable)?;
        Ok(Rows::Csv(Box::new(csv::CsvRows::new(Box::new(BufReader::new(file)))?)))
    }

    fn begin(file: String, rows: Rows, limits: TraceLimits) -> Result<Self, TraceError> {
        let mut reader = Self { file, rows, limits, first: None, latest: Duration::ZERO };
        reader.first = reader.read()?;
        if reader.first.is_none() {
            let error = error::of_file("the file has no rows", "record at least one message");
            return Err(TraceError::new(&reader.file, error));
        }
        Ok(reader)
    }

    fn read(&mut self) -> Result<Option<TraceRow>, TraceError> {
        let raw = match &mut self.rows {
            Rows::Csv(rows) => rows.next_row(),
            #[cfg(feature = "parquet")]
            Rows::Parquet(rows) => rows.next_row(),
        };
        let checked = raw.and_then(|raw| {
            let checked = raw.map(|raw| self.checked(raw)).transpose();
            checked.map_err(|error| match &self.rows {
                Rows::Csv(rows) => rows.with_location(error),
                #[cfg(feature = "parquet")]
                Rows::Parquet(_) => error,
            })
        });
        checked.map_err(|error| TraceError::new(&self.file, error))
    }

    fn checked(&mut self, raw: RawRow) -> Result<TraceRow, RowError> {
        let RawRow { place, at, bytes, member } = raw;
        let refused = |column: &str, message: String, remedy: &str| {
            let unit = match self.rows {
                Rows::Csv(_) => error::Unit::Line,
                #[cfg(feature = "parquet")]
                Rows::Parquet(_) => error::Unit::Row,
            };
            Err(error::of_cell(unit, place, column, message, remedy))
        };
        if at < self.latest {
            let message =
                format!("{at} after {}: the rows are not in the order of time", self.latest);
            return refused("time", message, "sort the rows by time");
        }
        if bytes == 0 {
            let remedy = "remove the row; times without rows have no messages";
            return refused("bytes", "a message has at least one byte".into(), remedy);
        }
        let TraceLimits { members, bytes_max } = self.limits;
        if bytes > bytes_max {
            let message = format!(
                "{bytes} B exceed the payload of a datagram in one packet ({bytes_max} B); \
                 fragments are not supported"
            );
            let remedy = "divide the message into several rows, or use transport = \"tcp\"";
            return refused("bytes", message, remedy);
        }
        if member.is_some_and(|member| member >= members) {
            let message = format!(
                "there is no member {}: the flow has {members}, counted from 0",
                member.unwrap_or_default()
            );
            return refused(
                "member",
                message,
                "increase the `count` of the group, or number the members from 0",
            );
        }
        self.latest = at;
        Ok(TraceRow { at, bytes, member })
    }
}

impl Rows {
    #[cfg(feature = "parquet")]
    fn of_parquet(file: File) -> Result<Self, RowError> {
        Ok(Self::Parquet(Box::new(parquet::ParquetRows::new(file)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn of_parquet(_: File) -> Result<Self, RowError> {
        Err(error::of_file("this program reads no Parquet", "convert the trace to CSV"))
    }
}

/// The indices of the columns of a trace, and the unit of time.
#[derive(Debug, Clone, Copy)]
struct Columns {
    time: usize,
    unit: TimeUnit,
    bytes: usize,
    member: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct TimeUnit {
    column: &'static str,
    nanos: u64,
}

const TIME_UNITS: [TimeUnit; 4] = [
    TimeUnit { column: "time_s", nanos: 1_000_000_000 },
    TimeUnit { column: "time_ms", nanos: 1_000_000 },
    TimeUnit { column: "time_us", nanos: 1_000 },
    TimeUnit { column: "time_ns", nanos: 1 },
];

impl Columns {
    /// Finds the columns of a trace among those of a file. Other columns are ignored.
    fn find(names: &[String]) -> Result<Self, RowError> {
        let place = |wanted: &str| names.iter().position(|name| name == wanted);
        let known = |name: &&String| {
            matches!(name.as_str(), "bytes" | "member")
                || TIME_UNITS.iter().any(|unit| unit.column == name.as_str())
        };
        // Of two columns with the same meaning, one would be ignored silently.
        let meant: Vec<_> = names.iter().filter(known).collect();
        let is_time = |name: &str| name.starts_with("time_");
        for (index, name) in meant.iter().enumerate() {
            let same = |before: &&&String| before == &name || is_time(before) && is_time(name);
            if let Some(before) = meant[..index].iter().find(same) {
                return Err(error::doubled_column(before, name));
            }
        }
        let time = TIME_UNITS.iter().find_map(|unit| Some((place(unit.column)?, *unit)));
        let (Some((time, unit)), Some(bytes)) = (time, place("bytes")) else {
            let missing = if time.is_none() { "time_s" } else { "bytes" };
            return Err(error::missing_column(missing, names));
        };
        Ok(Self { time, unit, bytes, member: place("member") })
    }
}
