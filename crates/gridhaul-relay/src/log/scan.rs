//! Verification of a log: which entries are intact, which are torn or damaged.

use std::io;

use gridhaul_core::coverage_mark::mark;

use super::extent::Extent;
use super::format::{
    BadHeader, EntryHeader, SEGMENT_HEADER, SegmentHeader, VERSION, segment_name, segment_position,
};
use super::rescue::{Rescued, rescue};
use super::{Damage, DamageCause, Findings, LogError, Storage, StorageFile};

/// A segment file. Its entries are read one segment at a time: a log may be larger than the memory.
pub(super) struct Loaded {
    pub name: String,
    pub position: u64,
    /// `None`: the header is damaged, and no entry was found. Only the oldest intact header keeps
    /// its snapshot.
    pub header: Option<SegmentHeader>,
    pub header_bytes: usize,
    pub length: usize,
    /// The header is damaged, and follows from the entries.
    pub is_rescued: bool,
}

/// All segment files of a log.
pub(super) struct LoadedLog {
    /// Segments that are needed, in order.
    pub segments: Vec<Loaded>,
    /// Positions of segments that are not needed any more, and were not removed.
    pub unremoved: Vec<u64>,
    pub extent: Option<Extent>,
}

impl Loaded {
    /// The content of the file.
    pub(super) fn read<S: Storage>(&self, storage: &S) -> Result<Vec<u8>, LogError> {
        let failed = || LogError::storage("reading", &self.name);
        let file = storage.open(&self.name).map_err(failed())?;
        read_start(&file, self.length).map_err(failed())
    }

    /// Finds the header of a damaged segment from its entries.
    fn rescue(&mut self, bytes: &[u8], epoch: Option<u64>) {
        if let Some(Rescued { header, size }) = rescue(bytes, self.position, epoch) {
            (self.header, self.header_bytes, self.is_rescued) = (Some(header), size, true);
        }
    }
}

/// Faults of one segment, and the end of its intact entries.
pub(super) struct SegmentScan {
    /// Damaged regions between intact entries, as offsets of the file.
    pub holes: Vec<(usize, usize)>,
    /// Offset of the end of the last intact entry.
    pub end: usize,
    pub entries: u64,
    pub fillers: u64,
    /// Number of bytes after the end up to the next segment, of which the file has only a part.
    pub missing: u64,
}

/// Reads the headers of all segments, in order.
pub(super) fn load<S: Storage>(storage: &S) -> Result<LoadedLog, LogError> {
    let names = storage.list().map_err(LogError::storage("listing", "the folder"))?;
    let mut positions: Vec<u64> = names.iter().filter_map(|name| segment_position(name)).collect();
    positions.sort_unstable();
    let extent = Extent::read(storage)?;
    let first = extent.as_ref().map_or(0, |extent| extent.first);
    let needed = positions.split_off(positions.partition_point(|position| *position < first));
    let loaded = load_segments(storage, &needed, extent.as_ref())?;
    let epoch = epoch_of(&loaded);
    if extent.as_ref().is_some_and(|extent| epoch.is_some_and(|epoch| epoch != extent.epoch)) {
        // The file is the rest of another log.
        mark!(log_ignores_the_list_of_another_log);
        positions.extend(needed);
        let segments = load_segments(storage, &positions, None)?;
        return Ok(LoadedLog { segments, unremoved: Vec::new(), extent: None });
    }
    Ok(LoadedLog { segments: loaded, unremoved: positions, extent })
}

fn load_segments<S: Storage>(
    storage: &S,
    positions: &[u64],
    extent: Option<&Extent>,
) -> Result<Vec<Loaded>, LogError> {
    let mut segments = Vec::new();
    let mut has_snapshot = false;
    for position in positions {
        let mut segment = load_segment(storage, *position)?;
        if let Some(header) = &mut segment.header
            && std::mem::replace(&mut has_snapshot, true)
        {
            header.snapshot = header.snapshot.take().map(|_| Vec::new());
        }
        segments.push(segment);
    }
    let epoch = epoch_of(&segments).or(extent.map(|extent| extent.epoch));
    for segment in segments.iter_mut().filter(|segment| segment.header.is_none()) {
        let bytes = segment.read(storage)?;
        segment.rescue(&bytes, epoch);
    }
    Ok(segments)
}

/// The epoch in the first header that is known.
fn epoch_of(segments: &[Loaded]) -> Option<u64> {
    segments.iter().find_map(|segment| Some(segment.header.as_ref()?.epoch))
}

