//! The state machine of a collector.

use std::collections::VecDeque;
use std::iter;

use gridhaul_core::coverage_mark::mark;
use gridhaul_protocols::framing::{Framing, FramingError, MessageFraming};

use super::backlog::{Backlog, MemoryBacklog};
use super::messages::IncompleteMessages;
use super::meter::{Meter, MeterId, MeterStatus, MeterTable};
use super::recovery::CollectorState;
use super::settings::{Settings, Tier};
use super::shard::{Awaiting, AwaitingKind, Shard};
use crate::log::{DurableRange, SEGMENT_FULL, Storage};
use crate::protocol::{DATA_MAX, Identity, PreviousRecords, Reception, Record, ResetCause};

/// A collector.
#[derive(Debug)]
pub struct Collector<S: Storage> {
    pub(super) settings: Settings,
    pub(super) epoch: u64,
    pub(super) meters: MeterTable,
    pub(super) shards: Vec<Shard<S>>,
    pub(super) next_meter: u64,
    pub(super) events: VecDeque<Event>,
    /// Sequence number after the last record of each shard that is part of a group, durable or not.
    pub(super) grouped: Vec<u64>,
    /// Bytes of the group that is being written to the log.
    pub(super) writing: Option<u64>,
    /// End of the log, and of its durable part.
    pub(super) log_end: u64,
    /// Bytes in the present segment.
    pub(super) segment_used: u64,
    pub(super) at_risk: u64,
    /// Counts how often the backlog fell below half of its limit.
    pub(super) share_round: u32,
    /// Whether the second half of the backlog was being filled when data arrived last.
    pub(super) was_second_half: bool,
    pub(super) incomplete: IncompleteMessages,
    /// Records that are parts of messages and do not end them.
    pub(super) parts: u64,
    /// Time of the events that the caller reports.
    time: Option<Reception>,
}

/// The log of a collector.
#[derive(Debug, Clone)]
pub struct CollectorLog<S> {
    /// Its files.
    pub storage: S,
    /// Its entries.
    pub range: DurableRange,
}

/// Task of the caller for a meter's connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Send these bytes, and report them with [`Collector::handle_down_written`].
    Down {
        /// The meter.
        meter: MeterId,
        /// Data of the server.
        bytes: Vec<u8>,
    },
    /// The meter's stream is stored up to this position, after [`Collector::notify_stored`].
    Stored {
        /// The meter.
        meter: MeterId,
        /// Position after the last byte that is stored.
        position: u64,
    },
    /// The meter's stream and its FIN are stored, after [`Collector::notify_stored`].
    EndStored(MeterId),
    /// Send FIN after all data.
    SendFin(MeterId),
    /// Both directions are complete: close the connection. The meter no longer exists.
    Close(MeterId),
    /// Send RST. The meter no longer exists.
    Reset(MeterId, ResetCause),
}

impl<S: Storage + Clone> Collector<S> {
    /// A collector that continues with these numbers. Tiers other than
    /// [`Tier::Local`] have no log.
    pub fn new(
        settings: Settings,
        epoch: u64,
        state: &CollectorState,
        log: Option<CollectorLog<S>>,
    ) -> Self {
        let mut collector = Self::without_meters(settings, epoch, state, log);
        if state.next_meter > 0 || state.next.iter().any(|next| *next > 0) {
            let ends =
                state.previous.iter().copied().chain(iter::repeat(PreviousRecords::Unstated));
            for (shard, previous) in collector.shards.iter_mut().zip(ends) {
                let first_meter = state.next_meter;
                shard.push(&Record::Restart { first_meter, previous }, state.time);
            }
        }
        if let Some(lost) = state.lost {
            // The entries of all shards are in one log.
            mark!(collector_states_what_its_log_has_lost);
            let gap = Record::Gap { records: None, bytes: lost.bytes };
            collector.shards[0].push(&gap, state.time);
        }
        collector
    }

