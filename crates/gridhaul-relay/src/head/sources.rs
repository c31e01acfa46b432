//! State of each collector at the head: epochs, sequence numbers, open meters.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use gridhaul_core::coverage_mark::mark;

use super::log_item::{Item, NAME_MAX, items};
use crate::log::{DurableRange, LogError, LogReader, Storage};
use crate::protocol::{
    DecodeError, Decoder, Identity, Reception, Record, ResetCause, lost_before, put_text,
    put_varint,
};

/// The state of a head. It follows from the entries of the log; snapshots in the log replace
/// removed entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HeadState {
    pub(super) sources: BTreeMap<u64, Source>,
}

/// An epoch of a collector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Source {
    pub collector: String,
    /// Sequence number of the next record of each shard.
    pub expected: BTreeMap<u16, u64>,
    /// Number expected before the collector stated another one, for shards whose next batch is
    /// missing.
    pub resumed: BTreeMap<u16, u64>,
    pub meters: BTreeMap<u64, HeadMeter>,
}

/// A meter whose connection is open at the collector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct HeadMeter {
    pub peer: Option<SocketAddr>,
    pub local: Option<SocketAddr>,
    pub listener: String,
    pub certificate: String,
    /// Shard of the meter's records. A restart is stated in each shard, and concerns only its
    /// meters: records of other shards may arrive later.
    pub shard: u16,
    /// When the collector has accepted the connection.
    pub opened: Option<Reception>,
    /// Number of bytes received, up to the first gap: records may be lost by damage of a log.
    pub received: u64,
}

impl HeadMeter {
    pub(super) fn identity(&self) -> Identity<'_> {
        Identity {
            peer: self.peer,
            local: self.local,
            listener: &self.listener,
            certificate: &self.certificate,
        }
    }
}

impl HeadState {
    /// Applies an item. `observe` receives each record with its shard and sequence number after it
    /// was applied; resets that follow from restarts and new epochs are passed as records of each
    /// meter, missing records as a gap with the number of the first of them.
    pub(super) fn apply(
        &mut self,
        item: &Item<'_>,
        mut observe: impl FnMut(Observed<'_>, &Source),
    ) {
        match *item {
            Item::Source { epoch, collector } => {
                self.sources.entry(epoch).or_default().collector = collector.to_owned();
            }
            Item::End { epoch } => {
                let Some(source) = self.sources.remove(&epoch) else { return };
                for (meter, state) in &source.meters {
                    let record = Record::Reset { meter: *meter, cause: ResetCause::Restart };
                    let next = source.expected.get(&state.shard).copied().unwrap_or(0);
                    let (number, meter) = ((state.shard, next), Some(state));
                    let time = None;
                    observe(Observed { epoch, number, time, record, meter }, &source);
                }
            }
            Item::Jump { epoch, shard, next } => {
                let source = self.sources.entry(epoch).or_default();
                let expected = source.expected.insert(shard, next).unwrap_or(0);
                // A connection may end before its first batch, and the next one jump again: the gap
                // begins at the number that was expected before the first jump.
                mark!(head_gap_begins_before_the_first_jump if source.resumed.contains_key(&shard));
                source.resumed.entry(shard).or_insert(expected);
            }
            Item::Batch(batch) => {
                let epoch = batch.epoch;
                let source = self.sources.entry(epoch).or_default();
                let expected = source.expected.insert(batch.shard, batch.next()).unwrap_or(0);
                let expected = source.resumed.remove(&batch.shard).unwrap_or(expected);
                if let Some(lost) = lost_before(expected, &batch) {
                    mark!(head_jump_of_sequence_numbers_is_a_gap);
                    let record = Record::Gap { records: lost.count, bytes: None };
                    let number = (batch.shard, expected);
                    let (time, meter) = (None, None);
                    observe(Observed { epoch, number, time, record, meter }, source);
                }
                for (sequence, time, record) in batch.timed_records().map_while(Result::ok) {
                    let record = source.without_gap(record);
                    // Observers need the meters that a record removes: their identity is delivered.
                    let removed = source.apply(batch.shard, &record, time);
                    let number = (batch.shard, sequence);
                    if let Record::Restart { .. } = record {
                        // A restart itself is not delivered, but what it means for each meter.
                        mark!(head_restart_resets_open_meters);
                        for (meter, state) in &removed {
                            let record =
                                Record::Reset { meter: *meter, cause: ResetCause::Restart };
                            let meter = Some(state);
                            observe(Observed { epoch, number, time, record, meter }, source);
                        }
                        continue;
                    }
                    let meter = record.meter().and_then(|meter| source.meters.get(&meter));
                    let meter = meter.or(removed.first().map(|(_, state)| state));
                    observe(Observed { epoch, number, time, record, meter }, source);
                }
            }
        }
    }

    /// Whether a snapshot contains the whole state: not between a jump of the sequence numbers and
    /// the batch after it.
    pub(super) fn is_complete(&self) -> bool {
        self.sources.values().all(|source| source.resumed.is_empty())
    }

    /// The state as a snapshot for the log.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, WITH_TIMES);
        put_varint(&mut bytes, self.sources.len() as u64);
        for (epoch, source) in &self.sources {
            bytes.extend_from_slice(&epoch.to_le_bytes());
            put_text(&mut bytes, &source.collector, NAME_MAX);
            put_varint(&mut bytes, source.expected.len() as u64);
            for (shard, next) in &source.expected {
                put_varint(&mut bytes, u64::from(*shard));
                put_varint(&mut bytes, *next);
            }
            put_varint(&mut bytes, source.meters.len() as u64);
            for (&meter, state) in &source.meters {
                Record::Open { meter, identity: state.identity() }.write(&mut bytes);
                put_varint(&mut bytes, u64::from(state.shard));
                put_varint(&mut bytes, state.received);
                bytes.push(u8::from(state.opened.is_some()));
                if let Some(opened) = state.opened {
                    opened.write(&mut bytes);
                }
            }
        }
        bytes
    }

