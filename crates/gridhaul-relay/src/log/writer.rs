//! Appending to a log, and making appended data durable.

use std::collections::{BTreeSet, VecDeque};
use std::io;

use gridhaul_core::coverage_mark::mark;

use super::durable::{Durable, DurableRange};
use super::extent::Extent;
use super::format::{
    ENTRY_HEADER, EntryHeader, PAYLOAD_MAX, Place, SEGMENT_HEADER, SNAPSHOT_MAX, SegmentHeader,
    VERSION, segment_name,
};
use super::{LogError, Storage, StorageFile};

/// The writing end of a log. Appended entries are durable after [`commit`](Self::commit).
#[derive(Debug)]
pub struct LogWriter<S: Storage> {
    storage: S,
    epoch: u64,
    active: Segment<S::File>,
    segments: Segments,
    extent: Extent,
    /// Whether the file of the extent has to be replaced.
    is_extent_old: bool,
    end: u64,
    committed: Durable<u64>,
    has_failed: bool,
    /// Buffer for the next entry, which is reused.
    buffer: Vec<u8>,
}

/// Positions of the segment files.
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// Segments that are needed and have a snapshot, oldest first.
    pub with_snapshot: VecDeque<u64>,
    /// Segments whose snapshot is lost: they are needed as long as the segment before them.
    pub without_snapshot: BTreeSet<u64>,
    /// Segments that are not needed and could not be removed yet.
    pub unremoved: Vec<u64>,
}

impl Segments {
    fn start(&self) -> u64 {
        self.with_snapshot[0]
    }

    /// All segments that are needed, in order.
    fn needed(&self) -> BTreeSet<u64> {
        self.with_snapshot.iter().chain(&self.without_snapshot).copied().collect()
    }