    pub(super) fn without_meters(
        settings: Settings,
        epoch: u64,
        state: &CollectorState,
        log: Option<CollectorLog<S>>,
    ) -> Self {
        let number = |shard: u16| state.next.get(usize::from(shard)).copied().unwrap_or(0);
        let backlog = |shard| match &log {
            Some(log) => Backlog::log(log.storage.clone(), epoch, shard, log.range),
            None => Backlog::Memory(MemoryBacklog::default()),
        };
        // Records of a former configuration with more shards may wait in the log.
        let count = settings.shards.max(u16::try_from(state.next.len()).unwrap_or(u16::MAX));
        let shards = (0..count)
            .map(|shard| Shard::new(epoch, shard, number(shard), backlog(shard)))
            .collect();
        Self {
            epoch,
            meters: MeterTable::default(),
            shards,
            next_meter: state.next_meter,
            events: VecDeque::new(),
            grouped: (0..count).map(number).collect(),
            writing: None,
            log_end: log.map_or(0, |log| log.range.end.position()),
            segment_used: 0,
            at_risk: 0,
            share_round: 0,
            was_second_half: false,
            incomplete: IncompleteMessages::default(),
            parts: 0,
            time: state.time,
            settings,
        }
    }

    /// The events that follow have this time, by the clock of the machine. Without it, records have
    /// no time.
    pub const fn set_time(&mut self, time: Reception) {
        self.time = Some(time);
    }

    /// A meter has connected.
    pub fn open_meter(&mut self, identity: Identity<'_>, framing: MessageFraming) -> MeterId {
        let number = self.next_meter;
        self.next_meter += 1;
        let shard = shard_of(number, self.settings.shards);
        let open = Record::Open { meter: number, identity };
        self.shards[usize::from(shard)].push(&open, self.time);
        self.meters.insert(Meter {
            number,
            received: 0,
            durable: 0,
            down_expected: 0,
            down_written: 0,
            framing,
            share_used: 0,
            share_round: self.share_round,
            shard,
            closing: false,
            eof: false,
            eof_durable: false,
            server_fin: false,
            fin_sent: false,
            notifies: false,
        })
    }

    /// Requests events when data of a meter is stored, for a caller that acknowledges it then.
    pub fn notify_stored(&mut self, id: MeterId) {
        if let Some(meter) = self.meters.get_mut(id) {
            meter.notifies = true;
        }
    }

    /// Bytes of records that the head has not confirmed.
    #[must_use]
    pub fn backlog_size(&self) -> u64 {
        let sizes = self.shards.iter().map(|shard| shard.backlog.size(self.log_end));
        let stored: u64 = match self.settings.tier {
            Tier::Local => sizes.max().unwrap_or(0),
            _ => sizes.sum(),
        };
        let unfinished: u64 = self.shards.iter().map(|shard| shard.unfinished() as u64).sum();
        // Between the builders and the durable end of the log, records are in the group only: a
        // reader of the status would take a backlog without them for a complete delivery.
        stored + self.writing.unwrap_or(0) + unfinished
    }

    /// Data of a meter has arrived, at most [`Self::acceptable`] bytes.
    ///
    /// # Errors
    /// The stream does not follow its framing. The meter is reset, by an event.
    pub fn handle_data(&mut self, id: MeterId, bytes: &[u8]) -> Result<(), FramingError> {
        self.count_share(id, bytes.len() as u64);
        let mut rest = bytes;
        while let (false, Some(meter)) = (rest.is_empty(), self.meters.get_mut(id)) {
            // A record holds at most DATA_MAX bytes: a longer piece has its end in a later record.
            let piece = &rest[..rest.len().min(DATA_MAX)];
            let (length, ends_message) = match meter.framing.next_message_end(piece) {
                Ok(Framing::End(end)) => (end, true),
                Ok(Framing::Incomplete) => (piece.len(), false),
                Err(error) => {
                    mark!(collector_resets_a_malformed_stream);
                    self.abort(id, ResetCause::Framing);
                    return Err(error);
                }
            };
            let (data, after) = rest.split_at(length);
            meter.received += length as u64;
            self.at_risk += length as u64;
            self.add_to_message(id, data, ends_message);
            rest = after;
        }
        self.limit_incomplete_messages();
        Ok(())
    }

    /// FIN of a meter waits for data before it that was not accepted yet. From now on, FIN to the
    /// meter is an answer, which confirms that everything before is stored.
    pub fn handle_closing(&mut self, id: MeterId) {
        if let Some(meter) = self.meters.get_mut(id) {
            meter.closing = true;
        }
    }

