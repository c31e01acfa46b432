//! Appending to a log, and making appended data durable.

use std::collections::VecDeque;
use std::io;

use super::format::{
    ENTRY_HEADER, EntryHeader, PAYLOAD_MAX, Place, SNAPSHOT_MAX, SegmentHeader, segment_name,
};
use super::{LogError, Storage, StorageFile};

/// The writing end of a log. Appended entries are durable after [`commit`](Self::commit).
#[derive(Debug)]
pub struct LogWriter<S: Storage> {
    storage: S,
    epoch: u64,
    active: Segment<S::File>,
    /// Positions of all segments, the active one last.
    segments: VecDeque<u64>,
    end: u64,
    committed: u64,
    has_failed: bool,
    /// Buffer for the next entry, which is reused.
    buffer: Vec<u8>,
}

/// A segment that is open for writing.
#[derive(Debug)]
pub(super) struct Segment<F> {
    pub name: String,
    pub file: F,
    pub position: u64,
    /// Bytes of the segment header with its snapshot.
    pub header: u64,
}

impl<S: Storage> LogWriter<S> {
    /// Creates the first segment of a log.
    pub(super) fn create(
        storage: S,
        epoch: u64,
        position: u64,
        snapshot: &[u8],
    ) -> Result<Self, LogError> {
        let active = create_segment(&storage, epoch, position, snapshot)?;
        Ok(Self::resume(storage, epoch, active, VecDeque::from([position]), position))
    }

    /// Continues a log whose entries up to `end` are durable.
    pub(super) fn resume(
        storage: S,
        epoch: u64,
        active: Segment<S::File>,
        segments: VecDeque<u64>,
        end: u64,
    ) -> Self {
        Self {
            storage,
            epoch,
            active,
            segments,
            end,
            committed: end,
            has_failed: false,
            buffer: Vec::new(),
        }
    }

    /// Appends an entry and returns the position of its end.
    ///
    /// # Errors
    /// The disk is full or has failed; the log is unchanged and further calls may succeed. [`LogError::SyncFailed`]
    /// after a failed [`commit`](Self::commit).
    ///
    /// # Panics
    /// When the payload is longer than [`PAYLOAD_MAX`].
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, LogError> {
        assert!(payload.len() <= PAYLOAD_MAX, "payload of {} bytes", payload.len());
        if self.has_failed {
            return Err(LogError::SyncFailed);
        }
        self.buffer.clear();
        let place = Place { position: self.end, committed: self.committed };
        EntryHeader::write_entry(&mut self.buffer, self.epoch, place, payload);
        let offset = self.active.header + (self.end - self.active.position);
        if let Err(source) = self.active.file.write_at(&self.buffer, offset) {
            // What was written of the entry does no harm: it is overwritten, or dropped as a torn tail.
            let _ = self.active.file.resize(offset);
            return Err(LogError::storage("appending to", &self.active.name)(source));
        }
        self.end += (ENTRY_HEADER + payload.len()) as u64;
        Ok(self.end)
    }

    /// Makes all appended entries durable and returns the position of their end.
    ///
    /// # Errors
    /// The disk has failed. The log then refuses all further calls: after a failed fdatasync the kernel may have
    /// discarded the data, and another call would succeed without it.
    pub fn commit(&mut self) -> Result<u64, LogError> {
        if self.has_failed {
            return Err(LogError::SyncFailed);
        }
        if self.committed < self.end {
            if let Err(source) = self.active.file.sync() {
                self.has_failed = true;
                return Err(LogError::storage("synchronising", &self.active.name)(source));
            }
            self.committed = self.end;
        }
        Ok(self.committed)
    }

    /// Commits, and begins a new segment whose header has this snapshot: the state that a reader needs if all
    /// earlier segments are removed.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit); the disk is full, or the snapshot is longer than [`SNAPSHOT_MAX`], and the log continues in
    /// the present segment.
    pub fn roll(&mut self, snapshot: &[u8]) -> Result<(), LogError> {
        self.commit()?;
        if self.end == self.active.position {
            return Ok(());
        }
        if snapshot.len() > SNAPSHOT_MAX {
            // A reader would take the header for damaged.
            let text = format!("the state of {} bytes exceeds {SNAPSHOT_MAX}", snapshot.len());
            let source = io::Error::new(io::ErrorKind::InvalidInput, text);
            return Err(LogError::storage("creating", &segment_name(self.end))(source));
        }
        self.active = create_segment(&self.storage, self.epoch, self.end, snapshot)?;
        self.segments.push_back(self.end);
        Ok(())
    }

    /// Removes segments whose entries all end at or before a position. Returns the position of the first entry that
    /// is kept.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn trim(&mut self, position: u64) -> Result<u64, LogError> {
        while self.segments.get(1).is_some_and(|next| *next <= position) {
            let name = segment_name(self.segments[0]);
            self.storage.remove(&name).map_err(LogError::storage("removing", &name))?;
            self.segments.pop_front();
            // A power failure could otherwise restore an earlier segment and not a later one: a gap, which looks like
            // damage.
            self.storage.sync_names().map_err(LogError::storage("synchronising", "the folder"))?;
        }
        Ok(self.start())
    }

    /// Position of the first entry.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.segments[0]
    }

    /// End of the appended entries.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// End of the durable entries.
    #[must_use]
    pub const fn committed(&self) -> u64 {
        self.committed
    }

    /// Random number that identifies the log.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The storage.
    pub const fn storage(&self) -> &S {
        &self.storage
    }
}

/// Creates a segment and makes its header and name durable.
pub(super) fn create_segment<S: Storage>(
    storage: &S,
    epoch: u64,
    position: u64,
    snapshot: &[u8],
) -> Result<Segment<S::File>, LogError> {
    let name = segment_name(position);
    let header = SegmentHeader { position, epoch, snapshot: snapshot.to_vec() }.write();
    // A file of this name can only be the rest of an attempt that failed.
    let _ = storage.remove(&name);
    let file = storage.create(&name).map_err(LogError::storage("creating", &name))?;
    let written = file.write_at(&header, 0).and_then(|()| file.sync());
    if let Err(source) = written.and_then(|()| storage.sync_names()) {
        let _ = storage.remove(&name);
        return Err(LogError::storage("creating", &name)(source));
    }
    Ok(Segment { name, file, position, header: header.len() as u64 })
}
