//! Reading the entries of a log in order, while it is written.

use gridhaul_core::coverage_mark::mark;

use super::extent::Extent;
use super::format::{ENTRY_HEADER, EntryHeader, SEGMENT_HEADER, SegmentHeader, segment_position};
use super::{LogError, Storage, StorageFile};

/// A position in a log from which entries are read.
#[derive(Debug)]
pub struct LogReader<S: Storage> {
    storage: S,
    epoch: u64,
    position: u64,
    open: Option<OpenSegment<S::File>>,
    /// Bytes of the file from `buffered_at` on.
    buffer: Vec<u8>,
    buffered_at: u64,
    /// Gaps that were reported when the log was opened; `None` before the first segment is opened.
    extent: Option<Extent>,
    is_extent_read: bool,
    /// Bytes that are lost before the next entry.
    lost: Option<Lost>,
}

/// Entries that are lost by damage or by a missing segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Number of bytes; `None` if it is unknown.
    pub bytes: Option<u64>,
}

impl Lost {
    /// Both losses.
    #[must_use]
    pub fn and(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self { bytes: self.bytes.zip(other.bytes).map(|(one, two)| one + two) }
    }
}

#[derive(Debug)]
struct OpenSegment<F> {
    name: String,
    file: F,
    position: u64,
    header: u64,
}

/// An entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Position of the entry.
    pub position: u64,
    /// Position of the next entry.
    pub end: u64,
    /// The bytes that were appended.
    pub payload: &'a [u8],
    /// Entries before this one that are lost.
    pub lost: Option<Lost>,
}

impl<S: Storage> LogReader<S> {
    /// A reader of the log with this epoch, at the position of an entry. A position before the
    /// first entry is moved to it.
    #[must_use]
    pub const fn new(storage: S, epoch: u64, position: u64) -> Self {
        Self {
            storage,
            epoch,
            position,
            open: None,
            buffer: Vec::new(),
            buffered_at: 0,
            extent: None,
            is_extent_read: false,
            lost: None,
        }
    }

