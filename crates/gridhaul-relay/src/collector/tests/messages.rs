//! Messages of meters as records.

use std::collections::BTreeMap;

use gridhaul_core::coverage_mark::covers;
use gridhaul_protocols::framing::{Delimiter, Iec104, MessageFraming};

use super::settings;
use crate::collector::stored::StoredBefore;
use crate::collector::{Collector, CollectorState, MeterState, Settings, Tier};
use crate::log::Folder;
use crate::protocol::{Decoder, Identity, Record, ResetCause, batches};

/// A collector without a log, in whose first shard records are collected.
fn collector(message_limit: u64, at_risk: u64) -> Collector<Folder> {
    let settings =
        Settings { at_risk, at_risk_per_meter: at_risk, message_limit, ..settings(Tier::Server) };
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
    covers!(collector_forwards_each_byte_where_a_server_answers);
    let mut all = collector(100, 1_000);
    all.settings.replies = true;
    let id = all.open_meter(Identity::default(), lines());
    all.handle_data(id, b"one\nlogin: ").unwrap();
    assert_eq!(records(&mut all), ["one|", "login:"]);
}

#[test]
fn a_malformed_stream_is_reset_after_the_part_that_has_arrived() {
    covers!(collector_resets_a_malformed_stream);
    let mut all = collector(100, 1_000);
    let id = all.open_meter(Identity::default(), MessageFraming::Iec104(Iec104::default()));
    all.handle_data(id, b"\x68\x04abcd\x68").unwrap();
    all.handle_data(id, b"\xff").unwrap_err();
    assert_eq!(records(&mut all), ["h\u{4}abcd|", "h", "R"]);
}

#[test]
fn a_message_over_the_limit_is_recorded_in_parts() {
    covers!(collector_records_a_long_message_in_parts);
    let mut all = collector(10, 1_000);
    let id = all.open_meter(Identity::default(), lines());
    for piece in ["0123456", "789", "abcdefghijklmnopqrstuvwxyz\n", "exactly10\n", "short\n"] {
        all.handle_data(id, piece.as_bytes()).unwrap();
    }
    let expected = ["0123456789", "abcdefghij", "klmnopqrst", "uvwxyz|", "exactly10|", "short|"];
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
    covers!(collector_limits_incomplete_messages);
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
