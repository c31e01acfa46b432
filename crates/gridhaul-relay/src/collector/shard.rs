//! A shard: records of some of the meters in order, on their way to durability and to the head.

use std::collections::VecDeque;

use super::backlog::Backlog;
use super::meter::MeterId;
use super::session_state::Session;
use crate::log::Storage;
use crate::protocol::{BatchBuilder, Reception, Record};

/// Largest batch: smaller than the limit of the protocol by the largest record.
const BATCH_MAX: usize = 512 * 1024;

/// One of the sequences of records that a collector forwards.
#[derive(Debug)]
pub(super) struct Shard<S: Storage> {
    pub builder: BatchBuilder,
    /// Finished batches that are not part of a group yet.
    pub finished: Vec<u8>,
    /// Records that are not durable, in order.
    pub awaiting: VecDeque<Awaiting>,
    pub backlog: Backlog<S>,
    pub session: Session,
}

/// A record that is not durable.
#[derive(Debug, Clone, Copy)]
pub(super) struct Awaiting {
    pub sequence: u64,
    pub meter: MeterId,
    pub kind: AwaitingKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum AwaitingKind {
    /// Data up to this position.
    Data(u64),
    /// FIN of the meter.
    Eof,
}

impl<S: Storage> Shard<S> {
    pub(super) fn new(epoch: u64, shard: u16, next: u64, backlog: Backlog<S>) -> Self {
        Self {
            builder: BatchBuilder::new(epoch, shard, next),
            finished: Vec::new(),
            awaiting: VecDeque::new(),
            backlog,
            session: Session::new(next),
        }
    }

    /// Appends a record that was received at this time and returns its sequence number.
    pub(super) fn push(&mut self, record: &Record<'_>, time: Option<Reception>) -> u64 {
        if self.builder.len() > BATCH_MAX || !self.builder.accepts(time) {
            self.builder.finish(&mut self.finished);
        }
        self.builder.push_at(record, time)
    }

    /// Appends all records that are not part of a group to `group`.
    pub(super) fn finish(&mut self, group: &mut Vec<u8>) {
        if !self.finished.is_empty() {
            group.append(&mut self.finished);
            self.finished = Vec::new();
        }
        self.builder.finish(group);
    }

    /// Bytes of records that are not part of a group.
    pub(super) fn unfinished(&self) -> usize {
        self.finished.len() + self.builder.len()
    }
}
