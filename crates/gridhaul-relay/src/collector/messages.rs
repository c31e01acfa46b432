//! Bytes of messages that have not ended. They become a record when the message is complete: one
//! message, one record.
//!
//! An idle meter has no entry. The bytes are limited for each meter and for all meters: then a
//! message is recorded in parts, of which only the last ends a message.

use std::collections::BTreeMap;

use gridhaul_protocols::framing::MessageFraming;

use super::machine::Collector;
use super::meter::MeterId;
use super::shard::AwaitingKind;
use crate::log::Storage;
use crate::protocol::{DATA_MAX, Record};

/// Incomplete messages of all meters.
#[derive(Debug, Default)]
pub(super) struct IncompleteMessages {
    /// By number of the meter.
    messages: BTreeMap<u64, Message>,
    /// Meters in the order in which their messages began.
    begun: BTreeMap<u64, MeterId>,
    next: u64,
    /// Bytes of all messages.
    bytes: u64,
}

#[derive(Debug)]
struct Message {
    bytes: Vec<u8>,
    /// Key in the order of beginnings.
    begun: u64,
}

impl IncompleteMessages {
    /// Bytes of all messages.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes of the message of a meter so far.
    pub(super) fn of(&self, id: MeterId) -> &[u8] {
        self.messages.get(&id.number).map_or(&[], |message| &message.bytes)
    }

    /// Adds bytes to the message of a meter.
    pub(super) fn push(&mut self, id: MeterId, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let message = self.messages.entry(id.number).or_insert_with(|| {
            self.begun.insert(self.next, id);
            self.next += 1;
            Message { bytes: Vec::new(), begun: self.next - 1 }
        });
        message.bytes.extend_from_slice(bytes);
        self.bytes += bytes.len() as u64;
    }

    /// Removes the message of a meter; empty if there is none.
    pub(super) fn take(&mut self, id: MeterId) -> Vec<u8> {
        let Some(message) = self.messages.remove(&id.number) else { return Vec::new() };
        self.begun.remove(&message.begun);
        self.bytes -= message.bytes.len() as u64;
        message.bytes
    }

    /// The meter whose message began first.
    pub(super) fn oldest(&self) -> Option<MeterId> {
        self.begun.first_key_value().map(|(_, id)| *id)
    }
}

impl<S: Storage + Clone> Collector<S> {
    /// Adds bytes of a meter, which were counted as received, to its message.
    pub(super) fn add_to_message(&mut self, id: MeterId, mut bytes: &[u8], ends_message: bool) {
        let Some(meter) = self.meters.get(id) else { return };
        // A server that answers must see each byte at once: it may answer a part of a message. Its
        // stream has no records.
        if self.settings.replies {
            self.push_data(id, bytes, meter.received, ends_message);
            return;
        }
        let mut end = meter.received - bytes.len() as u64;
        let limit = self.message_limit();
        loop {
            let arrived = self.incomplete.of(id).len();
            let (part, rest) = bytes.split_at(bytes.len().min(limit.saturating_sub(arrived)));
            end += part.len() as u64;
            let is_end = ends_message && rest.is_empty();
            if is_end && arrived == 0 {
                self.push_data(id, part, end, true);
                return;
            }
            self.incomplete.push(id, part);
            if is_end || arrived + part.len() >= limit {
                let message = self.incomplete.take(id);
                self.push_data(id, &message, end, is_end);
            }
            if rest.is_empty() {
                return;
            }
            bytes = rest;
        }
    }

    /// Largest record of a message. A meter must be able to fill it, or it would wait for ever.
    fn message_limit(&self) -> usize {
        let limit = self.settings.message_limit.min(self.settings.at_risk_per_meter);
        usize::try_from(limit).unwrap_or(DATA_MAX).clamp(1, DATA_MAX)
    }

    /// Whether a part of a message of a meter has arrived that is not recorded.
    #[must_use]
    pub fn has_incomplete_message(&self, id: MeterId) -> bool {
        !self.incomplete.of(id).is_empty()
    }

