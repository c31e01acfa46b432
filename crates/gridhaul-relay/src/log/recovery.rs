//! Opening a log after any end of the process or the machine.

use std::collections::VecDeque;

use super::format::{EntryHeader, SegmentHeader};
use super::scan::{Findings, Loaded, SegmentScan, findings, load};
use super::writer::{LogWriter, Segment};
use super::{LogError, Storage, StorageFile};

/// A log that is open for writing.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// The writing end.
    pub writer: LogWriter<S>,
    /// What was found, and repaired.
    pub findings: Findings,
    /// Snapshot at the beginning of the oldest segment; empty for a new log.
    pub snapshot: Vec<u8>,
}

/// Opens a log, or creates it with this epoch and snapshot if the storage has none.
///
/// A torn tail is dropped. Damaged regions are copied to files `damaged-<position>` and replaced by fillers, so that
/// the log can be read; [`Findings::damage`] lists them.
///
/// # Errors
/// The disk has failed or is full, or a segment has another format version or belongs to another log.
pub fn open<S: Storage>(storage: S, epoch: u64, snapshot: &[u8]) -> Result<Opened<S>, LogError> {
    let segments = load(&storage)?;
    let (findings, scans) = findings(&segments, |segment| segment.read(&storage))?;
    let mut kept: Vec<(&Loaded, &SegmentHeader)> = Vec::new();
    for (segment, scanned) in segments.iter().zip(&scans) {
        match (&segment.header, scanned) {
            (Some(header), Some(scanned)) => {
                repair(&storage, segment, header.epoch, scanned)?;
                kept.push((segment, header));
            }
            _ => set_aside(&storage, segment)?,
        }
    }
    storage.sync_names().map_err(LogError::storage("synchronising", "the folder"))?;
    let Some(((last, last_header), (_, first_header))) = kept.last().zip(kept.first()) else {
        // No position is used twice, so that files of damaged segments keep their names.
        let position = segments.last().map_or(0, |last| last.position + last.length as u64);
        let writer = LogWriter::create(storage, epoch, position, snapshot)?;
        return Ok(Opened { writer, findings, snapshot: snapshot.to_vec() });
    };
    let file = storage.open(&last.name).map_err(LogError::storage("opening", &last.name))?;
    let header = last.header_bytes as u64;
    let active = Segment { name: last.name.clone(), file, position: last.position, header };
    let positions: VecDeque<u64> = kept.iter().map(|(segment, _)| segment.position).collect();
    let snapshot = first_header.snapshot.clone();
    let writer = LogWriter::resume(storage, last_header.epoch, active, positions, findings.end);
    Ok(Opened { writer, findings, snapshot })
}

/// Drops what follows the last intact entry, replaces damaged regions, and makes the result durable: entries that
/// are intact may have been read from the page cache.
fn repair<S: Storage>(
    storage: &S,
    segment: &Loaded,
    epoch: u64,
    scanned: &SegmentScan,
) -> Result<(), LogError> {
    let failed = || LogError::storage("repairing", &segment.name);
    let file = storage.open(&segment.name).map_err(failed())?;
    let bytes = if scanned.holes.is_empty() { Vec::new() } else { segment.read(storage)? };
    for (from, to) in &scanned.holes {
        let position = segment.position + (from - segment.header_bytes) as u64;
        let length = bytes.len();
        keep_copy(storage, position, &bytes[(*from).min(length)..(*to).min(length)])?;
        let filler = EntryHeader::filler(epoch, position, (to - from) as u64);
        file.write_at(&filler, *from as u64).map_err(failed())?;
    }
    if scanned.end != segment.length {
        file.resize(scanned.end as u64).map_err(failed())?;
    }
    file.sync().map_err(failed())
}

/// Copies damaged bytes to a file of their own.
fn keep_copy<S: Storage>(storage: &S, position: u64, bytes: &[u8]) -> Result<(), LogError> {
    let name = format!("damaged-{position:016x}");
    let failed = || LogError::storage("writing", &name);
    let _ = storage.remove(&name);
    let file = storage.create(&name).map_err(failed())?;
    file.write_at(bytes, 0).and_then(|()| file.sync()).map_err(failed())
}

/// Renames a segment whose header is damaged; a torn creation without entries is renamed as well, which does no harm.
fn set_aside<S: Storage>(storage: &S, segment: &Loaded) -> Result<(), LogError> {
    let name = format!("damaged-{:016x}", segment.position);
    storage.rename(&segment.name, &name).map_err(LogError::storage("renaming", &segment.name))
}
