//! Reading the head's log for a sink.

use super::log_item::items;
#[cfg(feature = "daemon")]
use super::servers::{OpenMeter, StreamIdentity};
use super::sources::{HeadState, Observed};
use crate::log::{LogError, LogReader, Lost, Storage};
use crate::protocol::{Identity, Reception, Record};

/// Records of the head's log in order, from a position on.
#[derive(Debug)]
pub struct Deliveries<S: Storage> {
    reader: LogReader<S>,
    state: HeadState,
    /// Entries before the first one that are lost, and where they began.
    lost: Option<(u64, Lost)>,
}

/// A record to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// Name of the collector.
    pub collector: &'a str,
    /// The collector's log.
    pub epoch: u64,
    /// Shard and sequence number. Resets that follow from a restart have the number of its record;
    /// those that follow from a new epoch of the collector have the number after the last record of
    /// the shard. They differ by their meters. A gap has the number of the first lost record, and 0
    /// in epoch, shard and sequence if the log of the head has lost records of unknown collectors.
    pub number: (u16, u64),
    /// When the collector has received the record; `None` for records of version 1 and for what no
    /// record states.
    pub time: Option<Reception>,
    /// The record.
    pub record: Record<'a>,
    /// Where the meter's connection comes from.
    pub identity: Identity<'a>,
}

impl<S: Storage> Deliveries<S> {
    /// Reads the log with this epoch from `start` on, where the state was that of `snapshot`.
    #[must_use]
    pub fn new(storage: S, epoch: u64, snapshot: &[u8], start: u64) -> Self {
        let state = HeadState::from_bytes(snapshot);
        Self { reader: LogReader::new(storage, epoch, start), state, lost: None }
    }

    /// Entries from a position on, which were not delivered, are lost.
    pub const fn note_lost(&mut self, from: u64, lost: Lost) {
        self.lost = Some((from, lost));
    }

    /// Passes the records of the next entry that ends at or before `limit` to a sink. False if
    /// there is none.
    ///
    /// # Errors
    /// The disk has failed.
    pub fn next(
        &mut self,
        limit: u64,
        mut sink: impl FnMut(Delivery<'_>),
    ) -> Result<bool, LogError> {
        let Some(entry) = self.reader.next(limit)? else { return Ok(false) };
        let before = self.lost.take().map(|(_, lost)| lost);
        if let Some(lost) = entry.lost.map(|lost| lost.and(before)).or(before) {
            let record = Record::Gap { records: None, bytes: lost.bytes };
            let (collector, epoch, number, identity) = ("", 0, (0, 0), Identity::default());
            let time = None;
            sink(Delivery { collector, epoch, number, time, record, identity });
        }
        for item in items(entry.payload).map_while(Result::ok) {
            self.state.apply(&item, |observed, source| {
                let Observed { epoch, number, time, record, meter } = observed;
                let identity = meter.map(super::sources::HeadMeter::identity).unwrap_or_default();
                let collector = &source.collector;
                sink(Delivery { collector, epoch, number, time, record, identity });
            });
        }
        Ok(true)
    }

    /// Meters whose connection is open at this position.
    #[cfg(feature = "daemon")]
    pub fn open_meters(&self) -> impl Iterator<Item = OpenMeter> {
        self.state.sources.iter().flat_map(|(&epoch, source)| {
            source.meters.iter().map(move |(&meter, state)| OpenMeter {
                key: (epoch, meter),
                identity: StreamIdentity::new(state.shard, &state.identity(), state.opened),
                received: state.received,
            })
        })
    }

    /// Position of the next entry, or of lost ones that were not stated yet.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.lost.map_or_else(|| self.reader.position(), |(from, _)| from)
    }
}
