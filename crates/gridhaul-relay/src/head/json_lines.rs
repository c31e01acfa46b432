//! A sink: a file with one JSON object per line for each record, each exactly once.
//!
//! Each line states collector, epoch, shard and sequence number of its record. After a restart, delivery continues
//! after the last complete line, so that no record is written twice.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use super::delivery::Delivery;
use crate::log::disk_remedy;
use crate::protocol::Record;

/// The file cannot be used.
#[derive(Debug, Error)]
#[error("file {} of the sink: {source}{}", path.display(), disk_remedy(source, "head.deliver.file"))]
pub struct SinkError {
    /// The file.
    pub path: PathBuf,
    /// The kernel's error.
    pub source: io::Error,
}

/// An open file of lines.
#[derive(Debug)]
pub struct JsonLines {
    path: PathBuf,
    file: File,
    /// Bytes of complete lines in the file.
    length: u64,
    /// Lines that were not written yet.
    buffer: Vec<u8>,
    last: Option<LineNumber>,
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

/// Largest length of a line: a record whose bytes are written as hexadecimal digits.
const LINE_MAX: u64 = 4 * crate::protocol::DATA_MAX as u64;

impl JsonLines {
    /// Opens or creates a file, and removes an incomplete last line.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub fn open(path: &Path) -> Result<Self, SinkError> {
        let failed = |source| SinkError { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let mut file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        let (length, last) = last_line(&mut file).map_err(failed)?;
        file.set_len(length).map_err(failed)?;
        file.seek(SeekFrom::Start(length)).map_err(failed)?;
        Ok(Self { path: path.to_owned(), file, length, buffer: Vec::new(), last })
    }

    /// Whether this is the record of the last line that was in the file when it was opened.
    #[must_use]
    pub fn is_last(&self, delivery: &Delivery<'_>) -> bool {
        self.last == Some(line_number(delivery))
    }

    /// Adds a line. Records that only concern the relay have none.
    pub fn push(&mut self, delivery: &Delivery<'_>) {
        let Some(line) = json_of(delivery) else { return };
        serde_json::to_writer(&mut self.buffer, &line).expect("a line can be written to memory");
        self.buffer.push(b'\n');
    }

    /// Writes all lines to the file.
    ///
    /// # Errors
    /// The disk is full or has failed. The lines are kept, and a further call writes them.
    pub fn write(&mut self) -> Result<(), SinkError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let length = self.buffer.len() as u64;
        if let Err(source) = self.file.write_all(&self.buffer) {
            let _ = self.file.set_len(self.length);
            let _ = self.file.seek(SeekFrom::Start(self.length));
            return Err(SinkError { path: self.path.clone(), source });
        }
        self.length += length;
        self.buffer.clear();
        Ok(())
    }

    /// Bytes of lines that were not written yet.
    #[must_use]
    pub const fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Makes all written lines durable.
    ///
    /// # Errors
    /// The disk has failed. The process must end: which lines are durable is found out when the file is opened again.
    pub fn sync(&self) -> Result<(), SinkError> {
        self.file.sync_data().map_err(|source| SinkError { path: self.path.clone(), source })
    }
}

/// A record as JSON; `None` if it concerns only the relay.
pub(crate) fn json_of(delivery: &Delivery<'_>) -> Option<Value> {
    if let Record::Gap { records, bytes } = delivery.record {
        return Some(gap_of(delivery, records, bytes));
    }
    let number = line_number(delivery);
    let mut line = json!({
        "collector": delivery.collector,
        "epoch": format!("{:016x}", number.epoch),
        "shard": number.shard,
        "sequence": number.sequence,
    });
    match delivery.record {
        Record::Open { meter, identity } => {
            set(&mut line, "event", "open");
            set(&mut line, "meter", meter);
            set(&mut line, "peer", identity.peer.map(|address| address.to_string()));
            set(&mut line, "listener", identity.listener);
            set(&mut line, "certificate", identity.certificate);
        }
        Record::Data { meter, offset, ends_message, bytes } => {
            set(&mut line, "event", "data");
            set(&mut line, "meter", meter);
            set(&mut line, "offset", offset);
            set(&mut line, "ends_message", ends_message);
            match std::str::from_utf8(bytes) {
                Ok(text) => set(&mut line, "text", text),
                Err(_) => set(&mut line, "hex", hexadecimal(bytes)),
            }
        }
        Record::Eof { meter, offset } => {
            set(&mut line, "event", "eof");
            set(&mut line, "meter", meter);
            set(&mut line, "offset", offset);
        }
        Record::Reset { meter, cause } => {
            set(&mut line, "event", "reset");
            set(&mut line, "meter", meter);
            set(&mut line, "cause", cause.name());
        }
        Record::Restart { .. } | Record::Gap { .. } => return None,
    }
    Some(line)
}

/// Lost records as JSON. Collector, epoch, shard and sequence number of the first lost record are null if the log of the head
/// has lost records of unknown collectors.
fn gap_of(delivery: &Delivery<'_>, records: Option<u64>, bytes: Option<u64>) -> Value {
    let (shard, sequence) = delivery.number;
    let is_known = delivery.epoch != 0;
    json!({
        "event": "gap",
        "collector": is_known.then_some(delivery.collector),
        "epoch": is_known.then(|| format!("{:016x}", delivery.epoch)),
        "shard": is_known.then_some(shard),
        "sequence": is_known.then_some(sequence),
        "lost_records_count": records,
        "lost_byte": bytes,
    })
}

fn set(line: &mut Value, key: &str, value: impl Into<Value>) {
    line[key] = value.into();
}

fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn line_number(delivery: &Delivery<'_>) -> LineNumber {
    let (shard, sequence) = delivery.number;
    LineNumber { epoch: delivery.epoch, shard, sequence, meter: delivery.record.meter() }
}

/// Length of all complete lines, and the number of the last one.
fn last_line(file: &mut File) -> io::Result<(u64, Option<LineNumber>)> {
    let size = file.metadata()?.len();
    // The torn line and the last complete one.
    let start = size.saturating_sub(2 * LINE_MAX);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    let Some(end) = tail.iter().rposition(|&byte| byte == b'\n') else {
        return Ok((if start == 0 { 0 } else { size }, None));
    };
    let begin = tail[..end].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    let line: Value = serde_json::from_slice(&tail[begin..end]).unwrap_or_default();
    let number = || {
        let epoch = u64::from_str_radix(line["epoch"].as_str()?, 16).ok()?;
        let shard = u16::try_from(line["shard"].as_u64()?).ok()?;
        let sequence = line["sequence"].as_u64()?;
        Some(LineNumber { epoch, shard, sequence, meter: line["meter"].as_u64() })
    };
    Ok((start + end as u64 + 1, number()))
}
