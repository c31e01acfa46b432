//! The records of the log for the streams: in command, and again from an earlier position on.

use gridhaul_scenario::units::Instant;

use crate::head::io::delivery::delivery_log::DeliveryLog;
use crate::head::{Deliveries, Item, ServerStreams, items};
use crate::log::{Durable, Folder, LogReader};
use crate::runtime::RunError;

/// Entries that are read again before the connections are served.
const REPLAY_ENTRIES: usize = 256;

/// Readers of the log.
pub(crate) struct Records {
    deliveries: Deliveries<Folder>,
    storage: Folder,
    epoch: u64,
    /// Reads data again that the server has not confirmed.
    replay: Option<LogReader<Folder>>,
    /// End of the durable records.
    pub durable_end: Durable<u64>,
}

impl Records {
    pub(crate) fn new(log: &DeliveryLog, position: u64) -> Result<Self, RunError> {
        Ok(Self {
            deliveries: log.deliveries_from(position)?,
            storage: log.storage.clone(),
            epoch: log.epoch,
            replay: None,
            durable_end: log.range.end,
        })
    }

    pub(crate) const fn deliveries(&self) -> &Deliveries<Folder> {
        &self.deliveries
    }

    /// Passes records to the streams, as long as these accept them.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        streams: &mut ServerStreams,
    ) -> Result<(), RunError> {
        for _ in 0..REPLAY_ENTRIES {
            if streams.is_full() || !self.read_again(now, streams)? {
                break;
            }
        }
        while !streams.is_full() {
            let Self { deliveries, durable_end, .. } = self;
            let is_read = deliveries
                .next(durable_end.position(), |delivery| streams.handle_delivery(now, &delivery))?;
            streams.end_entry(deliveries.position());
            if !is_read {
                break;
            }
        }
        Ok(())
    }

    /// Whether [`Self::read`] has something to do at once.
    pub(crate) fn is_busy(&self, streams: &ServerStreams) -> bool {
        streams.needs_replay() && !streams.is_full()
    }

    /// Reads an entry again. False if no stream needs one.
    fn read_again(&mut self, now: Instant, streams: &mut ServerStreams) -> Result<bool, RunError> {
        if !streams.needs_replay() {
            self.replay = None;
            return Ok(false);
        }
        if self.replay.is_none() {
            let Some(start) = streams.begin_replay() else {
                streams.end_replay(now);
                return Ok(false);
            };
            self.replay = Some(LogReader::new(self.storage.clone(), self.epoch, start));
        }
        let Some(reader) = &mut self.replay else { return Ok(false) };
        let Some(entry) = reader.next(self.deliveries.position())? else {
            self.replay = None;
            streams.end_replay(now);
            return Ok(true);
        };
        for item in items(entry.payload).map_while(Result::ok) {
            let Item::Batch(batch) = item else { continue };
            for (_, record) in batch.records().map_while(Result::ok) {
                streams.handle_replayed(batch.epoch, &record);
            }
        }
        Ok(true)
    }
}
