//! Streams to a server whose connections fail at any time.

use gridhaul_core::coverage_mark::covers;
use gridhaul_scenario::relay::Confirmation;
use gridhaul_scenario::units::{Duration, Instant};

use super::super::delivery::Delivery;
use super::confirmation::{OPEN_AGE, READ_DELAY};
use super::{OpenMeter, ServerStreams, StreamId, StreamIdentity, Unconfirmed};
use crate::protocol::{DOWN_ENDED, DOWN_WINDOW, Identity, Record, ResetCause};

const EPOCH: u64 = 7;
const NOW: Instant = Instant::ZERO;
/// Attempts to connect are repeated by then.
const LATER: Instant = Instant::from_nanos(10_000_000_000);

fn streams(position: u64, limit: u64) -> ServerStreams {
    ServerStreams::new(Confirmation::Close, position, limit)
}

fn delivery(record: Record<'_>) -> Delivery<'_> {
    let (number, identity) = ((1, 0), Identity::default());
    Delivery { collector: "collector", epoch: EPOCH, number, time: None, record, identity }
}

/// Passes records as one entry of the log that ends at `end`.
fn entry(streams: &mut ServerStreams, end: u64, records: &[Record<'_>]) {
    for record in records {
        streams.handle_delivery(NOW, &delivery(*record));
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

/// Reads records of the log again.
fn replay(streams: &mut ServerStreams, records: &[Record<'_>]) {
    if streams.begin_replay().is_some() {
        records.iter().for_each(|record| streams.handle_replayed(EPOCH, record));
        streams.end_replay(NOW);
    }
}

fn connect(streams: &mut ServerStreams, now: Instant) -> (StreamId, u64) {
    let (id, _) = streams.poll_connect(now).expect("a stream to connect");
    (id, streams.handle_connected(id))
}

/// A stream whose first message, `one`, the server has acknowledged. It ends at 10 in the log.
fn acknowledged() -> (ServerStreams, StreamId) {
    let mut streams = streams(0, 1_000);
    entry(&mut streams, 10, &[open(0), data(0, 0, b"one\n", true)]);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 0);
    (streams, id)
}

/// As [`acknowledged`], and then the server has closed its direction, before the meter.
fn closed_early() -> (ServerStreams, StreamId) {
    let (mut streams, id) = acknowledged();
    streams.handle_server_fin(NOW, id);
    (streams, id)
}

#[test]
fn a_stream_is_delivered_when_the_server_closes_after_fin() {
    let mut streams = streams(100, 1_000);
    entry(&mut streams, 200, &[open(0), data(0, 0, b"abc", false)]);
    let (id, position) = connect(&mut streams, NOW);
    assert_eq!((position, send(&mut streams, id)), (0, b"abc".to_vec()));
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!(streams.unconfirmed(), Unconfirmed { bytes: 3, at_risk: 0 });
    entry(&mut streams, 300, &[Record::Eof { meter: 0, offset: 3 }]);
    assert!(streams.poll_fin(id) && !streams.poll_fin(id), "FIN is sent once");
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!((streams.position(), streams.is_full()), (100, false), "the log has the data");
    assert_eq!(streams.awaiting_close(), Some((NOW, 1)));
    streams.handle_server_fin(NOW, id);
    assert_eq!((streams.len(), streams.poll_closed()), (0, Some((id, (EPOCH, 0)))));
    assert_eq!((streams.position(), streams.awaiting_close()), (300, None));
    assert_eq!(streams.unconfirmed(), Unconfirmed::default());
}

#[test]
fn a_reset_of_the_server_sends_the_whole_stream_again() {
    let mut streams = streams(0, 1_000);
    let records = [open(0), data(0, 0, b"abc", false), Record::Eof { meter: 0, offset: 3 }];
    entry(&mut streams, 10, &records);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    assert!(streams.poll_fin(id));
    streams.handle_acknowledged(NOW, id, 0);
    streams.handle_failed(NOW, id);
    assert_eq!((streams.unconfirmed(), streams.position()), (Unconfirmed::default(), 0));
    let (id, position) = connect(&mut streams, LATER);
    assert_eq!((position, send(&mut streams, id)), (0, vec![]), "the data left the memory");
    replay(&mut streams, &records);
    assert_eq!(send(&mut streams, id), b"abc");
    assert!(streams.poll_fin(id));
    streams.handle_acknowledged(LATER, id, 0);
    streams.handle_server_fin(LATER, id);
    assert_eq!(streams.position(), 10);
}

#[test]
fn a_server_that_keeps_closing_is_tried_with_growing_intervals() {
    covers!(server_failing_stream_waits_longer);
    let mut streams = streams(0, 1_000);
    let records = [open(0), data(0, 0, b"poison\n", true)];
    entry(&mut streams, 10, &records);
    let mut now = NOW;
    for interval in [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000] {
        let (id, _) = connect(&mut streams, now);
        replay(&mut streams, &records);
        send(&mut streams, id);
        streams.handle_acknowledged(now, id, 0);
        streams.handle_failed(now, id);
        assert_eq!(streams.next_connect().since(now), Duration::from_millis(interval));
        assert_eq!(streams.failing(), u64::from(interval > 100));
        now = streams.next_connect();
    }
}

#[test]
fn a_server_that_closes_after_a_message_has_confirmed_it() {
    covers!(server_fin_confirms_acknowledged_data);
    let (mut streams, id) = closed_early();
    assert_eq!(streams.position(), 10);
    entry(&mut streams, 20, &[data(0, 4, b"two\n", true)]);
    send(&mut streams, id);
    streams.handle_failed(NOW, id);
    let (id, position) = connect(&mut streams, LATER);
    assert_eq!((position, send(&mut streams, id)), (4, b"two\n".to_vec()));
}

#[test]
fn an_answer_that_the_meter_has_received_confirms_what_was_acknowledged_before() {
    covers!(server_answer_that_the_meter_has_confirms_data);
    let (mut streams, id) = acknowledged();
    assert!(streams.handle_down_read(id, 5));
    entry(&mut streams, 20, &[data(0, 4, b"two\n", true)]);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 0);
    streams.handle_down_confirmed((EPOCH, 0), 4);
    assert_eq!(streams.unconfirmed().bytes, 8, "the meter has a part of the answer");
    streams.handle_down_confirmed((EPOCH, 0), 5);
    assert_eq!(streams.unconfirmed().bytes, 4);
    streams.handle_failed(NOW, id);
    assert_eq!(connect(&mut streams, LATER).1, 4);
}

#[test]
fn a_meter_that_accepts_no_answers_confirms_nothing() {
    let (mut streams, id) = acknowledged();
    streams.handle_down_read(id, 5);
    streams.handle_down_confirmed((EPOCH, 0), DOWN_ENDED);
    assert_eq!((streams.unconfirmed().bytes, streams.position()), (4, 0));
}

#[test]
fn an_open_connection_keeps_the_log_for_a_limited_time_and_length() {
    covers!(server_open_connection_keeps_the_log_for_a_limited_time);
    let mut streams = streams(0, 1_000_000);
    let message = vec![b'x'; 300_000];
    entry(&mut streams, 300_010, &[open(0), data(0, 0, &message, true)]);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!(streams.next_timeout(), NOW + OPEN_AGE);
    let half = NOW + Duration::from_secs(30);
    entry(&mut streams, 600_020, &[data(0, 300_000, &message, true)]);
    send(&mut streams, id);
    streams.handle_acknowledged(half, id, 0);
    assert_eq!(streams.position(), 0);
    streams.handle_timeout(NOW + OPEN_AGE);
    assert_eq!(streams.position(), 300_010, "the second message is younger");
    assert_eq!(streams.unconfirmed(), Unconfirmed { bytes: 600_000, at_risk: 300_000 });
    streams.release_before(600_020);
    assert_eq!(streams.position(), 600_020);
    assert_eq!(streams.unconfirmed(), Unconfirmed { bytes: 600_000, at_risk: 600_000 });
}

#[test]
fn the_start_of_a_message_does_not_keep_more_of_the_log_than_permitted() {
    let mut streams = streams(0, 1_000);
    let records = [open(0), data(0, 0, b"one\n", true), data(0, 4, b"two", false)];
    entry(&mut streams, 10, &records);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 1);
    streams.release_before(10);
    assert_eq!(streams.position(), 0, "one byte is not acknowledged");
    streams.handle_failed(NOW, id);
    let (id, position) = connect(&mut streams, LATER);
    replay(&mut streams, &records);
    assert_eq!((position, send(&mut streams, id)), (6, b"o".to_vec()));
    streams.handle_acknowledged(LATER, id, 0);
    streams.release_before(10);
    assert_eq!(streams.position(), 10);
}

#[test]
fn an_acknowledgement_of_tcp_suffices_if_it_is_configured() {
    let mut streams = ServerStreams::new(Confirmation::Acknowledgement, 0, 1_000);
    entry(&mut streams, 10, &[open(0), data(0, 0, b"abc", false)]);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 1);
    assert_eq!(streams.position(), 0, "one byte is not acknowledged");
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!(streams.position(), 10);
    entry(&mut streams, 20, &[Record::Eof { meter: 0, offset: 3 }]);
    assert!(streams.poll_fin(id));
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!((streams.position(), streams.len()), (20, 1), "the server may still reply");
    streams.handle_server_fin(NOW, id);
    assert!(streams.is_empty());
}

#[test]
fn a_new_connection_begins_with_a_message() {
    let mut streams = ServerStreams::new(Confirmation::Acknowledgement, 0, 1_000);
    let records =
        [open(0), data(0, 0, b"one\n", true), data(0, 4, b"tw", false), data(0, 6, b"o\n", true)];
    entry(&mut streams, 10, &records);
    let (id, _) = connect(&mut streams, NOW);
    assert_eq!(send(&mut streams, id), b"one\ntwo\n");
    streams.handle_acknowledged(NOW, id, 2);
    streams.handle_failed(NOW, id);
    assert_eq!(streams.poll_connect(NOW), None, "attempts are not repeated at once");
    let (id, position) = connect(&mut streams, LATER);
    replay(&mut streams, &records);
    assert_eq!((position, send(&mut streams, id)), (4, b"two\n".to_vec()));
}

#[test]
fn a_reset_follows_the_data_after_the_server_had_time_to_read() {
    covers!(server_has_time_to_read_before_a_reset);
    let mut streams = streams(0, 1_000);
    let reset = Record::Reset { meter: 0, cause: ResetCause::Meter };
    let records = [open(0), data(0, 0, b"abc", false), reset];
    entry(&mut streams, 10, &records);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 3);
    assert_eq!(streams.next_timeout(), Instant::NEVER);
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!((streams.poll_closed(), streams.next_timeout()), (None, NOW + READ_DELAY));
    // The server fails meanwhile: it gets the data again.
    streams.handle_failed(NOW, id);
    streams.handle_timeout(NOW + READ_DELAY);
    assert_eq!((streams.len(), streams.position()), (1, 0));
    let (id, _) = connect(&mut streams, LATER);
    replay(&mut streams, &records);
    send(&mut streams, id);
    streams.handle_acknowledged(LATER, id, 0);
    streams.handle_timeout(LATER + READ_DELAY);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 10));
    entry(&mut streams, 20, &[open(1), Record::Reset { meter: 1, cause: ResetCause::Meter }]);
    assert_eq!(streams.position(), 20, "without data no connection is made");
    assert!(streams.is_empty());
}