    /// Records that are parts of messages and do not end them, so far.
    #[must_use]
    pub const fn message_parts(&self) -> u64 {
        self.parts
    }

    /// No byte of a meter has arrived for some time: this ends a message with
    /// [`MessageFraming::IdleGap`], and with other framing the part that has arrived is recorded.
    pub fn handle_idle_gap(&mut self, id: MeterId) {
        // FIN has ended the last message.
        let Some(meter) = self.meters.get(id).filter(|meter| !meter.eof) else { return };
        let end = meter.received;
        if !matches!(meter.framing, MessageFraming::IdleGap) {
            self.record_part(id);
        } else {
            let message = self.incomplete.take(id);
            self.push_data(id, &message, end, true);
        }
    }

    /// Records all bytes that have arrived, before the collector ends.
    pub fn record_incomplete_messages(&mut self) {
        while let Some(id) = self.incomplete.oldest() {
            self.record_part(id);
        }
    }

    /// FIN of a meter ends its message if a pause would, and otherwise leaves it incomplete.
    pub(super) fn end_message(&mut self, id: MeterId) {
        let Some(meter) = self.meters.get(id) else { return };
        if matches!(meter.framing, MessageFraming::IdleGap) && self.has_incomplete_message(id) {
            self.handle_idle_gap(id);
        }
        self.record_part(id);
    }

    /// Records the part of a message that has arrived.
    pub(super) fn record_part(&mut self, id: MeterId) {
        let part = self.incomplete.take(id);
        if let Some(end) = self.meters.get(id).map(|meter| meter.received)
            && !part.is_empty()
        {
            self.push_data(id, &part, end, false);
        }
    }

    /// Limits the bytes of incomplete messages to half of those at risk: complete ones of other
    /// meters have the rest. The message that began first is recorded as it is, so that connections
    /// which never complete a message do not cut those of others.
    pub(super) fn limit_incomplete_messages(&mut self) {
        while self.incomplete.bytes() > self.settings.at_risk / 2
            && let Some(id) = self.incomplete.oldest()
        {
            self.record_part(id);
        }
    }

