//! Opening a log after any end of the process or the machine.

use gridhaul_core::coverage_mark::mark;

use super::extent::Extent;
use super::format::{EntryHeader, SegmentHeader, VERSION};
use super::scan::{Loaded, SegmentScan, findings, load};
use super::writer::{LogWriter, Segment, Segments};
use super::{Damage, DamageCause, Findings, LogError, Storage, StorageFile};

/// A log that is open for writing.
#[derive(Debug)]
pub struct Opened<S: Storage> {
    /// The writing end.
    pub writer: LogWriter<S>,
    /// Faults that were found and repaired.
    pub findings: Findings,
    /// Snapshot at the beginning of the oldest segment; empty for a new log, and if it is lost by
    /// damage.
    pub snapshot: Vec<u8>,
    /// Whether the last segment was begun by an earlier version of the format: the first entry must
    /// begin a new one.
    pub has_old_version: bool,
}

/// Opens a log, or creates it with this epoch and snapshot if the storage has none.
///
/// A torn tail is dropped. Damaged regions are copied to files `damaged-<position>` and replaced by
/// fillers, so that the log can be read; gaps between segments are noted; [`Findings::damage`]
/// lists both.
///
/// # Errors
/// The disk has failed or is full, or a segment has another format version or belongs to another
/// log.
pub fn open<S: Storage>(storage: S, epoch: u64, snapshot: &[u8]) -> Result<Opened<S>, LogError> {
    let log = load(&storage)?;
    let (findings, scans) = findings(&log, |segment| segment.read(&storage))?;
    let mut kept: Vec<(&Loaded, &SegmentHeader)> = Vec::new();
    for (segment, scanned) in log.segments.iter().zip(&scans) {
        match (&segment.header, scanned) {
            (Some(header), Some(scanned)) => {
                repair(&storage, segment, header, scanned)?;
                kept.push((segment, header));
            }
            _ => set_aside(&storage, segment)?,
        }
    }
    storage.sync_names().map_err(LogError::storage("synchronising", "the folder"))?;
    let Some(((last, last_header), (first, first_header))) = kept.last().zip(kept.first()) else {
        // No position is used twice, so that files of damaged segments keep their names.
        let position = log.segments.last().map_or(0, |last| last.position + last.length as u64);
        let position = position.max(log.extent.map_or(0, |extent| extent.last));
        let writer = LogWriter::create(storage, epoch, position, snapshot)?;
        let (snapshot, has_old_version) = (snapshot.to_vec(), false);
        return Ok(Opened { writer, findings, snapshot, has_old_version });
    };
    let file = storage.open(&last.name).map_err(LogError::storage("opening", &last.name))?;
    let header = last.header_bytes as u64;
    let active = Segment { name: last.name.clone(), file, position: last.position, header };
    let mut segments = Segments { unremoved: log.unremoved, ..Segments::default() };
    for (segment, header) in &kept {
        if header.snapshot.is_some() || segment.position == first.position {
            segments.with_snapshot.push_back(segment.position);
        } else {
            mark!(log_keeps_what_a_lost_snapshot_follows_from);
            segments.without_snapshot.insert(segment.position);
        }
    }
    let snapshot = first_header.snapshot.clone().unwrap_or_default();
    let has_old_version = last_header.version != VERSION;
    let mut gaps = log.extent.map_or_else(Vec::new, |extent| extent.gaps);
    gaps.extend(findings.damage.iter().filter_map(|damage| gap(damage, first.position)));
    let (epoch, positions) = (last_header.epoch, (first.position, last.position));
    let extent = Extent { epoch, first: positions.0, last: positions.1, gaps };
    let writer = LogWriter::resume(storage, active, segments, findings.end, extent)?;
    Ok(Opened { writer, findings, snapshot, has_old_version })
}

/// The gap that missing segments leave after the first one that is kept.
fn gap(damage: &Damage, first: u64) -> Option<(u64, u64)> {
    let is_gap = damage.cause == DamageCause::Missing && damage.position >= first;
    is_gap.then_some((damage.position, damage.position + damage.length.unwrap_or(0)))
}

/// Drops what follows the last intact entry, replaces damaged regions, and makes the result
/// durable: entries that are intact may have been read from the page cache.
fn repair<S: Storage>(
    storage: &S,
    segment: &Loaded,
    header: &SegmentHeader,
    scanned: &SegmentScan,
) -> Result<(), LogError> {
    let failed = || LogError::storage("repairing", &segment.name);
    let file = storage.open(&segment.name).map_err(failed())?;
    let is_intact = scanned.holes.is_empty() && scanned.missing == 0 && !segment.is_rescued;
    let bytes = if is_intact { Vec::new() } else { segment.read(storage)? };
    if segment.is_rescued {
        keep_copy(storage, "header-", segment.position, &bytes[..segment.header_bytes])?;
        file.write_at(&header.write(segment.header_bytes), 0).map_err(failed())?;
    }
    let position = |offset: usize| segment.position + (offset - segment.header_bytes) as u64;
    for (from, to) in &scanned.holes {
        let length = bytes.len();
        let position = position(*from);
        keep_copy(storage, "", position, &bytes[(*from).min(length)..(*to).min(length)])?;
        let filler = EntryHeader::filler(header.epoch, position, (to - from) as u64);
        file.write_at(&filler, *from as u64).map_err(failed())?;
    }
    if scanned.missing > 0 && bytes.len() > scanned.end {
        // The rest of an entry of which the file does not have the end.
        keep_copy(storage, "", position(scanned.end), &bytes[scanned.end..])?;
    }
    if scanned.end != segment.length {
        file.resize(scanned.end as u64).map_err(failed())?;
    }
    file.sync().map_err(failed())
}

/// Copies damaged bytes to a file of their own.
fn keep_copy<S: Storage>(
    storage: &S,
    kind: &str,
    position: u64,
    bytes: &[u8],
) -> Result<(), LogError> {
    let name = format!("damaged-{kind}{position:016x}");
    let failed = || LogError::storage("writing", &name);
    let _ = storage.remove(&name);
    let file = storage.create(&name).map_err(failed())?;
    file.write_at(bytes, 0).and_then(|()| file.sync()).map_err(failed())
}

/// Renames a segment whose header is damaged and of which no entry is intact; a torn creation
/// without entries is renamed as well, which does no harm.
fn set_aside<S: Storage>(storage: &S, segment: &Loaded) -> Result<(), LogError> {
    let name = format!("damaged-{:016x}", segment.position);
    storage.rename(&segment.name, &name).map_err(LogError::storage("renaming", &segment.name))
}