#[test]
fn fin_after_data_that_follows_fin_of_the_server_waits_until_it_had_time_to_read() {
    covers!(server_that_has_closed_early_has_time_to_read_before_fin);
    let (mut streams, id) = closed_early();
    let records = [data(0, 4, b"two\n", true), Record::Eof { meter: 0, offset: 8 }];
    entry(&mut streams, 20, &records);
    assert_eq!(send(&mut streams, id), b"two\n");
    assert!(!streams.poll_fin(id));
    streams.handle_acknowledged(NOW, id, 0);
    // The end of the stream is read again with each event of the socket.
    streams.handle_server_fin(NOW, id);
    assert_eq!((streams.unconfirmed().bytes, streams.next_timeout()), (4, NOW + READ_DELAY));
    // The server dies without reading: the next connection begins with what it has not confirmed.
    streams.handle_failed(NOW, id);
    streams.handle_timeout(NOW + READ_DELAY);
    assert_eq!((streams.len(), streams.position()), (1, 10));
    let (id, position) = connect(&mut streams, LATER);
    replay(&mut streams, &records);
    assert_eq!((position, send(&mut streams, id)), (4, b"two\n".to_vec()));
    // This one closes its direction at once, and reads on.
    streams.handle_server_fin(LATER, id);
    streams.handle_acknowledged(LATER, id, 0);
    assert!(!streams.poll_fin(id));
    streams.handle_timeout(LATER + READ_DELAY);
    assert_eq!(streams.poll_ready(), Some(id));
    assert!(streams.poll_fin(id));
    streams.handle_acknowledged(LATER, id, 0);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 20));
}

