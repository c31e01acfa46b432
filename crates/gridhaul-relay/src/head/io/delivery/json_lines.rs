//! A sink: a file with one JSON object per line for each record.
//!
//! Each line states collector, epoch, shard and sequence number of its record. After a restart,
//! delivery continues after the last complete line of a record, if it is later than the saved
//! position, so that no record is written twice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::head::delivery::Delivery;
use crate::head::json::json_of;
use crate::log::disk_remedy;
use crate::runtime::RunError;

/// The file cannot be used.
#[derive(Debug, Error)]
#[error(
    "file {} of the sink: {source}{}", path.display(),
    disk_remedy(source, "head.deliver.file")
)]
pub(super) struct SinkError {
    /// The file.
    pub path: PathBuf,
    /// The kernel's error.
    pub source: io::Error,
}

impl From<SinkError> for RunError {
    fn from(error: SinkError) -> Self {
        Self::Destination(error.to_string())
    }
}

/// An open file of lines.
#[derive(Debug)]
pub(super) struct JsonLines {
    path: PathBuf,
    file: File,
    /// Lines that were not written yet.
    buffer: Vec<u8>,
    /// Lines that were written, of which it is not known that they are durable in a file that
    /// somebody can find.
    unconfirmed: Vec<u8>,
    last: Option<LineNumber>,
}

/// Reason why another file was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replaced {
    /// The file has another name, with all its lines.
    Renamed,
    /// The file was removed. So many bytes of lines that it had are in the new file.
    Removed(usize),
}

/// Identifies the record of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineNumber {
    epoch: u64,
    shard: u16,
    sequence: u64,
    /// A restart of a collector has a line for each of its meters.
    meter: Option<u64>,
}

/// Largest length of a line: a record each of whose bytes is escaped with six characters.
const LINE_MAX: u64 = 7 * crate::protocol::DATA_MAX as u64;

impl JsonLines {
    /// Opens or creates a file, and removes an incomplete last line.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub(super) fn open(path: &Path) -> Result<Self, SinkError> {
        let failed = |source| SinkError { path: path.to_owned(), source };
        let (file, last) = open_file(path).map_err(failed)?;
        // A file that was begun by a rotation continues the one before.
        let before = || last_line(&mut File::open(rotated(path, 1)).ok()?).ok()?.1;
        let last = last.or_else(before);
        let (path, buffer, unconfirmed) = (path.to_owned(), Vec::new(), Vec::new());
        Ok(Self { path, file, buffer, unconfirmed, last })
    }

    /// Whether the file had a line of a record when it was opened.
    #[must_use]
    pub(super) const fn has_last(&self) -> bool {
        self.last.is_some()
    }

    /// Whether this is the record of the last line of a record that was in the file when it was
    /// opened. Lines after it that another program has written are skipped.
    #[must_use]
    pub(super) fn is_last(&self, delivery: &Delivery<'_>) -> bool {
        self.last == Some(line_number(delivery))
    }

    /// Adds a line. Records that only concern the relay have none.
    pub(super) fn push(&mut self, delivery: &Delivery<'_>) {
        let Some(line) = json_of(delivery) else { return };
        serde_json::to_writer(&mut self.buffer, &line).expect("a line can be written to memory");
        self.buffer.push(b'\n');
    }

    /// Writes all lines to the file.
    ///
    /// # Errors
    /// The disk is full or has failed. The lines are kept, and a further call writes them.
    pub(super) fn write(&mut self) -> Result<(), SinkError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        append(&mut self.file, &self.buffer).map_err(|source| self.failed(source))?;
        self.unconfirmed.append(&mut self.buffer);
        Ok(())
    }

    /// Bytes of lines that were not written yet.
    #[must_use]
    pub(super) const fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes of lines that were written and not confirmed.
    #[must_use]
    pub(super) const fn unconfirmed(&self) -> usize {
        self.unconfirmed.len()
    }

    /// Makes all written lines durable.
    ///
    /// # Errors
    /// The disk has failed. The process must end: which lines are durable is found out when the
    /// file is opened again.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        self.file.sync_data().map_err(|source| self.failed(source))
    }

    /// Confirms that all lines are in a file that somebody can find, after [`Self::sync`]. If the
    /// file was renamed, as by logrotate, or removed, another one with the name is begun; lines
    /// that only a removed file has are written to it.
    ///
    /// # Errors
    /// The new file cannot be created or written. A further call tries again.
    pub(super) fn confirm(&mut self) -> Result<Option<Replaced>, SinkError> {
        let open = self.file.metadata().map_err(|source| self.failed(source))?;
        let named = fs::metadata(&self.path);
        if named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())) {
            self.forget_confirmed();
            return Ok(None);
        }
        let replaced = match open.nlink() {
            0 => Replaced::Removed(self.unconfirmed.len()),
            _ => Replaced::Renamed,
        };
        self.begin(replaced).map_err(|source| self.failed(source))?;
        Ok(Some(replaced))
    }

    fn begin(&mut self, replaced: Replaced) -> io::Result<()> {
        let (mut file, _) = open_file(&self.path)?;
        if let Replaced::Removed(_) = replaced {
            append(&mut file, &self.unconfirmed)?;
        }
        file.sync_data()?;
        sync_folder(&self.path)?;
        self.file = file;
        self.forget_confirmed();
        Ok(())
    }

    fn forget_confirmed(&mut self) {
        self.unconfirmed.clear();
        self.unconfirmed.shrink_to(KEPT_CAPACITY);
    }

    /// Renames the file to `<name>.1`, an older one of this name to `<name>.2` and so on, and
    /// begins another one, if it has at least `size` bytes. At most `keep` older files are kept. To
    /// be called after [`Self::confirm`].
    ///
    /// # Errors
    /// A file cannot be renamed or created. Lines are written to the file that is open.
    pub(super) fn rotate(&mut self, size: u64, keep: u16) -> Result<bool, SinkError> {
        let rotate = || -> io::Result<bool> {
            if self.file.metadata()?.len() < size {
                return Ok(false);
            }
            for number in (1..keep).rev() {
                rename_if_present(&rotated(&self.path, number), &rotated(&self.path, number + 1))?;
            }
            fs::rename(&self.path, rotated(&self.path, 1))?;
            Ok(true)
        };
        let is_rotated = rotate().map_err(|source| self.failed(source))?;
        if is_rotated {
            self.begin(Replaced::Renamed).map_err(|source| self.failed(source))?;
        }
        Ok(is_rotated)
    }

    fn failed(&self, source: io::Error) -> SinkError {
        SinkError { path: self.path.clone(), source }
    }
}

