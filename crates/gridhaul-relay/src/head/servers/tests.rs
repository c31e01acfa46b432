//! Streams to a server whose connections fail at any time.

use std::collections::BTreeMap;

use gridhaul_scenario::units::{Duration, Instant};
use proptest::prelude::*;

use super::super::delivery::Delivery;
use super::{OpenMeter, ServerStreams, StreamId, StreamIdentity};
use crate::protocol::{DOWN_ENDED, DOWN_WINDOW, Identity, Record, ResetCause};

const EPOCH: u64 = 7;

fn delivery(record: Record<'_>) -> Delivery<'_> {
    let (number, identity) = ((1, 0), Identity::default());
    Delivery { collector: "collector", epoch: EPOCH, number, record, identity }
}

/// Passes records as one entry of the log that ends at `end`.
fn entry(streams: &mut ServerStreams, end: u64, records: &[Record<'_>]) {
    streams.begin_entry();
    for record in records {
        streams.handle_delivery(Instant::ZERO, &delivery(*record));
    }
    streams.end_entry(end);
}

const fn open(meter: u64) -> Record<'static> {
    Record::Open {
        meter,
        identity: Identity { peer: None, local: None, listener: "meters", certificate: "" },
    }
}

const fn data(meter: u64, offset: u64, bytes: &[u8], ends_message: bool) -> Record<'_> {
    Record::Data { meter, offset, ends_message, bytes }
}

/// Sends everything that can be sent, and returns it.
fn send(streams: &mut ServerStreams, id: StreamId) -> Vec<u8> {
    let mut all = Vec::new();
    while !streams.unsent(id).is_empty() {
        let bytes = streams.unsent(id).to_vec();
        streams.handle_sent(id, bytes.len() as u64);
        all.extend(bytes);
    }
    all
}

fn connect(streams: &mut ServerStreams, now: Instant) -> (StreamId, u64) {
    let (id, _) = streams.poll_connect(now).expect("a stream to connect");
    (id, streams.handle_connected(id))
}

#[test]
fn a_record_is_handed_over_when_the_server_has_acknowledged_it() {
    let mut streams = ServerStreams::new(100, 1_000);
    entry(&mut streams, 200, &[open(0), data(0, 0, b"abc", false)]);
    let (id, position) = connect(&mut streams, Instant::ZERO);
    assert_eq!((position, send(&mut streams, id)), (0, b"abc".to_vec()));
    streams.handle_acknowledged(id, 1);
    assert_eq!(streams.position(), 100, "one byte is not acknowledged");
    streams.handle_acknowledged(id, 0);
    assert_eq!(streams.position(), 200);
    entry(&mut streams, 300, &[Record::Eof { meter: 0, offset: 3 }]);
    assert!(streams.poll_fin(id) && !streams.poll_fin(id), "FIN is sent once");
    streams.handle_acknowledged(id, 1);
    assert_eq!(streams.position(), 200, "FIN is not acknowledged");
    streams.handle_acknowledged(id, 0);
    assert_eq!((streams.position(), streams.len()), (300, 1), "the server may still reply");
    streams.handle_server_fin(id);
    assert_eq!((streams.len(), streams.poll_closed()), (0, Some((id, (EPOCH, 0)))));
}

#[test]
fn a_new_connection_begins_with_a_message() {
    let mut streams = ServerStreams::new(0, 1_000);
    let records =
        [open(0), data(0, 0, b"one\n", true), data(0, 4, b"tw", false), data(0, 6, b"o\n", true)];
    entry(&mut streams, 10, &records);
    let (id, _) = connect(&mut streams, Instant::ZERO);
    assert_eq!(send(&mut streams, id), b"one\ntwo\n");
    streams.handle_acknowledged(id, 2);
    streams.handle_failed(Instant::ZERO, id);
    assert_eq!(streams.poll_connect(Instant::ZERO), None, "attempts are not repeated at once");
    let later = Instant::ZERO + Duration::from_secs(1);
    let (id, position) = connect(&mut streams, later);
    assert_eq!((position, send(&mut streams, id)), (4, b"two\n".to_vec()));
}

#[test]
fn a_reset_follows_the_data() {
    let mut streams = ServerStreams::new(0, 1_000);
    let reset = Record::Reset { meter: 0, cause: ResetCause::Meter };
    entry(&mut streams, 10, &[open(0), data(0, 0, b"abc", false), reset]);
    let (id, _) = connect(&mut streams, Instant::ZERO);
    send(&mut streams, id);
    streams.handle_acknowledged(id, 3);
    assert_eq!(streams.poll_closed(), None);
    streams.handle_acknowledged(id, 0);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 10));
    entry(&mut streams, 20, &[open(1), Record::Reset { meter: 1, cause: ResetCause::Meter }]);
    assert_eq!(streams.position(), 20, "without data no connection is made");
    assert!(streams.is_empty());
}

#[test]
fn data_after_a_gap_resets_the_stream() {
    let mut streams = ServerStreams::new(0, 1_000);
    entry(&mut streams, 10, &[open(0), data(0, 0, b"abc", false)]);
    let (id, _) = connect(&mut streams, Instant::ZERO);
    entry(&mut streams, 20, &[data(0, 6, b"ghi", false)]);
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 0), 1)));
    entry(&mut streams, 30, &[data(0, 9, b"jkl", false), Record::Eof { meter: 0, offset: 12 }]);
    assert_eq!(send(&mut streams, id), b"abc", "only what was before the gap");
    assert!(!streams.poll_fin(id));
    assert_eq!(streams.poll_closed(), None);
    streams.handle_acknowledged(id, 0);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 30));
}