    /// Segments whose entries all end at or before a position are not needed any more.
    fn release(&mut self, position: u64) {
        while self.with_snapshot.get(1).is_some_and(|next| *next <= position) {
            self.unremoved.extend(self.with_snapshot.pop_front());
        }
        let rest = self.without_snapshot.split_off(&self.start());
        self.unremoved.extend(std::mem::replace(&mut self.without_snapshot, rest));
    }
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
        let extent = Extent { epoch, first: position, last: position, gaps: Vec::new() };
        let segments =
            Segments { with_snapshot: VecDeque::from([position]), ..Segments::default() };
        Self::resume(storage, active, segments, position, extent)
    }

    /// Continues a log whose entries up to `end` are durable.
    pub(super) fn resume(
        storage: S,
        active: Segment<S::File>,
        segments: Segments,
        end: u64,
        extent: Extent,
    ) -> Result<Self, LogError> {
        extent.write(&storage)?;
        Ok(Self {
            epoch: extent.epoch,
            storage,
            active,
            segments,
            extent,
            is_extent_old: false,
            end,
            committed: Durable::new(end),
            has_failed: false,
            buffer: Vec::new(),
        })
    }

    /// Appends an entry and returns the position of its end.
    ///
    /// # Errors
    /// The disk is full or has failed; the log is unchanged and further calls may succeed.
    /// [`LogError::SyncFailed`] after a failed [`commit`](Self::commit).
    ///
    /// # Panics
    /// When the payload is longer than [`PAYLOAD_MAX`].
    pub fn append(&mut self, payload: &[u8]) -> Result<u64, LogError> {
        assert!(payload.len() <= PAYLOAD_MAX, "payload of {} bytes", payload.len());
        if self.has_failed {
            return Err(LogError::SyncFailed);
        }
        assert!(self.end >= self.active.position, "entries follow the header of their segment");
        self.buffer.clear();
        let place = Place { position: self.end, committed: self.committed.position() };
        EntryHeader::write_entry(&mut self.buffer, self.epoch, place, payload);
        let offset = self.active.header + (self.end - self.active.position);
        if let Err(source) = self.active.file.write_at(&self.buffer, offset) {
            // What was written of the entry does no harm: it is overwritten, or dropped as a torn
            // tail.
            mark!(log_continues_after_a_failed_append);
            let _ = self.active.file.resize(offset);
            return Err(LogError::storage("appending to", &self.active.name)(source));
        }
        self.end += (ENTRY_HEADER + payload.len()) as u64;
        Ok(self.end)
    }

    /// Makes all appended entries durable and returns the position of their end.
    ///
    /// # Errors
    /// The disk has failed, or the file was removed: nobody would find the entries after a restart.
    /// The log then refuses all further calls: after a failed fdatasync the kernel may have
    /// discarded the data, and another call would succeed without it.
    pub fn commit(&mut self) -> Result<Durable<u64>, LogError> {
        if self.has_failed {
            return Err(LogError::SyncFailed);
        }
        assert!(self.committed.position() <= self.end, "the durable part of the log is appended");
        if self.committed.position() < self.end {
            if let Err(source) = self.active.file.sync() {
                mark!(log_ends_with_a_failed_sync);
                self.has_failed = true;
                return Err(LogError::storage("synchronising", &self.active.name)(source));
            }
            self.check_active()?;
            mark!(log_entries_are_durable_after_sync);
            self.committed = Durable::new(self.end);
        }
        Ok(self.committed)
    }

    /// Commits, and begins a new segment whose header has this snapshot: the state that a reader
    /// needs if all earlier segments are removed.
    ///
    /// # Errors
    /// Those of [`commit`](Self::commit); the disk is full, or the snapshot is longer than
    /// [`SNAPSHOT_MAX`], and the log continues in the present segment.
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
        self.check()?;
        self.active = create_segment(&self.storage, self.epoch, self.end, snapshot)?;
        self.segments.with_snapshot.push_back(self.end);
        self.extent.last = self.end;
        self.is_extent_old = true;
        // Without this file, the log has all its entries; only the loss of its last segment would
        // not be noticed.
        let _ = self.update_extent();
        Ok(())
    }

    /// Checks that all segments are there: another program may have removed some.
    ///
    /// # Errors
    /// A segment is missing, or the folder cannot be read.
    pub fn check(&mut self) -> Result<(), LogError> {
        let names = self.storage.list().map_err(LogError::storage("listing", "the folder"))?;
        let names: BTreeSet<String> = names.into_iter().collect();
        let needed = self.segments.needed();
        for position in &needed {
            let name = segment_name(*position);
            if !names.contains(&name) {
                self.has_failed = true;
                let end = needed.range(position + 1..).next().copied().unwrap_or(self.end);
                return Err(LogError::Removed { name, position: *position, end });
            }
        }
        self.check_active()
    }

    /// Checks that the file to which entries are appended has its name.
    fn check_active(&mut self) -> Result<(), LogError> {
        let Segment { name, file, position, .. } = &self.active;
        let failed = LogError::storage("checking", name);
        if self.storage.is_named(name, file).map_err(failed)? {
            return Ok(());
        }
        mark!(log_commits_to_no_removed_file);
        self.has_failed = true;
        Err(LogError::Removed { name: name.clone(), position: *position, end: self.end })
    }

    fn update_extent(&mut self) -> Result<(), LogError> {
        if self.is_extent_old {
            self.extent.write(&self.storage)?;
            self.is_extent_old = false;
        }
        Ok(())
    }

    /// Removes segments whose entries all end at or before a position. Returns the position of the
    /// first entry that is kept. Segments that cannot be removed are removed by a later call.
    ///
    /// # Errors
    /// The disk has failed, or a file cannot be removed. Segments after it are removed
    /// nevertheless.
    pub fn trim(&mut self, position: u64) -> Result<u64, LogError> {
        self.segments.release(position);
        if self.extent.first != self.start() {
            self.extent.set_first(self.start());
            self.is_extent_old = true;
        }
        // A power failure could restore an earlier segment and not a later one, and the removal of
        // one may fail. The file states that they are not needed, so that this is not a gap.
        let updated = self.update_extent();
        if self.segments.unremoved.is_empty()
            || updated.as_ref().is_err_and(|error| !error.is_full())
        {
            return updated.map(|()| self.start());
        }
        let mut failure = None;
        self.segments.unremoved.retain(|position| {
            let name = segment_name(*position);
            match self.storage.remove(&name) {
                Ok(()) => false,
                // Another program has removed the segment, which was not needed any more.
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => {
                    mark!(log_removal_is_repeated);
                    failure.get_or_insert_with(|| LogError::storage("removing", &name)(error));
                    true
                }
            }
        });
        self.storage.sync_names().map_err(LogError::storage("synchronising", "the folder"))?;
        // On a full disk, the removal has made space.
        self.update_extent()?;
        failure.map_or_else(|| Ok(self.start()), Err)
    }

    /// Number of segments that are not needed and could not be removed.
    #[must_use]
    pub const fn unremoved(&self) -> usize {
        self.segments.unremoved.len()
    }

    /// Position of the first entry.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.segments.start()
    }

    /// End of the appended entries.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// End of the durable entries.
    #[must_use]
    pub const fn committed(&self) -> Durable<u64> {
        self.committed
    }

    /// The durable entries.
    #[must_use]
    pub fn durable_range(&self) -> DurableRange {
        DurableRange { start: self.start(), end: self.committed }
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
    let snapshot = snapshot.to_vec();
    let size = SEGMENT_HEADER + snapshot.len();
    let header =
        SegmentHeader { position, epoch, version: VERSION, snapshot: Some(snapshot) }.write(size);
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
