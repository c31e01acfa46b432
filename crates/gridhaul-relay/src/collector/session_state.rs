//! State of the upstream connection of a shard.

use std::collections::BTreeSet;

use super::backlog::NextBatch;
use crate::protocol::{Batch, LostRecords, lost_before};

/// State of the upstream connection of a shard.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub state: SessionState,
    /// The run of the head to which server connections belong.
    pub instance: Option<u64>,
    /// Bytes of batches that were sent and may be sent on this connection.
    pub sent: u64,
    pub credit: u64,
    /// Sequence number of the next record that the head expects; `None` before the first batch of a
    /// connection.
    pub expected: Option<u64>,
    /// The largest number that the head can expect: the start of this run, or the end of what this
    /// run has sent. A head that expects more would drop new records as duplicates.
    pub expected_max: u64,
    /// The largest number that the head has confirmed to this run.
    pub confirmed: u64,
    /// Sequence number of the next record on this connection, as far as the head knows it: what
    /// follows later is lost.
    pub follows: u64,
    /// Sequence numbers before which records are missing in the log, all of which were counted.
    gaps: BTreeSet<u64>,
    pub lost: Vec<LostRecords>,
    /// The head has lost records that it had confirmed, which the caller does not know yet.
    pub has_lost: bool,
    /// Whether the head accepts compressed batches.
    pub compression: bool,
    /// Bytes of batches on all connections so far, before and after compression.
    pub batches: u64,
    pub compressed: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SessionState {
    #[default]
    Disconnected,
    /// HELLO was sent.
    Introduced,
    Established,
}

impl Session {
    /// A session of a run whose records begin at a sequence number.
    pub(super) fn new(start: u64) -> Self {
        Self { expected_max: start, ..Self::default() }
    }

    /// Notes records that are missing before a batch, once.
    pub(super) fn note_lost(&mut self, batch: &NextBatch) {
        let follows = std::mem::replace(&mut self.follows, batch.next);
        let Ok(Some(read)) = Batch::read(&batch.bytes) else { return };
        if let Some(lost) = lost_before(follows, &read)
            && self.gaps.insert(batch.first)
        {
            self.lost.push(lost);
        }
    }

    pub(super) fn connect(&mut self) {
        self.state = SessionState::Introduced;
        self.sent = 0;
        self.credit = 0;
        self.expected = None;
    }
}
