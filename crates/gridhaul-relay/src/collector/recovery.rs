//! The state of a collector, from its log.

use crate::log::{DurableRange, Findings, LogError, LogReader, Lost, Storage};
use crate::protocol::{
    Decoder, PreviousRecords, RESTART_STEP, Reception, Record, batches, put_varint,
};

/// Numbers that a collector continues after a restart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CollectorState {
    /// Number of the next meter.
    pub next_meter: u64,
    /// Sequence number of the next record of each shard.
    pub next: Vec<u64>,
    /// End of the records of each shard before the restart.
    pub previous: Vec<PreviousRecords>,
    /// Entries of the log that are lost.
    pub lost: Option<Lost>,
    /// Time of the restart.
    pub time: Option<Reception>,
}

impl CollectorState {
    /// The state as a snapshot for the log.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, self.next_meter);
        put_varint(&mut bytes, self.next.len() as u64);
        self.next.iter().for_each(|next| put_varint(&mut bytes, *next));
        bytes
    }

    /// Reads a snapshot; one that is missing or malformed gives the state of a new log.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut decoder = Decoder::new(bytes, "snapshot");
        let mut read = || -> Result<Self, crate::protocol::DecodeError> {
            let next_meter = decoder.varint()?;
            let shards = decoder.varint()?.min(u64::from(u16::MAX));
            let next = (0..shards).map(|_| decoder.varint()).collect::<Result<_, _>>()?;
            Ok(Self { next_meter, next, ..Self::default() })
        };
        read().unwrap_or_default()
    }

    /// The numbers with which a collector with `shards` shards continues after a restart, which has
    /// found this in its log.
    #[must_use]
    pub fn after_restart(mut self, shards: u16, findings: &Findings) -> Self {
        self.lost = findings.lost();
        // Without the end of the log, the end of its records is unknown.
        let is_unknown = self.lost.is_some_and(|lost| lost.bytes.is_none());
        let end = |next: &u64| match is_unknown {
            true => PreviousRecords::Unknown,
            false => PreviousRecords::EndAt(*next),
        };
        self.previous = self.next.iter().map(end).collect();
        // The end of the log may have been lost together with the numbers of its meters.
        self.next_meter = next_multiple(self.next_meter, 1 << 24);
        self.next.resize(self.next.len().max(usize::from(shards)), 0);
        for next in &mut self.next {
            *next = next_multiple(*next, RESTART_STEP);
        }
        self
    }

    fn observe(&mut self, shard: u16, next: u64) {
        if self.next.len() <= usize::from(shard) {
            self.next.resize(usize::from(shard) + 1, 0);
        }
        let known = &mut self.next[usize::from(shard)];
        *known = (*known).max(next);
    }
}

/// Reads the durable entries of a log, beginning with a snapshot, and returns the numbers after its
/// last records.
///
/// # Errors
/// The disk has failed.
pub fn recover<S: Storage>(
    storage: S,
    epoch: u64,
    snapshot: &[u8],
    range: DurableRange,
) -> Result<CollectorState, LogError> {
    let mut state = CollectorState::from_bytes(snapshot);
    let mut reader = LogReader::new(storage, epoch, range.start);
    while let Some(entry) = reader.next(range.end.position())? {
        for batch in batches(entry.payload).map_while(Result::ok) {
            state.observe(batch.shard, batch.next());
            for (_, record) in batch.records().map_while(Result::ok) {
                if let Record::Open { meter, .. } = record {
                    state.next_meter = state.next_meter.max(meter + 1);
                }
            }
        }
    }
    Ok(state)
}

/// The smallest multiple of `step` above a number; 0 stays 0.
const fn next_multiple(number: u64, step: u64) -> u64 {
    if number == 0 { 0 } else { (number / step + 1) * step }
}
