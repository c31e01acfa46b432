//! Durability of records: groups for the log, and what becomes durable with them.

use gridhaul_core::coverage_mark::mark;

use super::machine::{Collector, Event};
use super::meter::MeterId;
use super::recovery::CollectorState;
use super::settings::Tier;
use super::shard::{Awaiting, AwaitingKind};
use super::stored::StoredBefore;
use crate::log::{Durable, Group, Storage};

impl<S: Storage + Clone> Collector<S> {
    /// The next records to write to the log, unless others are being written. The caller reports
    /// the result with [`Self::handle_written`].
    ///
    /// Tiers without a log never return a group: their records are moved to the backlog in memory
    /// by this call.
    pub fn poll_group(&mut self) -> Option<Group> {
        if self.writing.is_some() {
            return None;
        }
        let mut payload = Vec::new();
        for index in 0..self.shards.len() {
            let shard = &mut self.shards[index];
            let start = payload.len();
            // Entries of the log are limited; the rest is part of the next group.
            if start < GROUP_MAX {
                shard.finish(&mut payload);
            }
            if self.settings.tier != Tier::Local {
                shard.backlog.push(&payload[start..]);
                payload.clear();
                if self.settings.tier == Tier::Memory {
                    let next = shard.builder.next();
                    self.handle_stored(index, StoredBefore::in_memory(next));
                }
            }
        }
        if payload.is_empty() {
            return None;
        }
        let is_new = self.segment_used >= self.settings.segment;
        let snapshot = is_new.then(|| self.state().to_bytes());
        self.segment_used = if is_new { 0 } else { self.segment_used } + payload.len() as u64;
        for (grouped, shard) in self.grouped.iter_mut().zip(&self.shards) {
            if shard.unfinished() == 0 {
                *grouped = shard.builder.next();
            }
        }
        self.writing = Some(payload.len() as u64);
        Some(Group { payload, snapshot })
    }

    /// Numbers with which a new collector would continue after all groups so far.
    fn state(&self) -> CollectorState {
        let (next_meter, next) = (self.next_meter, self.grouped.clone());
        CollectorState { next_meter, next, ..CollectorState::default() }
    }

    /// The last group is durable; the log ends here.
    ///
    /// # Panics
    /// The log ends before records that were durable.
    pub fn handle_written(&mut self, end: Durable<u64>) {
        assert!(end.position() >= self.log_end, "a log does not become shorter");
        self.writing = None;
        self.log_end = end.position();
        for index in 0..self.shards.len() {
            self.shards[index].backlog.set_durable_end(end);
            // The group ends at or before the end of the log, and has all records before these
            // numbers.
            let grouped = end.map(|_| self.grouped[index]);
            self.handle_stored(index, StoredBefore::in_log(grouped));
        }
    }

    /// Records of a shard are stored as the tier demands.
    pub(super) fn handle_stored(&mut self, shard: usize, stored: StoredBefore) {
        let is_stored = |first: &&Awaiting| first.sequence < stored.next();
        while let Some(first) = self.shards[shard].awaiting.front().filter(is_stored) {
            let Awaiting { meter: id, kind, .. } = *first;
            self.shards[shard].awaiting.pop_front();
            let Some(meter) = self.meters.get_mut(id) else { continue };
            match kind {
                AwaitingKind::Data(end) => {
                    assert!(
                        (meter.durable..=meter.received).contains(&end),
                        "records of a meter are stored in the order in which its data has arrived"
                    );
                    mark!(collector_confirms_stored_data);
                    self.at_risk -= end - meter.durable;
                    meter.durable = end;
                    if meter.notifies {
                        self.events.push_back(Event::Stored { meter: id, position: end });
                    }
                }
                AwaitingKind::Eof => {
                    mark!(collector_answers_fin_after_storage);
                    meter.eof_durable = true;
                    if meter.notifies {
                        self.events.push_back(Event::EndStored(id));
                    }
                    self.finish_if_complete(id);
                }
            }
        }
    }

    /// Answers FIN of a meter once its last byte is stored and nothing will come from the server.
    pub(super) fn finish_if_complete(&mut self, id: MeterId) {
        let replies = self.settings.replies;
        let Some(meter) = self.meters.get_mut(id) else { return };
        let no_more = !replies || meter.server_fin && meter.down_written == meter.down_expected;
        // Once the meter has closed its direction, FIN confirms that its data is stored.
        let is_server_first = meter.server_fin && !meter.eof && !meter.closing;
        mark!(collector_server_fin_answers_no_waiting_data if meter.server_fin && meter.closing);
        if no_more && !meter.fin_sent && (meter.eof_durable || is_server_first) {
            meter.fin_sent = true;
            self.events.push_back(Event::SendFin(id));
        }
        if meter.fin_sent && meter.eof_durable {
            self.events.push_back(Event::Close(id));
            self.forget(id);
        }
    }
}

/// Bytes of a group above which further shards wait for the next group.
const GROUP_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use gridhaul_protocols::framing::MessageFraming;

    use super::*;
    use crate::collector::Settings;
    use crate::log::Folder;
    use crate::protocol::{Identity, ResetCause};

    #[test]
    fn a_caller_that_acknowledges_is_notified_when_data_is_stored() {
        let mut all = collector_with_log();
        let [acknowledging, other] =
            [(); 2].map(|()| all.open_meter(Identity::default(), MessageFraming::Stream));
        all.notify_stored(acknowledging);
        for id in [acknowledging, other] {
            all.handle_data(id, &[7; 100]).unwrap();
        }
        assert_eq!(all.storable(acknowledging), 1_000_000 - all.backlog_size());
        assert!(all.poll_group().is_some());
        // FIN is part of the next group.
        all.handle_fin(acknowledging);
        assert_eq!(all.poll_event(), None);
        let meter = acknowledging;
        all.handle_written(Durable::assumed(1));
        assert_eq!(all.poll_event(), Some(Event::Stored { meter, position: 100 }));
        assert_eq!(all.poll_event(), None);
        assert!(all.poll_group().is_some());
        all.handle_written(Durable::assumed(2));
        let ends = [Event::EndStored(meter), Event::SendFin(meter), Event::Close(meter)];
        assert_eq!(std::iter::from_fn(|| all.poll_event()).collect::<Vec<_>>(), ends);
    }

    #[test]
    fn records_that_are_being_written_to_the_log_belong_to_the_backlog() {
        let mut all = collector_with_log();
        let meter = all.open_meter(Identity::default(), MessageFraming::Stream);
        // A reset has no data: no other number of the status shows its record.
        all.handle_reset(meter, ResetCause::Meter);
        let before = all.backlog_size();
        assert!(all.poll_group().is_some());
        assert_eq!((before > 0, all.backlog_size()), (true, before));
    }

    fn collector_with_log() -> Collector<Folder> {
        let settings = Settings {
            name: "collector".to_owned(),
            tier: Tier::Local,
            shards: 1,
            at_risk: 10_000,
            at_risk_per_meter: 10_000,
            message_limit: 1_000,
            backlog: 1_000_000,
            segment: u64::MAX,
            replies: false,
            compression: false,
        };
        Collector::new(settings, 1, &CollectorState::default(), None)
    }
}