#[test]
fn fin_needs_no_wait_if_the_server_has_confirmed_everything() {
    let (mut streams, id) = closed_early();
    entry(&mut streams, 20, &[Record::Eof { meter: 0, offset: 4 }]);
    assert!(streams.poll_fin(id));
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 20));
}

#[test]
fn a_reset_after_data_that_follows_fin_of_the_server_waits_as_well() {
    let (mut streams, id) = closed_early();
    let reset = Record::Reset { meter: 0, cause: ResetCause::Meter };
    entry(&mut streams, 20, &[data(0, 4, b"two\n", true), reset]);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 0);
    assert_eq!(streams.poll_closed(), None);
    streams.handle_timeout(NOW + READ_DELAY);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 20));
}

#[test]
fn data_after_a_gap_resets_the_stream() {
    covers!(server_stream_with_a_gap_ends_with_a_reset);
    let mut streams = streams(0, 1_000);
    entry(&mut streams, 10, &[open(0), data(0, 0, b"abc", false)]);
    let (id, _) = connect(&mut streams, NOW);
    entry(&mut streams, 20, &[data(0, 6, b"ghi", false)]);
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 0), 1)));
    entry(&mut streams, 30, &[data(0, 9, b"jkl", false), Record::Eof { meter: 0, offset: 12 }]);
    assert_eq!(send(&mut streams, id), b"abc", "only what was before the gap");
    assert!(!streams.poll_fin(id));
    streams.handle_acknowledged(NOW, id, 0);
    streams.handle_timeout(NOW + READ_DELAY);
    assert_eq!((streams.poll_closed(), streams.position()), (Some((id, (EPOCH, 0))), 30));
}