/// Capacity for lines that is kept while no record arrives.
const KEPT_CAPACITY: usize = 64 * 1024;

/// Opens or creates a file of lines, and removes an incomplete last line. Returns the number of the
/// last record.
fn open_file(path: &Path) -> io::Result<(File, Option<LineNumber>)> {
    let mut options = OpenOptions::new();
    // Another program may have cut the file meanwhile: lines are appended wherever its end is.
    let mut file = options.read(true).append(true).create(true).open(path)?;
    require_lines(&mut file)?;
    let (length, last) = last_line(&mut file)?;
    if length < file.metadata()?.len() {
        file.set_len(length)?;
    }
    Ok((file, last))
}

/// Checks a file to which lines are to be appended.
///
/// # Errors
/// The file is not one of lines as the relay writes them, or it cannot be read.
pub(crate) fn check_lines(path: &Path) -> io::Result<()> {
    if !fs::metadata(path)?.is_file() {
        return Err(not_regular());
    }
    require_lines(&mut File::open(path)?)
}

/// A device has no end, and another file must neither be cut nor continued: lines are appended to
/// a file that begins with one, and whose incomplete last line is one.
fn require_lines(file: &mut File) -> io::Result<()> {
    if !file.metadata()?.is_file() {
        return Err(not_regular());
    }
    let mut start = [0];
    file.seek(SeekFrom::Start(0))?;
    let is_begun = file.read(&mut start)? == 0 || start == *b"{";
    let (_, tail) = tail(file)?;
    let torn = tail.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    if is_begun && torn.first().is_none_or(|&byte| byte == b'{') {
        return Ok(());
    }
    let text = "the file has other content than the lines of a head, to which it would append";
    Err(io::Error::new(ErrorKind::InvalidData, text))
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "this is not a regular file")
}

/// Appends bytes, or nothing.
fn append(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    let length = file.metadata()?.len();
    file.write_all(bytes).inspect_err(|_| {
        let _ = file.set_len(length);
    })
}

/// Name of an older file.
fn rotated(path: &Path, number: u16) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    name.into()
}

fn rename_if_present(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Makes the names in the folder of a file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn line_number(delivery: &Delivery<'_>) -> LineNumber {
    let (shard, sequence) = delivery.number;
    LineNumber { epoch: delivery.epoch, shard, sequence, meter: delivery.record.meter() }
}

/// Length of all complete lines, and the number of the last one that has a record.
fn last_line(file: &mut File) -> io::Result<(u64, Option<LineNumber>)> {
    let (start, tail) = tail(file)?;
    let Some(end) = tail.iter().rposition(|&byte| byte == b'\n') else {
        return Ok((if start == 0 { 0 } else { start + tail.len() as u64 }, None));
    };
    let last = tail[..end].rsplit(|&byte| byte == b'\n').find_map(number_in);
    Ok((start + end as u64 + 1, last))
}

/// The last bytes of a file, with a torn line and the last complete one, and where they begin.
fn tail(file: &mut File) -> io::Result<(u64, Vec<u8>)> {
    let start = file.metadata()?.len().saturating_sub(2 * LINE_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok((start, bytes))
}

/// The number in a line; `None` if another program has written it.
fn number_in(line: &[u8]) -> Option<LineNumber> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let epoch = u64::from_str_radix(line["epoch"].as_str()?, 16).ok()?;
    let shard = u16::try_from(line["shard"].as_u64()?).ok()?;
    let sequence = line["sequence"].as_u64()?;
    Some(LineNumber { epoch, shard, sequence, meter: line["meter"].as_u64() })
}

#[cfg(test)]
#[path = "json_lines_tests.rs"]
mod tests;
