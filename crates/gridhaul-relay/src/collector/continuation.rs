//! Continuation of a collector by another version of the program, which takes over the connections
//! of its meters.

use gridhaul_protocols::framing::MessageFraming;

use super::machine::{Collector, CollectorLog};
use super::meter::{Meter, MeterId};
use super::recovery::CollectorState;
use super::settings::{Settings, Tier};
use crate::log::Storage;
use crate::protocol::{DATA_MAX, DecodeError, Decoder, put_bytes, put_varint};

/// State of a collector all of whose records are stored, without its meters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    epoch: u64,
    /// Numbers that continue without a gap.
    state: CollectorState,
    /// Run of the head to which each shard was connected last.
    instances: Vec<Option<u64>>,
}

/// State of a meter all of whose complete messages are stored.
#[derive(Debug, Clone)]
pub struct MeterState {
    number: u64,
    received: u64,
    down: u64,
    shard: u16,
    eof: bool,
    server_fin: bool,
    fin_sent: bool,
    /// Bytes of a message that has not ended, which are not stored.
    incomplete: Vec<u8>,
}

impl Continuation {
    /// Appends the state to `bytes`.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        put_varint(bytes, self.state.next_meter);
        put_varint(bytes, self.state.next.len() as u64);
        for (next, instance) in self.state.next.iter().zip(&self.instances) {
            put_varint(bytes, *next);
            bytes.push(u8::from(instance.is_some()));
            bytes.extend_from_slice(&instance.unwrap_or(0).to_le_bytes());
        }
    }

    pub(crate) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (epoch, next_meter) = (decoder.u64()?, decoder.varint()?);
        let (mut next, mut instances) = (Vec::new(), Vec::new());
        for _ in 0..decoder.varint()? {
            next.push(decoder.varint()?);
            let is_known = decoder.u8()? != 0;
            instances.push(Some(decoder.u64()?).filter(|_| is_known));
        }
        Ok(Self {
            epoch,
            state: CollectorState { next_meter, next, ..CollectorState::default() },
            instances,
        })
    }

    /// Random number that identifies the sequence of records.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether a log contains exactly the records of this collector.
    #[must_use]
    pub fn is_end_of(&self, epoch: u64, log: &CollectorState) -> bool {
        let number = |state: &CollectorState, shard| state.next.get(shard).copied().unwrap_or(0);
        let shards = self.state.next.len().max(log.next.len());
        self.epoch == epoch
            && self.state.next_meter == log.next_meter
            && (0..shards).all(|shard| number(&self.state, shard) == number(log, shard))
    }
}

impl MeterState {
    /// Number of the meter.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        for number in [self.number, self.received, self.down, self.shard.into()] {
            put_varint(bytes, number);
        }
        let flags = [self.eof, self.server_fin, self.fin_sent];
        bytes.extend_from_slice(&flags.map(u8::from));
        put_bytes(bytes, &self.incomplete);
    }

    pub(crate) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (number, received, down) = (decoder.varint()?, decoder.varint()?, decoder.varint()?);
        let shard = u16::try_from(decoder.varint()?).map_err(|_| DecodeError::TooLong("shard"))?;
        let mut flag = || Ok(decoder.u8()? != 0);
        let (eof, server_fin, fin_sent) = (flag()?, flag()?, flag()?);
        let incomplete = decoder.bytes(DATA_MAX)?.to_vec();
        Ok(Self { number, received, down, shard, eof, server_fin, fin_sent, incomplete })
    }
}

impl<S: Storage + Clone> Collector<S> {
    /// A collector that continues where another one has stopped. `log` is as for [`Self::new`].
    pub fn resume(
        settings: Settings,
        continuation: &Continuation,
        log: Option<CollectorLog<S>>,
    ) -> Self {
        let Continuation { epoch, state, instances } = continuation;
        let mut collector = Self::without_meters(settings, *epoch, state, log);
        for (shard, instance) in collector.shards.iter_mut().zip(instances) {
            // If the head has not restarted meanwhile, its servers continue their streams.
            shard.session.instance = *instance;
        }
        collector
    }

    /// Whether all records are stored, so that another collector can continue: in the log or,
    /// without one, at the head.
    #[must_use]
    pub fn is_everything_stored(&self) -> bool {
        let is_stored = match self.settings.tier {
            Tier::Local => self.shards.iter().all(|shard| shard.unfinished() == 0),
            Tier::Memory | Tier::Server => self.backlog_size() == 0,
        };
        is_stored
            && self.writing.is_none()
            && self.at_risk == self.incomplete.bytes()
            && self.events.is_empty()
    }

    /// The state for another collector, once [`Self::is_everything_stored`].
    #[must_use]
    pub fn continuation(&self) -> Continuation {
        let next = self.shards.iter().map(|shard| shard.builder.next()).collect();
        Continuation {
            epoch: self.epoch,
            state: CollectorState {
                next_meter: self.next_meter,
                next,
                ..CollectorState::default()
            },
            instances: self.shards.iter().map(|shard| shard.session.instance).collect(),
        }
    }

    /// The state of a meter, and the framing of its messages.
    #[must_use]
    pub fn meter_state(&self, id: MeterId) -> Option<(MeterState, &MessageFraming)> {
        let meter = self.meters.get(id)?;
        let &Meter { number, received, down_expected, shard, eof, server_fin, fin_sent, .. } =
            meter;
        let down = down_expected;
        let incomplete = self.incomplete.of(id).to_vec();
        let state =
            MeterState { number, received, down, shard, eof, server_fin, fin_sent, incomplete };
        Some((state, &meter.framing))
    }

    /// Continues the stream of a meter. `unwritten` bytes for it wait at the caller, which reports
    /// them with [`Self::handle_down_written`]. `None` if this collector has no such shard.
    pub fn resume_meter(
        &mut self,
        state: &MeterState,
        framing: MessageFraming,
        unwritten: u64,
    ) -> Option<MeterId> {
        let MeterState { number, received, down, shard, eof, server_fin, fin_sent, .. } = *state;
        let incomplete = &state.incomplete;
        if shard >= self.shard_count() {
            return None;
        }
        let id = self.meters.insert(Meter {
            number,
            received,
            durable: received.saturating_sub(incomplete.len() as u64),
            down_expected: down,
            down_written: down.saturating_sub(unwritten),
            framing,
            share_used: 0,
            share_round: self.share_round,
            shard,
            // If FIN waits, the first event of the socket states it.
            closing: eof,
            eof,
            // All records are stored.
            eof_durable: eof,
            server_fin,
            fin_sent,
            // Connections of TCP in user space are not continued.
            notifies: false,
        });
        self.at_risk += incomplete.len() as u64;
        self.incomplete.push(id, incomplete);
        Some(id)
    }
}
