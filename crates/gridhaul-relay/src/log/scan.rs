//! Verification of a log: which entries are intact, which are torn or damaged.

use std::io;

use super::format::{
    BadHeader, EntryHeader, SEGMENT_HEADER, SegmentHeader, VERSION, segment_name, segment_position,
};
use super::{LogError, Storage, StorageFile};

/// A region of the log that was durable and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// File name of the segment.
    pub segment: String,
    /// Position of the first damaged byte.
    pub position: u64,
    /// Number of damaged bytes; `None` for a segment whose header is damaged, so that none of its entries can be
    /// attributed.
    pub length: Option<u64>,
}

/// Findings of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Findings {
    /// Random number that identifies the log; `None` if there is no intact segment.
    pub epoch: Option<u64>,
    /// Position of the first entry.
    pub start: u64,
    /// End of the last intact entry.
    pub end: u64,
    /// Number of intact entries.
    pub entries: u64,
    /// Bytes after the last intact entry: an append that was not committed when the machine stopped.
    pub torn_bytes: u64,
    /// Durable data that cannot be read.
    pub damage: Vec<Damage>,
    /// Damaged regions that an earlier repair has replaced.
    pub repaired: u64,
}

/// A segment file. Its entries are read one segment at a time: a log may be larger than the memory.
pub(super) struct Loaded {
    pub name: String,
    pub position: u64,
    /// `None`: the header is damaged. Only the oldest intact header keeps its snapshot.
    pub header: Option<SegmentHeader>,
    pub header_bytes: usize,
    pub length: usize,
}

impl Loaded {
    /// The content of the file.
    pub(super) fn read<S: Storage>(&self, storage: &S) -> Result<Vec<u8>, LogError> {
        let failed = || LogError::storage("reading", &self.name);
        let file = storage.open(&self.name).map_err(failed())?;
        read_start(&file, self.length).map_err(failed())
    }
}

/// What is wrong with one segment, and where its intact entries end.
pub(super) struct SegmentScan {
    /// Damaged regions between intact entries, as offsets of the file.
    pub holes: Vec<(usize, usize)>,
    /// Offset of the end of the last intact entry.
    pub end: usize,
    pub entries: u64,
    pub fillers: u64,
}

/// Reads all segments, in order.
pub(super) fn load<S: Storage>(storage: &S) -> Result<Vec<Loaded>, LogError> {
    let names = storage.list().map_err(LogError::storage("listing", "the folder"))?;
    let mut positions: Vec<u64> = names.iter().filter_map(|name| segment_position(name)).collect();
    positions.sort_unstable();
    let mut segments = Vec::new();
    let mut has_snapshot = false;
    for position in positions {
        let mut segment = load_segment(storage, position)?;
        if let Some(header) = &mut segment.header
            && std::mem::replace(&mut has_snapshot, true)
        {
            header.snapshot = Vec::new();
        }
        segments.push(segment);
    }
    Ok(segments)
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
    let header_bytes = header.as_ref().map_or(0, |header| SEGMENT_HEADER + header.snapshot.len());
    Ok(Loaded { name, position, header, header_bytes, length })
}

