//! Frames of a head: credit, acknowledgements, data for meters.

use gridhaul_core::coverage_mark::covers;
use gridhaul_protocols::framing::MessageFraming;

use super::settings;
use crate::collector::{Collector, CollectorState, Event, MeterId, SessionError, Settings, Tier};
use crate::log::Durable;
use crate::log::tests::disk::ModelDisk;
use crate::protocol::{
    DOWN_ENDED, DOWN_WINDOW, Frame, FrameReader, Identity, PROTOCOL_VERSION, ResetCause, Welcome,
};

/// A collector without a log, and its only meter, whose connection is the first record.
fn collector() -> (Collector<ModelDisk>, MeterId) {
    let settings = Settings { replies: true, ..settings(Tier::Memory) };
    let mut collector = Collector::new(settings, 7, &CollectorState::default(), None);
    let id = collector.open_meter(Identity::default(), MessageFraming::Stream);
    assert_eq!(collector.poll_group(), None, "records are kept in memory");
    (collector, id)
}

/// Connects to a run of the head that has all records before `next`.
fn connect(
    collector: &mut Collector<ModelDisk>,
    instance: u64,
    next: u64,
    credit: u64,
) -> Result<(), SessionError> {
    collector.handle_connected(0, &mut Vec::new());
    let next = Durable::assumed(next).into();
    let (version, compression) = (PROTOCOL_VERSION, false);
    let welcome = Welcome { version, instance, next, credit, compression };
    handle(collector, Frame::Welcome(welcome))
}

fn handle(collector: &mut Collector<ModelDisk>, frame: Frame<'_>) -> Result<(), SessionError> {
    collector.handle_frame(0, &frame, &mut Vec::new())
}

fn ack(next: u64) -> Frame<'static> {
    Frame::Ack { next: Durable::assumed(next).into() }
}

fn fill(collector: &mut Collector<ModelDisk>) -> bool {
    collector.fill(0, &mut Vec::new()).unwrap()
}

#[test]
fn records_are_sent_as_far_as_the_credit_permits() {
    covers!(collector_sends_nothing_without_credit);
    let (mut collector, _) = collector();
    connect(&mut collector, 1, 0, 0).unwrap();
    assert!(!fill(&mut collector));
    handle(&mut collector, Frame::Credit { limit: 10 }).unwrap();
    assert!(!fill(&mut collector), "the batch is longer");
    handle(&mut collector, Frame::Credit { limit: 1_000 }).unwrap();
    assert!(fill(&mut collector));
}

#[test]
fn an_acknowledgement_of_records_that_were_not_sent_is_an_error() {
    covers!(collector_refuses_an_acknowledgement_of_unsent_records);
    let (mut collector, _) = collector();
    connect(&mut collector, 1, 0, 1_000).unwrap();
    assert!(matches!(handle(&mut collector, ack(1)), Err(SessionError::Protocol(_))));
    assert!(fill(&mut collector));
    handle(&mut collector, ack(1)).unwrap();
    assert!(matches!(handle(&mut collector, ack(2)), Err(SessionError::Protocol(_))));
}

/// A log that was restored from a backup numbers new records like others that the head has: it
/// would drop them as duplicates.
#[test]
fn a_collector_whose_log_is_older_than_the_records_of_the_head_sends_nothing() {
    covers!(collector_with_an_older_log_sends_nothing);
    let (mut collector, _) = collector();
    let refused = connect(&mut collector, 1, 5, 1_000);
    assert!(matches!(refused, Err(SessionError::OlderLog { head: 5, collector: 0 })));
    assert!(!collector.is_established(0) && !fill(&mut collector));
}

#[test]
fn a_head_that_has_lost_confirmed_records_is_noticed_once() {
    covers!(collector_notices_that_the_head_has_lost_records);
    let (mut collector, _) = collector();
    connect(&mut collector, 1, 0, 1_000).unwrap();
    assert!(fill(&mut collector));
    handle(&mut collector, ack(1)).unwrap();
    connect(&mut collector, 2, 1, 1_000).unwrap();
    assert!(!collector.poll_lost(0), "the head has the record");
    connect(&mut collector, 3, 0, 1_000).unwrap();
    assert!(collector.poll_lost(0) && !collector.poll_lost(0));
}

#[test]
fn servers_begin_new_streams_after_a_restart_of_the_head_only() {
    covers!(collector_servers_begin_anew_after_a_restart_of_the_head);
    let (mut collector, id) = collector();
    connect(&mut collector, 1, 0, 1_000).unwrap();
    let down = |bytes| Frame::Down { meter: id.number, offset: 0, bytes };
    handle(&mut collector, down(b"old")).unwrap();
    let event = |bytes: &[u8]| Some(Event::Down { meter: id, bytes: bytes.to_vec() });
    assert_eq!(collector.poll_event(), event(b"old"));
    collector.handle_down_written(id, 3, &mut Vec::new());
    connect(&mut collector, 1, 0, 1_000).unwrap();
    handle(&mut collector, down(b"old")).unwrap();
    assert_eq!(collector.poll_event(), None, "the same stream is repeated");
    connect(&mut collector, 2, 0, 1_000).unwrap();
    handle(&mut collector, down(b"new")).unwrap();
    assert_eq!(collector.poll_event(), event(b"new"));
}

#[test]
fn data_for_a_meter_that_has_ended_is_answered_by_its_end() {
    covers!(collector_drops_data_for_an_ended_meter);
    let (mut collector, id) = collector();
    connect(&mut collector, 1, 0, 1_000).unwrap();
    collector.handle_reset(id, ResetCause::Meter);
    let mut out = Vec::new();
    let down = Frame::Down { meter: id.number, offset: 0, bytes: b"late" };
    collector.handle_frame(0, &down, &mut out).unwrap();
    assert_eq!(collector.poll_event(), None);
    let mut reader = FrameReader::default();
    reader.push(&out);
    let answer = Frame::DownAck { meter: id.number, offset: DOWN_ENDED };
    assert_eq!(reader.next_frame().unwrap(), Some(answer));
}

#[test]
fn data_beyond_the_window_of_a_meter_is_an_error() {
    covers!(collector_refuses_data_beyond_the_window_of_a_meter);
    let (mut collector, id) = collector();
    connect(&mut collector, 1, 0, 1_000).unwrap();
    let bytes = vec![0; DOWN_WINDOW as usize + 1];
    let mut send = |offset: usize, bytes: &[u8]| {
        let (meter, offset) = (id.number, offset as u64);
        handle(&mut collector, Frame::Down { meter, offset, bytes })
    };
    send(0, &bytes[1..]).unwrap();
    assert!(matches!(send(bytes.len() - 1, &bytes[..1]), Err(SessionError::Protocol(_))));
}
