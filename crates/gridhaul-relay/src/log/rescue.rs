//! The header of a segment, from its entries: each has its position and a checksum of its own.

use gridhaul_core::coverage_mark::mark;

use super::format::{ENTRY_HEADER, EntryHeader, SEGMENT_HEADER, SegmentHeader, VERSION};
use super::scan::intact;

/// A header that follows from the entries after it.
pub(super) struct Rescued {
    pub header: SegmentHeader,
    /// Bytes of the header with its snapshot.
    pub size: usize,
}

/// Finds the first intact entry of a segment whose header is damaged; its place in the file and its
/// position give the size of the header. `epoch` is that of the log, if other segments or the list
/// of segments state it; the damaged header may be right about it. `None` if no entry is intact, so
/// that nothing is attributed to a position.
pub(super) fn rescue(bytes: &[u8], position: u64, epoch: Option<u64>) -> Option<Rescued> {
    let epochs: Vec<u64> = epoch.into_iter().chain(SegmentHeader::epoch_field(bytes)).collect();
    let last = bytes.len().checked_sub(ENTRY_HEADER)?;
    (SEGMENT_HEADER..=last).find_map(|at| {
        let stated = EntryHeader::position_field(&bytes[at..])?;
        let before = usize::try_from(stated.checked_sub(position)?).ok()?;
        let size = at.checked_sub(before).filter(|size| *size >= SEGMENT_HEADER)?;
        let is_intact = |epoch: &u64| intact(&bytes[at..], *epoch, stated).is_some();
        let epoch = epochs.iter().copied().find(|epoch| is_intact(epoch))?;
        mark!(log_damaged_header_follows_from_an_entry);
        // An empty snapshot is not lost.
        let snapshot = (size == SEGMENT_HEADER).then(Vec::new);
        let header = SegmentHeader { position, epoch, version: VERSION, snapshot };
        Some(Rescued { header, size })
    })
}