    /// Adds a record with the bytes of a meter before `end`.
    fn push_data(&mut self, id: MeterId, bytes: &[u8], end: u64, ends_message: bool) {
        self.parts += u64::from(!ends_message && !self.settings.replies);
        let offset = end - bytes.len() as u64;
        let record = Record::Data { meter: id.number, offset, ends_message, bytes };
        let awaiting = (!bytes.is_empty()).then_some(AwaitingKind::Data(end));
        self.push(id, &record, awaiting);
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_protocols::framing::{Delimiter, Iec104};

    use crate::collector::stored::StoredBefore;

    use super::*;
    use crate::collector::{CollectorState, MeterState, Settings, Tier};
    use crate::log::Folder;
    use crate::protocol::{Decoder, Identity, ResetCause, batches};

    #[test]
    fn messages_are_taken_once_and_the_oldest_is_known() {
        let [one, two] = [1, 2].map(|number| MeterId { index: 0, number });
        let mut messages = IncompleteMessages::default();
        messages.push(two, b"ab");
        messages.push(one, b"c");
        messages.push(two, b"d");
        messages.push(one, b"");
        assert_eq!((messages.oldest(), messages.bytes()), (Some(two), 4));
        assert_eq!((messages.take(two), messages.take(two)), (b"abd".to_vec(), Vec::new()));
        assert_eq!((messages.oldest(), messages.bytes()), (Some(one), 1));
        assert_eq!((messages.of(one), messages.of(two)), (&b"c"[..], &b""[..]));
        messages.take(one);
        assert_eq!((messages.oldest(), messages.bytes()), (None, 0));
        assert!(messages.messages.is_empty() && messages.begun.is_empty());
    }
    /// A collector without a log, in whose first shard records are collected.
    fn collector(message_limit: u64, at_risk: u64) -> Collector<Folder> {
        let settings = Settings {
            name: "collector".to_owned(),
            tier: Tier::Server,
            shards: 1,
            at_risk,
            at_risk_per_meter: at_risk,
            message_limit,
            backlog: 1_000_000,
            segment: u64::MAX,
            replies: false,
            compression: false,
        };
        Collector::new(settings, 1, &CollectorState::default(), None)
    }

    fn lines() -> MessageFraming {
        MessageFraming::Delimiter(Delimiter::new(b'\n', 1_000_000.try_into().unwrap()))
    }

    /// Data records as text, with a bar after the end of a message, and other records by a letter.
    fn records(collector: &mut Collector<Folder>) -> Vec<String> {
        let mut bytes = Vec::new();
        collector.shards[0].finish(&mut bytes);
        let mut streams: BTreeMap<u64, u64> = BTreeMap::new();
        let batches = batches(&bytes).map(Result::unwrap);
        let records = batches
            .flat_map(|batch| batch.records().map(|record| record.unwrap().1).collect::<Vec<_>>());
        records
            .filter_map(|record| match record {
                Record::Data { meter, offset, ends_message, bytes } => {
                    let position = streams.entry(meter).or_default();
                    assert_eq!(*position, offset, "no gap");
                    *position += bytes.len() as u64;
                    let end = if ends_message { "|" } else { "" };
                    Some(String::from_utf8_lossy(bytes).trim_end().to_owned() + end)
                }
                Record::Eof { offset, meter } => {
                    assert_eq!(streams.get(&meter).copied().unwrap_or(0), offset);
                    Some("F".to_owned())
                }
                Record::Reset { .. } => Some("R".to_owned()),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_message_is_one_record_however_its_bytes_arrive() {
        let mut all = collector(100, 1_000);
        let id = all.open_meter(Identity::default(), lines());
        for piece in ["reading", " 42\nread", "ing 43", "\n", "one\ntwo\nthr"] {
            all.handle_data(id, piece.as_bytes()).unwrap();
        }
        assert!(all.has_incomplete_message(id));
        assert_eq!((all.bytes_at_risk(), all.status(id).unwrap().received), (33, 33));
        all.handle_data(id, b"ee\n").unwrap();
        assert_eq!(records(&mut all), ["reading 42|", "reading 43|", "one|", "two|", "three|"]);
        assert_eq!((all.message_parts(), all.incomplete.bytes()), (0, 0));
    }

    #[test]
    fn fin_and_reset_record_the_part_that_has_arrived_before_the_end() {
        let mut all = collector(100, 1_000);
        let [one, two] = [(); 2].map(|()| all.open_meter(Identity::default(), lines()));
        all.handle_data(one, b"first\nhalf").unwrap();
        all.handle_fin(one);
        all.handle_data(two, b"other").unwrap();
        all.handle_reset(two, ResetCause::Meter);
        assert_eq!(records(&mut all), ["first|", "half", "F", "other", "R"]);
        assert_eq!(all.incomplete.bytes(), 0);
        assert_eq!(all.bytes_at_risk(), 10, "those of the first meter, which is not confirmed");
    }

    #[test]
    fn nothing_waits_where_a_server_answers() {
        let mut all = collector(100, 1_000);
        all.settings.replies = true;
        let id = all.open_meter(Identity::default(), lines());
        all.handle_data(id, b"one\nlogin: ").unwrap();
        assert_eq!(records(&mut all), ["one|", "login:"]);
    }

    #[test]
    fn a_malformed_stream_is_reset_after_the_part_that_has_arrived() {
        let mut all = collector(100, 1_000);
        let id = all.open_meter(Identity::default(), MessageFraming::Iec104(Iec104::default()));
        all.handle_data(id, b"\x68\x04abcd\x68").unwrap();
        all.handle_data(id, b"\xff").unwrap_err();
        assert_eq!(records(&mut all), ["h\u{4}abcd|", "h", "R"]);
    }

    #[test]
    fn a_message_over_the_limit_is_recorded_in_parts() {
        let mut all = collector(10, 1_000);
        let id = all.open_meter(Identity::default(), lines());
        for piece in ["0123456", "789", "abcdefghijklmnopqrstuvwxyz\n", "exactly10\n", "short\n"] {
            all.handle_data(id, piece.as_bytes()).unwrap();
        }
        let expected =
            ["0123456789", "abcdefghij", "klmnopqrst", "uvwxyz|", "exactly10|", "short|"];
        assert_eq!(records(&mut all), expected);
        assert_eq!(all.message_parts(), 3);
    }

    #[test]
    fn a_meter_is_never_stopped_by_its_own_message() {
        // The limit of a meter is smaller than that of a message.
        let mut all = collector(1_000, 16);
        let id = all.open_meter(Identity::default(), lines());
        let mut sent = 0;
        for _ in 0..100 {
            let acceptable = all.acceptable(id);
            all.handle_data(id, &vec![b'x'; acceptable as usize]).unwrap();
            sent += acceptable;
            assert!(acceptable > 0 || !records(&mut all).is_empty());
            let next = all.shards[0].builder.next();
            all.handle_stored(0, StoredBefore::in_memory(next));
        }
        assert!(sent > 500, "{sent}");
    }

    #[test]
    fn incomplete_messages_have_half_of_the_bytes_at_risk_and_the_oldest_is_given_up() {
        let mut all = collector(100, 100);
        let meters = [(); 4].map(|()| all.open_meter(Identity::default(), lines()));
        for id in meters {
            all.handle_data(id, &[b'a' + id.number as u8; 15]).unwrap();
        }
        all.handle_data(meters[3], b"\n").unwrap();
        assert_eq!(records(&mut all), ["a".repeat(15), "d".repeat(15) + "|"]);
        assert_eq!(all.incomplete.bytes(), 30);
    }

    #[test]
    fn a_pause_ends_a_message_or_records_its_part() {
        let mut all = collector(100, 1_000);
        let serial = all.open_meter(Identity::default(), MessageFraming::IdleGap);
        let text = all.open_meter(Identity::default(), lines());
        for id in [serial, text] {
            all.handle_data(id, b"some").unwrap();
            all.handle_data(id, b"thing").unwrap();
            all.handle_idle_gap(id);
        }
        all.handle_data(text, b" else\n").unwrap();
        all.handle_idle_gap(text);
        all.handle_data(serial, b"last").unwrap();
        all.handle_fin(serial);
        let expected = ["something|", "something", "else|", "last|", "F"];
        assert_eq!(records(&mut all).iter().map(|text| text.trim()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn another_collector_continues_within_a_message() {
        let mut old = collector(100, 1_000);
        let id = old.open_meter(Identity::default(), lines());
        old.handle_data(id, b"one\nha").unwrap();
        records(&mut old);
        let next = old.shards[0].builder.next();
        old.handle_stored(0, StoredBefore::in_memory(next));
        assert!(old.is_everything_stored(), "an incomplete message is no record");
        let (state, framing) = old.meter_state(id).unwrap();
        let mut bytes = Vec::new();
        state.write(&mut bytes);
        let state = MeterState::read(&mut Decoder::new(&bytes, "state")).unwrap();
        let mut new: Collector<Folder> =
            Collector::resume(old.settings().clone(), &old.continuation(), None);
        let id = new.resume_meter(&state, framing.clone(), 0).unwrap();
        assert_eq!(new.bytes_at_risk(), 2);
        new.handle_data(id, b"lf\n").unwrap();
        let mut bytes = Vec::new();
        new.shards[0].finish(&mut bytes);
        let batch = batches(&bytes).next().unwrap().unwrap();
        let record = batch.records().next().unwrap().unwrap().1;
        let expected = Record::Data { meter: 0, offset: 4, ends_message: true, bytes: b"half\n" };
        assert_eq!(record, expected);
    }
}
