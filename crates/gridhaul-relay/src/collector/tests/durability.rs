//! Records of a collector with a log.

use gridhaul_core::coverage_mark::covers;
use gridhaul_protocols::framing::MessageFraming;

use super::settings;
use crate::collector::{Collector, CollectorLog, CollectorState, MeterId, Tier};
use crate::log::tests::disk::ModelDisk;
use crate::log::{Durable, LogWriter, Lost, open};
use crate::protocol::{
    ClockState, Frame, FrameReader, Identity, PROTOCOL_VERSION, Reception, Record, Welcome, batches,
};

/// A collector of tier `local` with a meter, and its log.
fn collector_with_log() -> (Collector<ModelDisk>, LogWriter<ModelDisk>, MeterId) {
    let disk = ModelDisk::default();
    let log = open(disk.clone(), 7, &[]).unwrap().writer;
    let range = log.durable_range();
    let state = CollectorState::default();
    let log_of_collector = Some(CollectorLog { storage: disk, range });
    let mut collector = Collector::new(settings(Tier::Local), 7, &state, log_of_collector);
    let id = collector.open_meter(Identity::default(), MessageFraming::Stream);
    (collector, log, id)
}

#[test]
fn data_is_confirmed_when_its_group_is_durable() {
    covers!(collector_confirms_stored_data);
    let (mut collector, mut log, id) = collector_with_log();
    collector.handle_data(id, b"reading").unwrap();
    let group = collector.poll_group().unwrap();
    log.append(&group.payload).unwrap();
    assert_eq!(collector.poll_group(), None, "one group is written at a time");
    assert_eq!((collector.bytes_at_risk(), collector.status(id).unwrap().durable), (7, 0));
    collector.handle_written(log.commit().unwrap());
    assert_eq!((collector.bytes_at_risk(), collector.status(id).unwrap().durable), (0, 7));
}

/// Records with other states of the clock are in other batches: an entry of the log has two of them
/// here, and the head has confirmed the first.
#[test]
fn after_a_reconnection_only_the_unconfirmed_batches_of_an_entry_are_sent() {
    covers!(collector_skips_confirmed_batches_of_an_entry);
    let (mut collector, mut log, id) = collector_with_log();
    for (utc_us, clock) in [(1, ClockState::Unknown), (2, ClockState::Unsynchronised)] {
        collector.set_time(Reception { utc_us, clock });
        collector.handle_data(id, b"reading").unwrap();
    }
    let group = collector.poll_group().unwrap();
    let first_of_batches: Vec<u64> =
        batches(&group.payload).map(|batch| batch.unwrap().first).collect();
    // The record of the connection has no time.
    assert_eq!(first_of_batches, [0, 1, 2]);
    log.append(&group.payload).unwrap();
    collector.handle_written(log.commit().unwrap());

    assert_eq!(batches_sent(&mut collector, 0), [0, 1, 2]);
    assert_eq!(batches_sent(&mut collector, 2), [2]);
    assert_eq!(collector.confirmed_position(), 0, "the entry is needed for its last batch");
}

/// Connects to a head that expects the record `next`. Returns the numbers of the first records of
/// the batches that are sent.
fn batches_sent(collector: &mut Collector<ModelDisk>, next: u64) -> Vec<u64> {
    let mut out = Vec::new();
    collector.handle_connected(0, &mut out);
    out.clear();
    let next = Durable::assumed(next).into();
    let (version, compression) = (PROTOCOL_VERSION, false);
    let welcome = Welcome { version, instance: 1, next, credit: u64::MAX, compression };
    collector.handle_frame(0, &Frame::Welcome(welcome), &mut out).unwrap();
    while collector.fill(0, &mut out).unwrap() {}
    let mut reader = FrameReader::default();
    reader.push(&out);
    let mut sent = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        if let Frame::Batch(bytes) = frame {
            sent.push(batches(bytes).next().unwrap().unwrap().first);
        }
    }
    sent
}

#[test]
fn a_collector_states_what_its_log_has_lost() {
    covers!(collector_states_what_its_log_has_lost);
    let lost = Some(Lost { bytes: Some(300) });
    let state = CollectorState { next_meter: 5, next: vec![40], lost, ..CollectorState::default() };
    let mut collector: Collector<ModelDisk> =
        Collector::new(settings(Tier::Server), 7, &state, None);
    let mut bytes = Vec::new();
    collector.shards[0].finish(&mut bytes);
    let batch = batches(&bytes).next().unwrap().unwrap();
    let records: Vec<Record<'_>> = batch.records().map(|record| record.unwrap().1).collect();
    let [Record::Restart { first_meter: 5, .. }, gap] = records[..] else { panic!("{records:?}") };
    assert_eq!(gap, Record::Gap { records: None, bytes: Some(300) });
}
