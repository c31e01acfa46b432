//! Messages for a broker of MQTT 3.1.1 (QoS 1): published in order, and kept until the broker has
//! acknowledged them.

use std::collections::{BTreeSet, VecDeque};

use gridhaul_core::coverage_mark::mark;

use super::delivery::Delivery;
use super::json::json_of;
use crate::protocol::Record;

/// Content of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Records as JSON.
    Json,
    /// Bytes of meters.
    Data,
}

/// Messages that the broker has not acknowledged.
#[derive(Debug)]
pub struct Publications {
    topic: String,
    content: Content,
    /// Oldest first.
    pending: VecDeque<Publication>,
    /// How many of them were published on the present connection.
    published: usize,
    last_packet: u16,
    /// Position in the log before which every record is acknowledged.
    position: u64,
    parts: PartialMessages,
}

/// Meters of which a part of a message was recorded, but not its end.
#[derive(Debug, Default)]
pub struct PartialMessages(BTreeSet<(u64, u64)>);

impl PartialMessages {
    /// Reads a record, and returns whether it is a part of a message instead of the whole.
    pub fn observe(&mut self, delivery: &Delivery<'_>) -> bool {
        let Some(meter) = delivery.record.meter() else { return false };
        let meter = (delivery.epoch, meter);
        match delivery.record {
            Record::Data { ends_message: false, .. } => {
                self.0.insert(meter);
                true
            }
            // The end of a message, or of the stream.
            _ => self.0.remove(&meter),
        }
    }
}

#[derive(Debug)]
struct Publication {
    topic: String,
    payload: Vec<u8>,
    /// Position in the log after the entry that ends with this message.
    end: Option<u64>,
    /// Packet identifier on the present connection.
    packet: Option<u16>,
    is_acknowledged: bool,
}

impl Publications {
    /// No messages; records before `position` are acknowledged, and have left `parts`. The fields
    /// in `topic` are replaced for each record.
    #[must_use]
    pub fn new(topic: &str, content: Content, position: u64, parts: PartialMessages) -> Self {
        let (topic, pending) = (topic.to_owned(), VecDeque::new());
        Self { topic, content, pending, published: 0, last_packet: 0, position, parts }
    }

    /// Adds the message of a record, if it has one.
    pub fn push(&mut self, delivery: &Delivery<'_>) {
        let is_part = self.parts.observe(delivery);
        let payload = match (self.content, delivery.record) {
            (Content::Json, _) => json_of(delivery).map(|line| line.to_string().into_bytes()),
            (Content::Data, Record::Data { bytes, .. }) if !bytes.is_empty() => {
                Some(bytes.to_vec())
            }
            (Content::Data, _) => None,
        };
        if let Some(payload) = payload {
            let mut topic = topic_of(&self.topic, delivery);
            if is_part && self.content == Content::Data {
                mark!(broker_parts_have_a_topic_of_their_own);
                // The bytes alone do not show that the message is not whole. A subscription of the
                // topic does not receive them.
                topic += PART;
            }
            let (end, packet, is_acknowledged) = (None, None, false);
            self.pending.push_back(Publication { topic, payload, end, packet, is_acknowledged });
        }
    }

    /// The messages of an entry of the log are complete; the next entry is at this position.
    pub fn end_entry(&mut self, position: u64) {
        match self.pending.back_mut() {
            Some(last) => last.end = Some(position),
            None => self.position = position,
        }
    }

    /// Number of messages that the broker has not acknowledged.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Whether every message is acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Whether fewer than `in_flight` messages were published on this connection and are not
    /// acknowledged. An entry of the log may have more messages than that.
    #[must_use]
    pub const fn can_publish(&self, in_flight: usize) -> bool {
        self.published < in_flight
    }

    /// Packet identifier, topic and payload of the next message to publish on this connection.
    pub fn poll_publish(&mut self) -> Option<(u16, &str, &[u8])> {
        while self.pending.get(self.published)?.is_acknowledged {
            self.published += 1;
        }
        // 0 is not an identifier (section 2.3.1). Fewer than 65,535 messages are in flight, so that
        // none is used twice.
        self.last_packet = self.last_packet.checked_add(1).unwrap_or(1);
        let message = &mut self.pending[self.published];
        self.published += 1;
        message.packet = Some(self.last_packet);
        Some((self.last_packet, &message.topic, &message.payload))
    }

    /// PUBACK has arrived. Brokers acknowledge in order, but need not.
    pub fn handle_acknowledged(&mut self, packet: u16) {
        let mut open = self.pending.iter_mut().filter(|message| !message.is_acknowledged);
        if let Some(message) = open.find(|message| message.packet == Some(packet)) {
            message.is_acknowledged = true;
        }
        while self.pending.front().is_some_and(|first| first.is_acknowledged) {
            mark!(broker_position_follows_the_oldest_unacknowledged_message);
            let first = self.pending.pop_front();
            self.published = self.published.saturating_sub(1);
            self.position = first.and_then(|message| message.end).unwrap_or(self.position);
        }
    }

    /// The connection has ended: what is not acknowledged is published again on the next one.
    pub fn handle_disconnected(&mut self) {
        mark!(broker_messages_are_published_again if self.published > 0);
        self.published = 0;
        self.pending.iter_mut().for_each(|message| message.packet = None);
    }

    /// Position in the log before which every record is acknowledged.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.position
    }
}

/// Level of the topic for parts of messages.
const PART: &str = "/part";