/// Verifies the entries of a segment with an intact header. `next` is the position of the following segment; data
/// that was never durable may be at the end of the last one only.
fn scan(segment: &Loaded, bytes: &[u8], epoch: u64, next: Option<u64>) -> SegmentScan {
    let start = segment.header_bytes;
    let mut found = SegmentScan { holes: Vec::new(), end: start, entries: 0, fillers: 0 };
    let position = |offset: usize| segment.position + (offset - start) as u64;
    let mut committed = 0;
    let mut offset = start;
    while offset < bytes.len() {
        let next = (offset..bytes.len())
            .find_map(|at| Some((at, intact(&bytes[at..], epoch, position(at))?)));
        let Some((at, header)) = next else { break };
        if at > offset {
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
        let missing = next.saturating_sub(position(found.end)) as usize;
        if missing > 0 {
            found.holes.push((found.end, found.end + missing));
            found.end += missing;
        }
        return found;
    }
    // After a power failure, entries that were not durable may be intact after one that is not. No entry after them
    // states that they were committed.
    let torn = found.holes.iter().position(|(from, _)| position(*from) >= committed);
    if let Some(torn) = torn {
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
fn intact(bytes: &[u8], epoch: u64, position: u64) -> Option<EntryHeader> {
    let header = EntryHeader::read(bytes, position)?;
    let fits = header.size() <= bytes.len() as u64;
    (fits && header.verify(epoch, bytes)).then_some(header)
}

/// Verifies a log without changing it.
///
/// # Errors
/// The disk has failed, or a segment has another format version or belongs to another log.
pub fn verify<S: Storage>(storage: &S) -> Result<Findings, LogError> {
    let segments = load(storage)?;
    findings(&segments, |segment| segment.read(storage)).map(|(findings, _)| findings)
}

/// Verifies the content of one segment file.
///
/// # Errors
/// The segment has another format version.
pub fn verify_segment(bytes: &[u8]) -> Result<Findings, LogError> {
    let position = SegmentHeader::read(bytes).map_or(0, |header| header.position);
    let segment = loaded(segment_name(position), position, bytes, bytes.len())?;
    findings(&[segment], |_| Ok(bytes.to_vec())).map(|(found, _)| found)
}

/// The findings, and the scan of each segment with an intact header.
pub(super) fn findings(
    segments: &[Loaded],
    read: impl Fn(&Loaded) -> Result<Vec<u8>, LogError>,
) -> Result<(Findings, Vec<Option<SegmentScan>>), LogError> {
    let mut all = Findings::default();
    let mut scans = Vec::new();
    all.epoch = segments.iter().find_map(|segment| Some(segment.header.as_ref()?.epoch));
    for (index, segment) in segments.iter().enumerate() {
        let is_last = index + 1 == segments.len();
        let bytes = read(segment)?;
        let Some((header, epoch)) = segment.header.as_ref().zip(all.epoch) else {
            // The header is durable before the first entry is appended: a file without entries is a torn creation.
            if is_last && !has_entry(segment, &bytes, all.epoch) {
                all.torn_bytes += bytes.len() as u64;
            } else {
                let (segment, position) = (segment.name.clone(), segment.position);
                all.damage.push(Damage { segment, position, length: None });
            }
            scans.push(None);
            continue;
        };
        if header.epoch != epoch {
            let (name, found) = (segment.name.clone(), header.epoch);
            return Err(LogError::Epoch { name, found, expected: epoch });
        }
        let following = segments[index + 1..].iter().find(|next| next.header.is_some());
        let scanned = scan(segment, &bytes, epoch, following.map(|next| next.position));
        let position = |offset: usize| segment.position + (offset - segment.header_bytes) as u64;
        let damage = |(from, to): &(usize, usize)| Damage {
            segment: segment.name.clone(),
            position: position(*from),
            length: Some((to - from) as u64),
        };
        all.damage.extend(scanned.holes.iter().map(damage));
        all.torn_bytes += bytes.len().saturating_sub(scanned.end) as u64;
        all.entries += scanned.entries;
        all.repaired += scanned.fillers;
        all.end = position(scanned.end);
        scans.push(Some(scanned));
    }
    let first = segments.iter().find(|segment| segment.header.is_some());
    all.start = first.map_or(0, |segment| segment.position);
    all.end = all.end.max(all.start);
    Ok((all, scans))
}

/// Whether a segment with a damaged header has its first entry. Without the epoch of the log, the answer is yes.
fn has_entry(segment: &Loaded, bytes: &[u8], epoch: Option<u64>) -> bool {
    let is_first =
        |at| epoch.is_none_or(|epoch| intact(&bytes[at..], epoch, segment.position).is_some());
    (0..bytes.len()).any(is_first)
}