#[test]
fn a_stream_without_its_start_is_not_delivered() {
    let mut streams = ServerStreams::new(0, 1_000);
    entry(&mut streams, 10, &[data(0, 3, b"def", false)]);
    entry(&mut streams, 20, &[open(1), data(1, 3, b"def", false)]);
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 1), 1)));
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 0), 1)));
    assert_eq!((streams.poll_connect(Instant::ZERO), streams.position()), (None, 20));
    assert!(streams.is_empty());
}

#[test]
fn an_unreachable_server_is_tried_with_growing_intervals_for_all_meters_together() {
    let mut streams = ServerStreams::new(0, 1_000);
    entry(&mut streams, 10, &[open(0), open(1), open(2)]);
    let mut now = Instant::ZERO;
    let mut intervals = Vec::new();
    for _ in 0..8 {
        let (id, _) = streams.poll_connect(now).expect("an attempt is due");
        let next = streams.handle_unreachable(now, id);
        assert_eq!(streams.poll_connect(now), None, "other meters wait as well");
        intervals.push(next.since(now).as_nanos() / 1_000_000);
        now = next;
    }
    assert_eq!(intervals, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
    assert_eq!((streams.position(), streams.len()), (0, 3), "nothing is lost");
}

#[test]
fn the_window_of_a_meter_limits_what_is_read_from_its_server() {
    let mut streams = ServerStreams::new(0, 1_000);
    let identity = StreamIdentity { shard: 1, peer: None, local: None };
    let meter = OpenMeter { key: (EPOCH, 3), identity, received: 40 };
    streams.restore(Instant::ZERO, &meter);
    let (id, position) = connect(&mut streams, Instant::ZERO);
    assert_eq!(position, 40, "earlier data was handed over by an earlier run");
    assert!(streams.handle_down_read(id, DOWN_WINDOW));
    assert_eq!(streams.down_window(id), 0);
    assert_eq!(streams.handle_down_confirmed((EPOCH, 3), 100), Some(id));
    assert_eq!(streams.down_window(id), 100);
    streams.handle_down_confirmed((EPOCH, 3), DOWN_ENDED);
    assert_eq!(streams.down_window(id), DOWN_WINDOW as usize, "data is read and dropped");
    assert!(!streams.handle_down_read(id, 5));
}

proptest! {
    /// Whatever fails, the union of all connections is the stream of each meter, and the position of the log never passes
    /// a record that no connection has carried to an acknowledgement.
    #[test]
    fn every_byte_is_handed_over(actions in prop::collection::vec((0..6_u8, 0..3_u64, 1..6_u64), 1..200)) {
        let mut streams = ServerStreams::new(0, u64::MAX);
        let mut now = Instant::ZERO;
        let mut end = 0;
        let mut lengths: BTreeMap<u64, u64> = BTreeMap::new();
        // Streams with a connection: meter, position of the next byte, and what was acknowledged of each meter.
        let mut connections: BTreeMap<StreamId, (u64, u64)> = BTreeMap::new();
        let mut acknowledged: BTreeMap<u64, u64> = BTreeMap::new();
        // End of each entry, with the meter and the position that it completes.
        let mut entries: Vec<(u64, u64, u64)> = Vec::new();
        for (action, meter, size) in actions {
            now += Duration::from_secs(10);
            match action {
                0 | 1 => {
                    end += 10;
                    let is_new = !lengths.contains_key(&meter);
                    let offset = *lengths.entry(meter).or_default();
                    let bytes: Vec<u8> = (offset..offset + size).map(|at| at as u8).collect();
                    lengths.insert(meter, offset + size);
                    let record = data(meter, offset, &bytes, size % 2 == 0);
                    let records = [open(meter), record];
                    entry(&mut streams, end, &records[usize::from(!is_new)..]);
                    entries.push((end, meter, offset + size));
                }
                2 => {
                    if let Some((id, _)) = streams.poll_connect(now) {
                        let position = streams.handle_connected(id);
                        let ((_, meter), _) = streams.meter(id).unwrap();
                        prop_assert!(position <= acknowledged.get(&meter).copied().unwrap_or(0));
                        connections.insert(id, (meter, position));
                    }
                }
                3 => {
                    for (&id, (_, next)) in &mut connections {
                        for byte in send(&mut streams, id) {
                            prop_assert_eq!(byte, *next as u8);
                            *next += 1;
                        }
                    }
                }
                4 => {
                    for (&id, &(meter, next)) in &connections {
                        streams.handle_acknowledged(id, size - 1);
                        let known = acknowledged.entry(meter).or_default();
                        *known = (*known).max(next.saturating_sub(size - 1));
                    }
                }
                _ => {
                    if let Some((id, _)) = connections.pop_first() {
                        streams.handle_failed(now, id);
                    }
                }
            }
            for (end, meter, position) in &entries {
                let known = acknowledged.get(meter).copied().unwrap_or(0);
                prop_assert!(*end > streams.position() || *position <= known);
            }
        }
        // Everything arrives once nothing fails any more.
        for _ in 0..4 {
            now += Duration::from_secs(10);
            while let Some((id, _)) = streams.poll_connect(now) {
                let position = streams.handle_connected(id);
                let ((_, meter), _) = streams.meter(id).unwrap();
                connections.insert(id, (meter, position));
            }
            for &id in connections.keys() {
                send(&mut streams, id);
                streams.handle_acknowledged(id, 0);
            }
        }
        for meter in lengths.keys() {
            entry(&mut streams, end + 10, &[Record::Eof { meter: *meter, offset: 0 }]);
        }
        for &id in connections.keys() {
            streams.poll_fin(id);
            streams.handle_acknowledged(id, 0);
        }
        prop_assert_eq!(streams.position(), end + 10 * u64::from(!lengths.is_empty()));
    }
}