/// The topic of a record. Characters with a meaning in topics (MQTT 3.1.1, section 4.7) are
/// replaced in its values.
fn topic_of(template: &str, delivery: &Delivery<'_>) -> String {
    let mut topic = String::new();
    let mut rest = template;
    while let Some((before, (name, after))) =
        rest.split_once('{').and_then(|(before, field)| Some((before, field.split_once('}')?)))
    {
        topic += before;
        let value = value_of(name, delivery).unwrap_or_else(|| "unknown".to_owned());
        topic.extend(value.chars().map(|character| {
            if matches!(character, '+' | '#' | '/' | '$') || character.is_control() {
                '_'
            } else {
                character
            }
        }));
        rest = after;
    }
    topic + rest
}

/// The value of a field; `None` if it is not known.
fn value_of(name: &str, delivery: &Delivery<'_>) -> Option<String> {
    let text = |value: &str| (!value.is_empty()).then(|| value.to_owned());
    match name {
        "collector" => text(delivery.collector),
        "listener" => text(delivery.identity.listener),
        "certificate" => text(delivery.identity.certificate),
        "peer" => Some(delivery.identity.peer?.ip().to_canonical().to_string()),
        "meter" => Some(format!("{:016x}-{}", delivery.epoch, delivery.record.meter()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::coverage_mark::covers;

    use super::*;
    use crate::protocol::Identity;

    fn delivery(bytes: &[u8]) -> Delivery<'_> {
        Delivery {
            collector: "substation-12",
            epoch: 5,
            number: (0, 9),
            time: None,
            record: Record::Data { meter: 3, offset: 0, ends_message: true, bytes },
            identity: Identity {
                peer: "[::ffff:192.0.2.7]:5000".parse().ok(),
                certificate: "a/b#",
                ..Identity::default()
            },
        }
    }

    fn publications(content: Content, texts: &[&str]) -> Publications {
        let mut all = Publications::new("t", content, 100, PartialMessages::default());
        for (index, text) in texts.iter().enumerate() {
            all.push(&delivery(text.as_bytes()));
            all.end_entry(110 + 10 * index as u64);
        }
        all
    }

    /// Payloads that are published now.
    fn published(all: &mut Publications) -> Vec<String> {
        std::iter::from_fn(|| {
            all.poll_publish().map(|(_, _, payload)| String::from_utf8_lossy(payload).into_owned())
        })
        .collect()
    }

    #[test]
    fn a_topic_has_the_identity_of_the_meter() {
        let topic = |template: &str| topic_of(template, &delivery(b""));
        assert_eq!(topic("m/{collector}/{meter}/x"), "m/substation-12/0000000000000005-3/x");
        assert_eq!(topic("{certificate}"), "a_b_", "no levels and wildcards of the meter's choice");
        assert_eq!(topic("{peer}/{listener}"), "192.0.2.7/unknown");
    }

    #[test]
    fn the_position_follows_the_oldest_message_without_acknowledgement() {
        covers!(broker_position_follows_the_oldest_unacknowledged_message);
        let mut all = publications(Content::Data, &["one", "two", "three"]);
        assert_eq!(published(&mut all), ["one", "two", "three"]);
        all.handle_acknowledged(2);
        assert_eq!((all.position(), all.len()), (100, 3), "the first is not acknowledged");
        all.handle_acknowledged(1);
        assert_eq!((all.position(), all.len()), (120, 1));
        all.handle_acknowledged(1);
        assert_eq!(all.position(), 120, "an acknowledgement of nothing");
        all.handle_acknowledged(3);
        assert_eq!((all.position(), all.is_empty()), (130, true));
        all.end_entry(140);
        assert_eq!(all.position(), 140, "an entry without messages");
    }

    #[test]
    fn messages_without_acknowledgement_are_published_again() {
        covers!(broker_messages_are_published_again);
        let mut all = publications(Content::Data, &["one", "two", "three"]);
        published(&mut all);
        all.handle_acknowledged(2);
        all.handle_disconnected();
        assert_eq!(published(&mut all), ["one", "three"]);
        all.handle_acknowledged(4);
        assert_eq!(all.position(), 120);
        all.handle_acknowledged(5);
        assert_eq!(all.position(), 130);
    }

    #[test]
    fn parts_of_messages_are_published_apart() {
        covers!(broker_parts_have_a_topic_of_their_own);
        let data = |text: &'static str, ends_message| {
            let record = Record::Data { meter: 3, offset: 0, ends_message, bytes: text.as_bytes() };
            Delivery { record, ..delivery(b"") }
        };
        let mut all = publications(Content::Data, &[]);
        for (text, ends_message) in
            [("whole", true), ("first ", false), ("second ", false), ("last", true)]
        {
            all.push(&data(text, ends_message));
        }
        all.push(&data("cut", false));
        all.push(&Delivery { record: Record::Eof { meter: 3, offset: 7 }, ..delivery(b"") });
        all.push(&data("next", true));
        let topics: Vec<_> =
            std::iter::from_fn(|| all.poll_publish().map(|(_, topic, _)| topic.to_owned()))
                .collect();
        assert_eq!(topics, ["t", "t/part", "t/part", "t/part", "t/part", "t"]);
    }

    #[test]
    fn json_states_the_number_of_the_record() {
        let mut all = publications(Content::Json, &["reading"]);
        let payload = published(&mut all).remove(0);
        assert!(payload.contains("\"sequence\":9") && payload.contains("\"text\":\"reading\""));
        let eof = Delivery { record: Record::Eof { meter: 3, offset: 7 }, ..delivery(b"") };
        all.push(&eof);
        assert_eq!(published(&mut all).len(), 1);
        let mut data = publications(Content::Data, &[]);
        data.push(&eof);
        assert!(data.is_empty(), "only bytes of meters");
    }
}