    /// Reads a snapshot; one that is missing or malformed gives an empty state.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut decoder = Decoder::new(bytes, "snapshot");
        Self::read(&mut decoder).unwrap_or_default()
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let mut state = Self::default();
        let first = decoder.varint()?;
        let has_times = first == WITH_TIMES;
        let count = if has_times { decoder.varint()? } else { first };
        for _ in 0..count {
            let epoch = decoder.u64()?;
            let mut source =
                Source { collector: decoder.text(NAME_MAX)?.to_owned(), ..Source::default() };
            for _ in 0..decoder.varint()? {
                source.expected.insert(decoder.varint()? as u16, decoder.varint()?);
            }
            for _ in 0..decoder.varint()? {
                let record = Record::read(decoder)?;
                let shard = decoder.varint()? as u16;
                let received = decoder.varint()?;
                let is_known = has_times && decoder.u8()? != 0;
                let opened = if is_known { Some(Reception::read(decoder)?) } else { None };
                source.apply(shard, &record, opened);
                if let Some(meter) = record.meter().and_then(|meter| source.meters.get_mut(&meter))
                {
                    meter.received = received;
                }
            }
            state.sources.insert(epoch, source);
        }
        Ok(state)
    }

    /// The state at the end of the log's durable part.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn recover<S: Storage>(
        storage: S,
        epoch: u64,
        snapshot: &[u8],
        range: DurableRange,
    ) -> Result<Self, LogError> {
        let mut state = Self::from_bytes(snapshot);
        let mut reader = LogReader::new(storage, epoch, range.start);
        while let Some(entry) = reader.next(range.end.position())? {
            for item in items(entry.payload).map_while(Result::ok) {
                state.apply(&item, |_, _| {});
            }
        }
        Ok(state)
    }

    /// Number of open meters of all collectors.
    #[must_use]
    pub fn meter_count(&self) -> usize {
        self.sources.values().map(|source| source.meters.len()).sum()
    }
}

/// First number of a snapshot with the times at which meters have connected. Those of version 1
/// begin with the number of sources.
const WITH_TIMES: u64 = u64::MAX;

/// A record with its context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Observed<'a> {
    pub epoch: u64,
    /// Shard and sequence number of the record from which this one follows.
    pub number: (u16, u64),
    pub time: Option<Reception>,
    pub record: Record<'a>,
    /// The meter before it was removed, or after the record was applied.
    pub meter: Option<&'a HeadMeter>,
}

impl Source {
    /// A reset instead of the end of a stream of which data is missing: FIN would state that
    /// everything was delivered.
    fn without_gap<'a>(&self, record: Record<'a>) -> Record<'a> {
        match record {
            Record::Eof { meter, offset }
                if self.meters.get(&meter).is_none_or(|state| state.received != offset) =>
            {
                mark!(head_end_of_a_stream_with_a_gap_is_a_reset);
                Record::Reset { meter, cause: ResetCause::Damage }
            }
            other => other,
        }
    }

    /// Applies a record and returns the meters that it has removed.
    fn apply(
        &mut self,
        shard: u16,
        record: &Record<'_>,
        time: Option<Reception>,
    ) -> Vec<(u64, HeadMeter)> {
        match *record {
            Record::Open { meter, identity } => {
                let state = HeadMeter {
                    peer: identity.peer,
                    local: identity.local,
                    listener: identity.listener.to_owned(),
                    certificate: identity.certificate.to_owned(),
                    shard,
                    opened: time,
                    ..HeadMeter::default()
                };
                self.meters.insert(meter, state);
            }
            Record::Data { meter, offset, bytes, .. } => {
                if let Some(state) =
                    self.meters.get_mut(&meter).filter(|state| state.received == offset)
                {
                    state.received += bytes.len() as u64;
                }
            }
            Record::Eof { meter, .. } | Record::Reset { meter, .. } => {
                return self
                    .meters
                    .remove(&meter)
                    .map(|state| (meter, state))
                    .into_iter()
                    .collect();
            }
            Record::Gap { .. } => {}
            Record::Restart { first_meter, .. } => {
                let ended = self.meters.range(..first_meter);
                let ended: Vec<u64> = ended
                    .filter(|(_, meter)| meter.shard == shard)
                    .map(|(meter, _)| *meter)
                    .collect();
                let removed = ended.into_iter();
                return removed
                    .filter_map(|meter| Some((meter, self.meters.remove(&meter)?)))
                    .collect();
            }
        }
        Vec::new()
    }
}