fn load_segment<S: Storage>(storage: &S, position: u64) -> Result<Loaded, LogError> {
    let name = segment_name(position);
    let failed = || LogError::storage("reading", &name);
    let file = storage.open(&name).map_err(failed())?;
    let length = file.length().map_err(failed())? as usize;
    let fields = read_start(&file, length.min(SEGMENT_HEADER)).map_err(failed())?;
    let snapshot = SegmentHeader::snapshot_length(&fields).unwrap_or(0);
    let start = read_start(&file, length.min(SEGMENT_HEADER + snapshot)).map_err(failed())?;
    loaded(name, position, &start, length)
}

/// The first bytes of a file.
fn read_start(file: &impl StorageFile, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// A segment whose file has this length and begins with these bytes, which contain its header.
fn loaded(name: String, position: u64, start: &[u8], length: usize) -> Result<Loaded, LogError> {
    let header = match SegmentHeader::read(start) {
        Ok(header) if header.position == position => Some(header),
        Ok(_) | Err(BadHeader::Damaged) => None,
        Err(BadHeader::Version(found)) => {
            return Err(LogError::Version { name, found, expected: VERSION });
        }
    };
    let snapshot = SegmentHeader::snapshot_length(start).unwrap_or(0);
    let header_bytes = header.as_ref().map_or(0, |_| SEGMENT_HEADER + snapshot);
    Ok(Loaded { name, position, header, header_bytes, length, is_rescued: false })
}

/// Verifies the entries of a segment with an intact header. `next` is the position of the following
/// segment; data that was never durable may be at the end of the last one only.
fn scan(segment: &Loaded, bytes: &[u8], epoch: u64, next: Option<u64>) -> SegmentScan {
    let start = segment.header_bytes;
    let mut found =
        SegmentScan { holes: Vec::new(), end: start, entries: 0, fillers: 0, missing: 0 };
    let position = |offset: usize| segment.position + (offset - start) as u64;
    let mut committed = 0;
    let mut offset = start;
    while offset < bytes.len() {
        let next = (offset..bytes.len())
            .find_map(|at| Some((at, intact(&bytes[at..], epoch, position(at))?)));
        let Some((at, header)) = next else { break };
        if at > offset {
            mark!(log_searches_the_next_intact_entry);
            found.holes.push((offset, at));
        }
        offset = at + header.size() as usize;
        found.end = offset;
        if header.is_filler {
            found.fillers += 1;
        } else {
            found.entries += 1;
            committed = committed.max(header.committed);
        }
    }
    if let Some(next) = next {
        // A segment ends where the next one begins.
        let rest = next.saturating_sub(position(found.end));
        if found.end as u64 + rest > bytes.len() as u64 {
            mark!(log_segment_ends_where_the_next_begins);
            found.missing = rest;
        } else if rest > 0 {
            found.holes.push((found.end, found.end + rest as usize));
            found.end += rest as usize;
        }
        return found;
    }
    // After a power failure, entries that were not durable may be intact after one that is not. No
    // entry after them states that they were committed.
    let torn = found.holes.iter().position(|(from, _)| position(*from) >= committed);
    if let Some(torn) = torn {
        mark!(log_drops_intact_entries_after_a_torn_one);
        found.end = found.holes[torn].0;
        found.holes.truncate(torn);
        found.entries = count(segment, bytes, epoch, &found) - found.fillers;
    }
    found
}

/// Number of entries and fillers before an offset.
fn count(segment: &Loaded, bytes: &[u8], epoch: u64, found: &SegmentScan) -> u64 {
    let (mut offset, mut entries) = (segment.header_bytes, 0);
    while offset < found.end {
        if let Some((_, after)) = found.holes.iter().find(|(from, _)| *from == offset) {
            offset = *after;
            continue;
        }
        let position = segment.position + (offset - segment.header_bytes) as u64;
        let Some(header) = intact(&bytes[offset..], epoch, position) else { break };
        offset += header.size() as usize;
        entries += 1;
    }
    entries
}

/// The header of an intact entry or filler at the start of `bytes`.
pub(super) fn intact(bytes: &[u8], epoch: u64, position: u64) -> Option<EntryHeader> {
    let header = EntryHeader::read(bytes, position)?;
    let fits = header.size() <= bytes.len() as u64;
    (fits && header.verify(epoch, bytes)).then_some(header)
}

/// Verifies a log without changing it.
///
/// # Errors
/// The disk has failed, or a segment has another format version or belongs to another log.
pub fn verify<S: Storage>(storage: &S) -> Result<Findings, LogError> {
    let log = load(storage)?;
    findings(&log, |segment| segment.read(storage)).map(|(findings, _)| findings)
}

/// Verifies the content of one segment file.
///
/// # Errors
/// The segment has another format version.
pub fn verify_segment(bytes: &[u8]) -> Result<Findings, LogError> {
    let position = SegmentHeader::read(bytes).map_or(0, |header| header.position);
    let mut segment = loaded(segment_name(position), position, bytes, bytes.len())?;
    if segment.header.is_none() {
        segment.rescue(bytes, None);
    }
    let log = LoadedLog { segments: vec![segment], unremoved: Vec::new(), extent: None };
    findings(&log, |_| Ok(bytes.to_vec())).map(|(found, _)| found)
}

/// The findings, and the scan of each segment whose header is known.
pub(super) fn findings(
    log: &LoadedLog,
    read: impl Fn(&Loaded) -> Result<Vec<u8>, LogError>,
) -> Result<(Findings, Vec<Option<SegmentScan>>), LogError> {
    let segments = &log.segments;
    let mut all = Findings { epoch: epoch_of(segments), ..Findings::default() };
    let mut scans = Vec::new();
    let is_known_gap =
        |from, to| log.extent.as_ref().is_some_and(|extent| extent.gaps.contains(&(from, to)));
    let first = segments.first().map(|segment| segment.position);
    if let Some((extent, first)) = log.extent.as_ref().zip(first)
        && first > extent.first
    {
        all.damage.push(missing(extent.first, Some(first - extent.first)));
    }
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        let bytes = read(segment)?;
        let Some((header, epoch)) = segment.header.as_ref().zip(all.epoch) else {
            // The header is durable before the first entry is appended: a file without entries is a
            // torn creation.
            if is_last && (all.epoch.is_some() || bytes.is_empty()) {
                mark!(log_torn_creation_of_a_segment_is_no_damage);
                all.torn_bytes += bytes.len() as u64;
            } else {
                all.damage.push(damaged_header(segment, None, 0));
            }
            scans.push(None);
            continue;
        };
        if header.epoch != epoch {
            let (name, found) = (segment.name.clone(), header.epoch);
            return Err(LogError::Epoch { name, found, expected: epoch });
        }
        let following = segments[index + 1..].iter().find(|next| next.header.is_some());
        let following = following.map(|next| next.position);
        let scanned = scan(segment, &bytes, epoch, following);
        if segment.is_rescued {
            all.damage.push(damaged_header(segment, Some(0), scanned.entries));
        }
        let position = |offset: usize| segment.position + (offset - segment.header_bytes) as u64;
        let damage = |(from, to): &(usize, usize)| Damage {
            segment: segment.name.clone(),
            position: position(*from),
            length: Some((to - from) as u64),
            cause: DamageCause::Entries,
        };
        all.damage.extend(scanned.holes.iter().map(damage));
        all.torn_bytes += bytes.len().saturating_sub(scanned.end) as u64;
        all.entries += scanned.entries;
        all.repaired += scanned.fillers;
        all.end = position(scanned.end);
        if scanned.missing > 0 {
            all.torn_bytes -= bytes.len().saturating_sub(scanned.end) as u64;
            if is_known_gap(all.end, all.end + scanned.missing) {
                all.repaired += 1;
            } else {
                all.damage.push(missing(all.end, Some(scanned.missing)));
            }
        }
        scans.push(Some(scanned));
    }
    let first = segments.iter().find(|segment| segment.header.is_some());
    all.start = first.map_or(0, |segment| segment.position);
    all.end = all.end.max(all.start);
    note_missing_end(log, &mut all);
    Ok((all, scans))
}

/// Notes whether the last segments are missing, whose length is unknown.
fn note_missing_end(log: &LoadedLog, all: &mut Findings) {
    let last = log.segments.last().map(|segment| segment.position);
    if let Some(extent) =
        log.extent.as_ref().filter(|extent| last.is_none_or(|last| last < extent.last))
    {
        mark!(log_missing_end_has_an_unknown_length);
        let position = if last.is_some() { all.end } else { extent.first };
        all.damage.push(Damage { segment: extent.last_name(), ..missing(position, None) });
    }
    // An unknown number of bytes at the end of the log was reported before.
    all.repaired += log
        .extent
        .as_ref()
        .map_or(0, |extent| extent.gaps.iter().filter(|(from, to)| from == to).count() as u64);
}

fn missing(position: u64, length: Option<u64>) -> Damage {
    let segment = segment_name(position);
    Damage { segment, position, length, cause: DamageCause::Missing }
}

fn damaged_header(segment: &Loaded, length: Option<u64>, recovered: u64) -> Damage {
    let snapshot = segment.header_bytes.saturating_sub(SEGMENT_HEADER) as u64;
    Damage {
        segment: segment.name.clone(),
        position: segment.position,
        length,
        cause: DamageCause::Header { recovered, snapshot },
    }
}
