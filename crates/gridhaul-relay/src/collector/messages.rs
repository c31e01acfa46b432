//! Bytes of messages that have not ended. They become a record when the message is complete: one
//! message, one record.
//!
//! An idle meter has no entry. The bytes are limited for each meter and for all meters: then a
//! message is recorded in parts, of which only the last ends a message.

use std::collections::BTreeMap;

use gridhaul_core::coverage_mark::mark;
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
            mark!(collector_forwards_each_byte_where_a_server_answers);
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
                mark!(collector_records_a_long_message_in_parts if !is_end);
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
            mark!(collector_limits_incomplete_messages);
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
    use super::*;

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
}
