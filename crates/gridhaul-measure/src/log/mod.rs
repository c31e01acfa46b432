//! The log of a run: a folder of Parquet files with one row for each message.
//!
//! A Parquet file is readable only when its footer is written. Therefore a log consists of parts, each a complete file, so
//! that a fault loses at most the rows of the part in memory. Readers of Parquet data sets (pandas, DuckDB, Polars) read the
//! folder as one table.

mod parquet;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ::parquet::errors::ParquetError;
use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

use crate::method::Message;

/// Rows of the largest part; this bounds the memory.
const ROWS_PER_PART: usize = 1 << 17;

/// Time that a part covers at most: a process that is killed loses the messages of this time.
const TIME_PER_PART: Duration = Duration::from_secs(5);

/// Why a log cannot be written.
#[derive(Debug, Error)]
pub enum LogError {
    /// The folder contains a log already.
    #[error(
        "{path} contains the log of another run\n  help: choose another folder with --out, or remove it"
    )]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// A file cannot be written. Parts that were written before are complete.
    #[error("cannot write {path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A part cannot be encoded.
    #[error("cannot write {path}: {source}")]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: ParquetError,
    },
}

/// A log that is being written.
#[derive(Debug)]
pub struct MessageLog {
    folder: PathBuf,
    /// Properties of the run, stored in every part.
    properties: Vec<(String, String)>,
    parts: u32,
    rows: Vec<Message>,
}

impl MessageLog {
    /// Creates an empty log in a folder, with properties of the run that every part stores.
    ///
    /// # Errors
    /// The folder cannot be created, or contains a log.
    pub fn create(folder: &Path, properties: Vec<(String, String)>) -> Result<Self, LogError> {
        let io = |source| LogError::Io { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(io)?;
        if fs::read_dir(folder).map_err(io)?.next().is_some() {
            return Err(LogError::Exists { path: folder.to_owned() });
        }
        Ok(Self { folder: folder.to_owned(), properties, parts: 0, rows: Vec::new() })
    }

    /// Appends a row, and writes the part if it is complete.
    ///
    /// # Errors
    /// The part cannot be written. Earlier parts are complete.
    pub fn push(&mut self, message: &Message) -> Result<(), LogError> {
        self.rows.push(*message);
        let start = self.rows.first().map_or(Instant::ZERO, |first| first.intended);
        if self.rows.len() >= ROWS_PER_PART || message.intended.since(start) >= TIME_PER_PART {
            self.flush()?;
        }
        Ok(())
    }

    /// Writes the remaining rows.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn flush(&mut self) -> Result<(), LogError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let path = self.folder.join(format!("part-{:05}.parquet", self.parts));
        // A part gets its name when it is complete.
        let partial = path.with_extension("parquet.partial");
        let io = |source| LogError::Io { path: path.clone(), source };
        let encoded = File::create(&partial)
            .map_err(ParquetError::from)
            .and_then(|file| parquet::write(file, &self.rows, &self.properties));
        if let Err(source) = encoded {
            let _ = fs::remove_file(&partial);
            return Err(LogError::Parquet { path, source });
        }
        fs::rename(&partial, &path).map_err(io)?;
        self.parts += 1;
        self.rows.clear();
        Ok(())
    }
}
