//! Records that the head has not confirmed: in memory, or in the log.

use std::collections::VecDeque;

use gridhaul_core::coverage_mark::mark;

use crate::log::{Durable, DurableRange, LogError, LogReader, Storage};
use crate::protocol::{Batch, batches};

/// The unconfirmed records of one shard.
#[derive(Debug)]
pub(super) enum Backlog<S: Storage> {
    Memory(MemoryBacklog),
    Log(Box<LogBacklog<S>>),
}

/// Batches in memory, oldest first.
#[derive(Debug, Default)]
pub(super) struct MemoryBacklog {
    batches: VecDeque<(u64, u64, Vec<u8>)>,
    bytes: u64,
    /// Number of batches that were sent on the present connection.
    sent: usize,
}

/// A position in the log.
#[derive(Debug)]
pub(super) struct LogBacklog<S: Storage> {
    storage: S,
    epoch: u64,
    shard: u16,
    reader: LogReader<S>,
    /// End of the durable part of the log.
    durable_end: Durable<u64>,
    /// Batches of the entry that was read last: position of the entry, batch.
    read: VecDeque<(u64, Vec<u8>)>,
    /// Batches that were sent and are not confirmed: next sequence number, position of their entry.
    sent: VecDeque<(u64, u64)>,
    /// Everything before this position is confirmed.
    confirmed: u64,
    /// Batches that end at or before this sequence number are not sent.
    skip: u64,
    /// The last search for a batch ended before the end of the log was reached.
    is_searching: bool,
}

/// Bytes of the log in which one call searches for a batch. Records that the head has, and those of
/// other shards, may fill the whole log: reading it at once would delay the meters.
const SEARCH: u64 = 256 * 1024;

/// A batch to send.
pub(super) struct NextBatch {
    pub first: u64,
    pub next: u64,
    pub bytes: Vec<u8>,
}

impl<S: Storage + Clone> Backlog<S> {
    pub(super) fn log(storage: S, epoch: u64, shard: u16, range: DurableRange) -> Self {
        let DurableRange { start, end } = range;
        let reader = LogReader::new(storage.clone(), epoch, start);
        Self::Log(Box::new(LogBacklog {
            storage,
            epoch,
            shard,
            reader,
            durable_end: end,
            read: VecDeque::new(),
            sent: VecDeque::new(),
            confirmed: start,
            skip: 0,
            is_searching: false,
        }))
    }

    /// Adds batches in memory.
    pub(super) fn push(&mut self, group: &[u8]) {
        let Self::Memory(memory) = self else { return };
        for batch in batches(group).map_while(Result::ok) {
            memory.bytes += batch.bytes.len() as u64;
            memory.batches.push_back((batch.first, batch.next(), batch.bytes.to_vec()));
        }
    }

    /// The log is durable up to a position.
    pub(super) fn set_durable_end(&mut self, end: Durable<u64>) {
        if let Self::Log(log) = self {
            log.durable_end = end;
        }
    }

    /// A new connection begins, on which records from `next` on are sent.
    pub(super) fn rewind(&mut self, next: u64) {
        self.confirm(next);
        match self {
            Self::Memory(memory) => memory.sent = 0,
            Self::Log(log) => {
                // The head may have confirmed a part of the entry at this position: `skip` omits
                // its batches, because the reader begins with a whole entry.
                log.reader = LogReader::new(log.storage.clone(), log.epoch, log.confirmed);
                log.read.clear();
                log.sent.clear();
                log.skip = next;
            }
        }
    }

    /// All records before `next` are durable at the head.
    pub(super) fn confirm(&mut self, next: u64) {
        match self {
            Self::Memory(memory) => {
                while memory.batches.front().is_some_and(|(_, end, _)| *end <= next) {
                    let (_, _, bytes) = memory.batches.pop_front().expect("there is a batch");
                    memory.bytes -= bytes.len() as u64;
                    memory.sent = memory.sent.saturating_sub(1);
                }
            }
            Self::Log(log) => {
                while log.sent.front().is_some_and(|(end, _)| *end <= next) {
                    log.sent.pop_front();
                }
                log.update_confirmed();
            }
        }
    }

    /// The next batch to send on the present connection, if it has at most `credit` bytes.
    pub(super) fn next(&mut self, credit: u64) -> Result<Option<NextBatch>, LogError> {
        match self {
            Self::Memory(memory) => {
                let Some((first, next, bytes)) = memory.batches.get(memory.sent) else {
                    return Ok(None);
                };
                if bytes.len() as u64 > credit {
                    mark!(collector_sends_nothing_without_credit);
                    return Ok(None);
                }
                memory.sent += 1;
                Ok(Some(NextBatch { first: *first, next: *next, bytes: bytes.clone() }))
            }
            Self::Log(log) => log.next(credit),
        }
    }

    /// Whether [`Self::next`] has returned nothing before the end of the log was reached.
    pub(super) const fn is_searching(&self) -> bool {
        match self {
            Self::Memory(_) => false,
            Self::Log(log) => log.is_searching,
        }
    }

    /// Bytes that the head has not confirmed. `end` is the end of the log.
    pub(super) fn size(&self, end: u64) -> u64 {
        match self {
            Self::Memory(memory) => memory.bytes,
            Self::Log(log) => end.saturating_sub(log.confirmed),
        }
    }

    /// Position in the log up to which this shard needs no entry.
    pub(super) const fn confirmed_position(&self) -> u64 {
        match self {
            Self::Memory(_) => 0,
            Self::Log(log) => log.confirmed,
        }
    }
}

impl<S: Storage> LogBacklog<S> {
    fn next(&mut self, credit: u64) -> Result<Option<NextBatch>, LogError> {
        let begun = self.reader.position();
        self.is_searching = false;
        while self.read.is_empty() {
            if self.reader.position() > begun + SEARCH {
                self.is_searching = true;
                self.update_confirmed();
                return Ok(None);
            }
            let Some(entry) = self.reader.next(self.durable_end.position())? else {
                self.update_confirmed();
                return Ok(None);
            };
            for batch in batches(entry.payload).map_while(Result::ok) {
                mark!(collector_skips_confirmed_batches_of_an_entry if batch.next() <= self.skip);
                if batch.shard == self.shard && batch.next() > self.skip {
                    self.read.push_back((entry.position, batch.bytes.to_vec()));
                }
            }
        }
        let (position, bytes) = &self.read[0];
        if bytes.len() as u64 > credit {
            return Ok(None);
        }
        let Ok(Some(Batch { first, count, .. })) = Batch::read(bytes) else {
            unreachable!("the batch was verified when it was read");
        };
        let next = first + u64::from(count);
        self.sent.push_back((next, *position));
        let (_, bytes) = self.read.pop_front().expect("there is a batch");
        Ok(Some(NextBatch { first, next, bytes }))
    }

    fn update_confirmed(&mut self) {
        // Entries are confirmed in order: the first one that the head may not have is that of the
        // oldest batch that was sent or, without one, read; otherwise everything read is confirmed.
        let unconfirmed = self.sent.front().map(|(_, position)| *position);
        let unsent = self.read.front().map(|(position, _)| *position);
        self.confirmed =
            unconfirmed.or(unsent).unwrap_or_else(|| self.reader.position()).max(self.confirmed);
    }
}