    /// Position of the next entry.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The next entry that ends at or before `limit`, which must be durable or appended by this
    /// process.
    ///
    /// # Errors
    /// The disk has failed, or the entry is damaged or missing; the position is unchanged. Entries
    /// that were lost before the log was opened are no error: [`Entry::lost`] states them.
    pub fn next(&mut self, limit: u64) -> Result<Option<Entry<'_>>, LogError> {
        loop {
            if self.position >= limit {
                // An idle reader holds no memory.
                self.buffer = Vec::new();
                return Ok(None);
            }
            if !self.is_in_segment() {
                self.open_segment(limit)?;
            }
            let Some(header) = self.read_header()? else {
                self.next_segment(limit)?;
                continue;
            };
            let position = self.position;
            if header.is_filler {
                mark!(log_filler_counts_as_lost_bytes);
                self.position += header.size();
                self.note_lost(Some(header.size()));
                continue;
            }
            let size = header.size() as usize;
            let start = self.fill(size)?;
            let entry = self.buffer.get(start..start + size);
            if !entry.is_some_and(|entry| header.verify(self.epoch, entry)) {
                return Err(self.damaged());
            }
            let end = position + size as u64;
            self.position = end;
            // The last segments were missing when the log was opened: a loss of unknown length.
            if self
                .extent
                .as_ref()
                .is_some_and(|extent| extent.gaps.contains(&(position, position)))
            {
                self.note_lost(None);
            }
            let lost = self.lost.take();
            let payload = &self.buffer[start + ENTRY_HEADER..start + size];
            return Ok(Some(Entry { position, end, payload, lost }));
        }
    }

    /// Bytes before the next entry are lost; `None`: an unknown number.
    fn note_lost(&mut self, bytes: Option<u64>) {
        self.lost = Some(Lost { bytes }.and(self.lost));
    }

    fn is_in_segment(&self) -> bool {
        self.open.as_ref().is_some_and(|open| open.position <= self.position)
    }

    /// Offset of the position in the open file.
    fn offset(&self) -> u64 {
        let open = self.open.as_ref().expect("a segment is open");
        open.header + (self.position - open.position)
    }

    /// The header at the position; `None` at the end of the file.
    fn read_header(&mut self) -> Result<Option<EntryHeader>, LogError> {
        let start = self.fill(ENTRY_HEADER)?;
        let bytes = &self.buffer[start..];
        if bytes.is_empty() {
            return Ok(None);
        }
        EntryHeader::read(bytes, self.position).map(Some).ok_or_else(|| self.damaged())
    }

    /// Reads until the buffer has `length` bytes from the position on, or the file ends. Returns
    /// where they begin.
    fn fill(&mut self, length: usize) -> Result<usize, LogError> {
        let offset = self.offset();
        let end = self.buffered_at + self.buffer.len() as u64;
        if offset < self.buffered_at || offset > end {
            self.buffer.clear();
            self.buffered_at = offset;
        }
        let start = (offset - self.buffered_at) as usize;
        if self.buffer.len() - start >= length {
            return Ok(start);
        }
        self.buffer.drain(..start);
        self.buffered_at = offset;
        let open = self.open.as_ref().expect("a segment is open");
        let mut filled = self.buffer.len();
        self.buffer.resize(length.max(READ_AHEAD), 0);
        while filled < length {
            let read = open
                .file
                .read_at(&mut self.buffer[filled..], offset + filled as u64)
                .map_err(LogError::storage("reading", &open.name))?;
            if read == 0 {
                break;
            }
            filled += read;
        }
        self.buffer.truncate(filled);
        Ok(0)
    }

    /// Opens the segment that contains the position, or else the first one after it.
    fn open_segment(&mut self, limit: u64) -> Result<(), LogError> {
        if !std::mem::replace(&mut self.is_extent_read, true) {
            let extent = Extent::read(&self.storage)?;
            self.extent = extent.filter(|extent| extent.epoch == self.epoch);
        }
        let positions = self.positions()?;
        let before = positions.iter().rev().find(|position| **position <= self.position);
        let chosen = before.or(positions.first()).copied();
        self.enter(chosen, limit)
    }

    /// Moves to the segment after the open one.
    fn next_segment(&mut self, limit: u64) -> Result<(), LogError> {
        let current = self.open.as_ref().expect("a segment is open").position;
        let next = self.positions()?.into_iter().find(|position| *position > current);
        self.enter(next, limit)
    }

    fn positions(&self) -> Result<Vec<u64>, LogError> {
        let names = self.storage.list().map_err(LogError::storage("listing", "the folder"))?;
        let mut positions: Vec<_> =
            names.iter().filter_map(|name| segment_position(name)).collect();
        positions.sort_unstable();
        Ok(positions)
    }

    /// Opens a segment. What is between it and the present position was removed because it is not
    /// needed, or is a gap that was reported. `limit` is the end of the log.
    fn enter(&mut self, position: Option<u64>, limit: u64) -> Result<(), LogError> {
        let removed = |from: u64, end: u64| {
            let name = super::format::segment_name(from);
            LogError::Removed { name, position: from, end }
        };
        let position = position.ok_or_else(|| removed(self.position, limit))?;
        let gap = (self.position, position);
        if position > self.position
            && let Some(extent) = &self.extent
            && position > extent.first
        {
            if !extent.gaps.contains(&gap) {
                mark!(log_reader_stops_before_an_unreported_gap);
                return Err(removed(gap.0, gap.1));
            }
            mark!(log_reported_gap_is_stated_with_the_next_entry);
            self.note_lost(Some(gap.1 - gap.0));
        }
        let name = super::format::segment_name(position);
        let failed = || LogError::storage("reading", &name);
        let file = self.storage.open(&name).map_err(failed())?;
        let mut fixed = [0; SEGMENT_HEADER];
        let mut filled = 0;
        while filled < SEGMENT_HEADER {
            match file.read_at(&mut fixed[filled..], filled as u64).map_err(failed())? {
                0 => break,
                read => filled += read,
            }
        }
        let snapshot =
            SegmentHeader::snapshot_length(&fixed[..filled]).map_err(|_| self.damaged())?;
        self.position = self.position.max(position);
        let header = (SEGMENT_HEADER + snapshot) as u64;
        self.open = Some(OpenSegment { name, file, position, header });
        self.buffer.clear();
        self.buffered_at = 0;
        Ok(())
    }

    fn damaged(&self) -> LogError {
        let name = self.open.as_ref().map_or("the folder", |open| open.name.as_str());
        let source = std::io::Error::new(
            std::io::ErrorKind::InvalidData,
            format!("no intact entry at position {}", self.position),
        );
        LogError::storage("reading", name)(source)
    }
}

/// Bytes that are read at once.
const READ_AHEAD: usize = 64 * 1024;