#[test]
fn data_that_cannot_be_read_again_resets_the_stream() {
    covers!(server_stream_is_reset_if_the_log_lacks_its_data);
    let mut streams = streams(0, 1_000);
    entry(&mut streams, 10, &[open(0), data(0, 0, b"abc", false), data(0, 3, b"def", false)]);
    let (id, _) = connect(&mut streams, NOW);
    send(&mut streams, id);
    streams.handle_acknowledged(NOW, id, 0);
    streams.handle_failed(NOW, id);
    let (id, _) = connect(&mut streams, LATER);
    replay(&mut streams, &[open(0), data(0, 0, b"abc", false)]);
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 0), 1)));
    assert_eq!((send(&mut streams, id), streams.needs_replay()), (b"abc".to_vec(), false));
}

#[test]
fn a_stream_without_its_start_is_not_delivered() {
    covers!(server_stream_without_its_start_is_not_delivered);
    let mut streams = streams(0, 1_000);
    entry(&mut streams, 10, &[data(0, 3, b"def", false)]);
    entry(&mut streams, 20, &[open(1), data(1, 3, b"def", false)]);
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 1), 1)));
    assert_eq!(streams.poll_incomplete(), Some(((EPOCH, 0), 1)));
    assert_eq!((streams.poll_connect(NOW), streams.position()), (None, 20));
    assert!(streams.is_empty());
}

#[test]
fn an_unreachable_server_is_tried_with_growing_intervals_for_all_meters_together() {
    covers!(server_attempts_of_all_meters_wait_together);
    let mut streams = streams(0, 1_000);
    entry(&mut streams, 10, &[open(0), open(1), open(2)]);
    let mut now = NOW;
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
    let mut streams = streams(0, 1_000);
    let identity = StreamIdentity { shard: 1, peer: None, local: None, opened: None };
    let meter = OpenMeter { key: (EPOCH, 3), identity, received: 40 };
    streams.restore(NOW, &meter);
    let (id, position) = connect(&mut streams, NOW);
    assert_eq!(position, 40, "earlier data was handed over by an earlier run");
    assert!(streams.handle_down_read(id, DOWN_WINDOW));
    assert_eq!(streams.down_window(id), 0);
    assert_eq!(streams.handle_down_confirmed((EPOCH, 3), 100), Some(id));
    assert_eq!(streams.down_window(id), 100);
    streams.handle_down_confirmed((EPOCH, 3), DOWN_ENDED);
    assert_eq!(streams.down_window(id), DOWN_WINDOW as usize, "data is read and dropped");
    assert!(!streams.handle_down_read(id, 5));
}