    /// FIN of a meter has arrived.
    pub fn handle_fin(&mut self, id: MeterId) {
        if self.meters.get(id).is_none_or(|meter| meter.eof) {
            return;
        }
        self.end_message(id);
        let Some(meter) = self.meters.get_mut(id) else { return };
        meter.eof = true;
        let (meter, offset) = (meter.number, meter.received);
        self.push(id, &Record::Eof { meter, offset }, Some(AwaitingKind::Eof));
    }

    /// The connection of a meter has failed, or is ended by the caller. The meter no longer exists.
    pub fn handle_reset(&mut self, id: MeterId, cause: ResetCause) {
        self.record_part(id);
        if let Some(meter) = self.meters.get(id) {
            let meter = meter.number;
            self.push(id, &Record::Reset { meter, cause }, None);
            self.forget(id);
        }
    }

    /// Resets a meter and notifies the caller.
    pub(super) fn abort(&mut self, id: MeterId, cause: ResetCause) {
        self.handle_reset(id, cause);
        self.events.push_back(Event::Reset(id, cause));
    }

    /// The caller has closed the socket of a meter that no longer exists: its row can be reused.
    pub fn release(&mut self, id: MeterId) {
        self.meters.release(id);
    }

    pub(super) fn forget(&mut self, id: MeterId) {
        if let Some(meter) = self.meters.remove(id) {
            self.at_risk -= meter.received - meter.durable;
        }
    }

    pub(super) fn push(
        &mut self,
        id: MeterId,
        record: &Record<'_>,
        awaiting: Option<AwaitingKind>,
    ) {
        let Some(meter) = self.meters.get(id) else { return };
        let shard = &mut self.shards[usize::from(meter.shard)];
        let sequence = shard.push(record, self.time);
        if let Some(kind) = awaiting {
            shard.awaiting.push_back(Awaiting { sequence, meter: id, kind });
        }
    }

    /// Whether a group is being written.
    #[must_use]
    pub const fn is_writing(&self) -> bool {
        self.writing.is_some()
    }

    /// Next task of the caller.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Position in the log before which no entry is needed any more.
    #[must_use]
    pub fn confirmed_position(&self) -> u64 {
        self.shards.iter().map(|shard| shard.backlog.confirmed_position()).min().unwrap_or(0)
    }

    /// End of the durable part of the log.
    #[must_use]
    pub const fn log_end(&self) -> u64 {
        self.log_end
    }

    /// Bytes of all meters that were accepted and are not stored as the tier demands.
    #[must_use]
    pub const fn bytes_at_risk(&self) -> u64 {
        self.at_risk
    }

    /// Number of shards: of the settings, or more if the log was written with more.
    #[must_use]
    pub const fn shard_count(&self) -> u16 {
        self.shards.len() as u16
    }

    /// Number of open meters.
    #[must_use]
    pub fn meter_count(&self) -> usize {
        self.meters.len()
    }

    /// The next records begin a new segment of the log.
    pub const fn begin_segment(&mut self) {
        self.segment_used = SEGMENT_FULL;
    }

    /// Positions of a meter; `None` if the meter does not exist.
    #[must_use]
    pub fn status(&self, id: MeterId) -> Option<MeterStatus> {
        self.meters.get(id).map(Meter::status)
    }

    /// The meter with this number.
    #[must_use]
    pub fn find(&self, number: u64) -> Option<MeterId> {
        self.meters.find(number)
    }

    /// Positions of all open meters, in the order in which they connected.
    pub fn meters(&self) -> impl Iterator<Item = MeterStatus> {
        self.meters.iter().map(|(_, meter)| meter.status())
    }

    /// Random number that identifies the sequence of records.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Meter {
    fn status(&self) -> MeterStatus {
        MeterStatus {
            number: self.number,
            received: self.received,
            durable: self.durable,
            down: self.down_written,
            is_ended: self.eof,
        }
    }
}

/// Shard of a meter.
const fn shard_of(number: u64, shards: u16) -> u16 {
    (number % shards as u64) as u16
}
