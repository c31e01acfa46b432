//! Collectors and logs of the previous version: their bytes are written here as that version has
//! written them.

use super::super::{Head, HeadSettings, HeadState};
use crate::log::Durable;
use crate::protocol::{
    BatchBuilder, ClockState, Frame, FrameReader, Identity, Reception, Record, Welcome, put_text,
    put_varint,
};

const EPOCH: u64 = 7;

/// HELLO of version 2, with its header of kind and length.
fn old_hello() -> Vec<u8> {
    let mut body = 2_u16.to_le_bytes().to_vec();
    put_text(&mut body, "old", 255);
    body.extend_from_slice(&EPOCH.to_le_bytes());
    // Shard and number of shards; oldest and next record; replies and compression.
    body.extend_from_slice(&[0, 0, 1, 0, 0, 2, 0, 0]);
    let mut frame = vec![1];
    frame.extend_from_slice(&(body.len() as u32).to_le_bytes());
    frame.append(&mut body);
    frame
}

fn open(meter: u64) -> Record<'static> {
    Record::Open { meter, identity: Identity { listener: "readings", ..Identity::default() } }
}

/// A batch without times, which is one of version 1.
fn old_batch(records: &[Record<'_>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(EPOCH, 0, 0);
    for record in records {
        builder.push(record);
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    assert_eq!(bytes[4], 1, "version of the batch");
    bytes
}

fn head() -> Head {
    let settings = HeadSettings {
        collectors: Vec::new(),
        window: 100_000,
        backlog: u64::MAX,
        segment: 1_000_000,
        replies: false,
        meters: 100,
    };
    Head::new(settings, 1, HeadState::default(), Durable::assumed(0))
}

#[test]
fn a_collector_of_the_previous_version_is_answered_in_its_version() {
    let mut head = head();
    head.handle_connected(1);
    let mut reader = FrameReader::default();
    reader.push(&old_hello());
    head.handle_frame(1, &reader.next_frame().unwrap().unwrap()).unwrap();
    let (_, answer) = head.poll_output().unwrap();
    let mut reader = FrameReader::default();
    reader.push(&answer);
    let frame = reader.next_frame().unwrap().unwrap();
    assert!(
        matches!(frame, Frame::Welcome(Welcome { version: 2, next, .. }) if next.get() == 0),
        "{frame:?}"
    );
    assert_eq!(answer[5..7], [2, 0], "where the previous version reads the version");
    let batch = old_batch(&[Record::Eof { meter: 1, offset: 0 }, open(3)]);
    head.handle_frame(1, &Frame::Batch(&batch)).unwrap();
    assert_eq!(head.state().meter_count(), 1);
    assert!(head.poll_group().is_some());
}

/// The state of a head with one collector and one open meter, as version 1 has written it.
fn old_state() -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.extend_from_slice(&EPOCH.to_le_bytes());
    put_text(&mut bytes, "old", 255);
    // One shard with its next record, then one meter.
    bytes.push(1);
    put_varint(&mut bytes, 0);
    put_varint(&mut bytes, 1_000);
    bytes.push(1);
    open(3).write(&mut bytes);
    put_varint(&mut bytes, 0);
    put_varint(&mut bytes, 70_000);
    bytes
}

#[test]
fn a_state_of_version_1_is_read() {
    let state = HeadState::from_bytes(&old_state());
    let source = &state.sources[&EPOCH];
    assert_eq!((&*source.collector, source.expected[&0]), ("old", 1_000));
    let meter = &source.meters[&3];
    assert_eq!((&*meter.listener, meter.received, meter.opened), ("readings", 70_000, None));
    assert_eq!(HeadState::from_bytes(&state.to_bytes()), state, "and written as version 2");
}

#[test]
fn a_state_keeps_the_times_at_which_meters_have_connected() {
    let mut state = HeadState::from_bytes(&old_state());
    let clock = ClockState::Synchronised { error_us: 1_500 };
    let opened = Some(Reception { utc_us: 1_700_000_000_000_000, clock });
    state.sources.get_mut(&EPOCH).unwrap().meters.get_mut(&3).unwrap().opened = opened;
    assert_eq!(HeadState::from_bytes(&state.to_bytes()), state);
}
