//! Data that the server has not confirmed and that is no longer in memory: the log is read again.

use gridhaul_core::coverage_mark::mark;
use gridhaul_scenario::units::Instant;

use super::{ServerStreams, StreamId};
use crate::protocol::Record;

impl ServerStreams {
    /// Position from which on the log is to be read again now; the caller passes each record up to
    /// the present position to [`Self::handle_replayed`], and calls [`Self::end_replay`].
    pub fn begin_replay(&mut self) -> Option<u64> {
        self.loading.clone_from(&self.unloaded);
        let streams = self.unloaded.iter().filter_map(|id| self.streams.get(id));
        streams.filter_map(|stream| stream.place_of_unloaded()).min()
    }

    /// Whether data of a stream is still to be read again.
    #[must_use]
    pub fn needs_replay(&self) -> bool {
        !self.unloaded.is_empty()
    }

    /// A record that was read again.
    pub fn handle_replayed(&mut self, epoch: u64, record: &Record<'_>) {
        let Record::Data { meter, offset, ends_message, bytes } = *record else { return };
        let Some(&id) = self.by_key.get(&(epoch, meter)) else { return };
        if !self.unloaded.contains(&id) {
            return;
        }
        let loaded = self.update(id, |stream| {
            // A connection may begin within a record.
            let known = stream.loaded.checked_sub(offset)? as usize;
            let is_next = known == 0 || known < bytes.len();
            if is_next {
                stream.load(&bytes[known..], ends_message);
            }
            is_next.then(|| stream.is_loaded())
        });
        if let Some(Some(is_complete)) = loaded {
            if is_complete {
                self.unloaded.remove(&id);
                self.loading.remove(&id);
            }
            self.ready.insert(id);
        }
    }

    /// The log was read again up to the present position. A stream whose data was not found has
    /// lost it by damage of the log.
    pub fn end_replay(&mut self, now: Instant) {
        let missing: Vec<StreamId> = std::mem::take(&mut self.loading).into_iter().collect();
        for id in missing {
            mark!(server_stream_is_reset_if_the_log_lacks_its_data);
            self.unloaded.remove(&id);
            let truncated = self.update(id, |stream| {
                stream.truncate();
                (stream.key, stream.identity.shard)
            });
            if let Some(stream) = truncated {
                self.break_off(now, Some(id), stream);
            }
        }
    }
}
