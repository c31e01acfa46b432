//! A collector and a head with everything around them.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_protocols::framing::MessageFraming;

use super::super::json::json_of;
use super::super::{Deliveries, Head, HeadSettings, HeadState, METERS_MAX};
use crate::collector::{
    Collector, CollectorLog, CollectorState, Event, MeterId, Settings, Tier, recover,
};
use crate::log::tests::disk::ModelDisk;
use crate::log::{LogWriter, open};
use crate::protocol::{Close, Frame, FrameReader, Identity, Record, ResetCause};

pub(super) const SHARDS: u16 = 2;

/// Expected state of a meter.
#[derive(Debug, Default, Clone)]
pub(super) struct Known {
    /// Bytes that the collector has reported as stored.
    pub durable: u64,
    /// FIN was answered.
    pub is_closed: bool,
}

/// Both directions of the connection of a shard.
#[derive(Debug, Default)]
struct Link {
    number: u32,
    up: Vec<u8>,
    down: Vec<u8>,
    to_head: FrameReader,
    to_collector: FrameReader,
}

pub(super) struct World {
    pub tier: Tier,
    collector_disk: ModelDisk,
    head_disk: ModelDisk,
    collector: Collector<ModelDisk>,
    collector_log: Option<LogWriter<ModelDisk>>,
    head: Head,
    head_log: LogWriter<ModelDisk>,
    links: BTreeMap<u16, Link>,
    /// Open meters of the present run of the collector.
    pub meters: Vec<MeterId>,
    /// By epoch and number.
    pub known: BTreeMap<(u64, u64), Known>,
    runs: u64,
    next_link: u32,
    /// Bytes of the records since the last group, at least.
    ungrouped: u64,
}

/// Bytes after which a group is written, as the daemon does after the bytes of the largest frame:
/// the window of the head must hold a whole batch.
const GROUP: u64 = 5_000;

/// Bytes of the record that opens a meter, at most.
const OPEN: u64 = 100;

/// The byte at a position of a meter's stream.
pub(super) fn byte_at(meter: u64, offset: u64) -> u8 {
    (meter.wrapping_mul(31).wrapping_add(offset.wrapping_mul(7)) % 251) as u8
}

fn settings(tier: Tier) -> Settings {
    Settings {
        message_limit: 64_000,
        name: "collector".to_owned(),
        tier,
        shards: SHARDS,
        at_risk: 20_000,
        at_risk_per_meter: 3_000,
        backlog: 60_000,
        segment: 4_000,
        replies: false,
        compression: tier == Tier::Server,
    }
}

fn start_collector(
    tier: Tier,
    disk: &ModelDisk,
    run: u64,
) -> (Collector<ModelDisk>, Option<LogWriter<ModelDisk>>) {
    if tier != Tier::Local {
        let state = CollectorState::default();
        return (Collector::new(settings(tier), 100 + run, &state, None), None);
    }
    let opened = open(disk.clone(), 77, &[]).unwrap();
    assert_eq!(opened.findings.damage, []);
    let writer = opened.writer;
    let (epoch, range) = (writer.epoch(), writer.durable_range());
    let state = recover(disk.clone(), epoch, &opened.snapshot, range)
        .unwrap()
        .after_restart(SHARDS, &opened.findings);
    let log = Some(CollectorLog { storage: disk.clone(), range });
    (Collector::new(settings(tier), epoch, &state, log), Some(writer))
}

fn start_head(disk: &ModelDisk, run: u64) -> (Head, LogWriter<ModelDisk>) {
    let opened = open(disk.clone(), 55, &[]).unwrap();
    assert_eq!(opened.findings.damage, []);
    let writer = opened.writer;
    let range = writer.durable_range();
    let state = HeadState::recover(disk.clone(), writer.epoch(), &opened.snapshot, range).unwrap();
    let settings = HeadSettings {
        collectors: Vec::new(),
        window: 10_000,
        backlog: u64::MAX,
        segment: 5_000,
        replies: false,
        meters: METERS_MAX,
    };
    (Head::new(settings, 1_000 + run, state, range.end), writer)
}

impl World {
    pub(super) fn new(tier: Tier) -> Self {
        let (collector_disk, head_disk) = (ModelDisk::default(), ModelDisk::default());
        let (collector, collector_log) = start_collector(tier, &collector_disk, 0);
        let (head, head_log) = start_head(&head_disk, 0);
        Self {
            tier,
            collector_disk,
            head_disk,
            collector,
            collector_log,
            head,
            head_log,
            links: BTreeMap::new(),
            meters: Vec::new(),
            known: BTreeMap::new(),
            runs: 0,
            next_link: 0,
            ungrouped: 0,
        }
    }

    /// Notes that a record of this size follows.
    fn note_record(&mut self, bytes: u64) {
        if self.ungrouped > GROUP {
            self.commit_collector();
        }
        self.ungrouped += bytes;
    }

    pub(super) fn open_meter(&mut self) {
        self.note_record(OPEN);
        let identity = Identity { listener: "meters", ..Identity::default() };
        let id = self.collector.open_meter(identity, MessageFraming::Stream);
        self.meters.push(id);
        self.known.insert((self.collector.epoch(), id.number), Known::default());
    }

    pub(super) fn send(&mut self, meter: usize, length: u64) {
        let Some(&id) = self.meters.get(meter) else { return };
        let Some(status) = self.collector.status(id) else { return };
        let length = length.min(self.collector.acceptable(id));
        self.note_record(length);
        let bytes: Vec<u8> = (status.received..status.received + length)
            .map(|offset| byte_at(id.number, offset))
            .collect();
        self.collector.handle_data(id, &bytes).unwrap();
    }

    pub(super) fn fin(&mut self, meter: usize) {
        if let Some(&id) = self.meters.get(meter) {
            self.collector.handle_fin(id);
        }
    }

    pub(super) fn reset(&mut self, meter: usize) {
        if meter < self.meters.len() {
            let id = self.meters.remove(meter);
            self.collector.handle_reset(id, ResetCause::Meter);
        }
    }

    /// The collector writes a group; `durable`: fdatasync returns.
    pub(super) fn commit_collector(&mut self) {
        self.ungrouped = 0;
        if let Some(group) = self.collector.poll_group() {
            let log = self.collector_log.as_mut().unwrap();
            if let Some(snapshot) = &group.snapshot {
                log.roll(snapshot).unwrap();
            }
            log.append(&group.payload).unwrap();
            let end = log.commit().unwrap();
            self.collector.handle_written(end);
        }
        self.observe();
    }

    pub(super) fn commit_head(&mut self) {
        if let Some(group) = self.head.poll_group() {
            if let Some(snapshot) = &group.snapshot {
                self.head_log.roll(snapshot).unwrap();
            }
            self.head_log.append(&group.payload).unwrap();
            let end = self.head_log.commit().unwrap();
            self.head.handle_written(end);
        }
        self.head_output();
    }

    fn head_output(&mut self) {
        while let Some((number, bytes)) = self.head.poll_output() {
            if let Some(link) = self.links.values_mut().find(|link| link.number == number) {
                link.down.extend(bytes);
            }
        }
    }

    pub(super) fn trim_collector(&mut self) {
        let position = self.collector.confirmed_position();
        if let Some(log) = &mut self.collector_log {
            log.trim(position).unwrap();
        }
    }

    pub(super) fn connect(&mut self, shard: u16) {
        self.disconnect(shard);
        self.next_link += 1;
        let mut link = Link { number: self.next_link, ..Link::default() };
        self.head.handle_connected(link.number);
        self.collector.handle_connected(shard, &mut link.up);
        self.links.insert(shard, link);
    }

    pub(super) fn disconnect(&mut self, shard: u16) {
        if let Some(link) = self.links.remove(&shard) {
            self.collector.handle_disconnected(shard);
            self.head.handle_disconnected(link.number);
        }
    }

    /// The server of a meter has closed its direction, perhaps while data and FIN of the meter wait
    /// in its socket. Returns whether FIN is sent to the meter.
    pub(super) fn server_closes(&mut self, meter: usize, is_closing: bool) -> bool {
        let id = self.meters[meter];
        if is_closing {
            self.collector.handle_closing(id);
        }
        let frame = Frame::Close { meter: id.number, close: Close::Fin { offset: 0 } };
        let shard = self.collector.shard(id).unwrap();
        self.collector.handle_frame(shard, &frame, &mut Vec::new()).unwrap();
        self.collector.poll_event() == Some(Event::SendFin(id))
    }

    /// Moves at most `length` bytes from the collector to the head.
    pub(super) fn transfer_up(&mut self, shard: u16, length: usize) {
        let Some(link) = self.links.get_mut(&shard) else { return };
        while link.up.len() < length && self.collector.fill(shard, &mut link.up).unwrap() {}
        let moved: Vec<u8> = link.up.drain(..length.min(link.up.len())).collect();
        link.to_head.push(&moved);
        while let Some(frame) = link.to_head.next_frame().unwrap() {
            self.head.handle_frame(link.number, &frame).unwrap();
        }
        self.head_output();
    }

    pub(super) fn transfer_down(&mut self, shard: u16, length: usize) {
        let Some(link) = self.links.get_mut(&shard) else { return };
        let moved: Vec<u8> = link.down.drain(..length.min(link.down.len())).collect();
        link.to_collector.push(&moved);
        while let Some(frame) = link.to_collector.next_frame().unwrap() {
            self.collector.handle_frame(shard, &frame, &mut link.up).unwrap();
        }
        self.observe();
    }

    /// Notes what the collector has reported as stored.
    fn observe(&mut self) {
        let epoch = self.collector.epoch();
        for status in self.collector.meters() {
            let known = self.known.get_mut(&(epoch, status.number)).unwrap();
            assert!(status.durable >= known.durable && status.durable <= status.received);
            known.durable = status.durable;
        }
        let mut at_risk = 0;
        for status in self.collector.meters() {
            at_risk += status.received - status.durable;
        }
        assert_eq!(at_risk, self.collector.bytes_at_risk());
        while let Some(event) = self.collector.poll_event() {
            if let Event::Close(id) = event {
                self.known.get_mut(&(epoch, id.number)).unwrap().is_closed = true;
                self.meters.retain(|meter| *meter != id);
            }
        }
    }

    pub(super) fn kill_collector(&mut self, power: Option<u64>) {
        (0..SHARDS).for_each(|shard| self.disconnect(shard));
        lose(&self.collector_disk, power);
        self.runs += 1;
        (self.collector, self.collector_log) =
            start_collector(self.tier, &self.collector_disk, self.runs);
        self.meters.clear();
    }

    pub(super) fn kill_head(&mut self, power: Option<u64>) {
        (0..SHARDS).for_each(|shard| self.disconnect(shard));
        lose(&self.head_disk, power);
        self.runs += 1;
        (self.head, self.head_log) = start_head(&self.head_disk, self.runs);
    }

    /// The head's log: disk, epoch, and position after the last durable entry.
    pub(super) fn head_log(&self) -> (ModelDisk, u64, u64) {
        (self.head_disk.clone(), self.head_log.epoch(), self.head_log.committed().position())
    }

    /// Lets everything arrive.
    pub(super) fn deliver_all(&mut self) {
        (0..SHARDS).for_each(|shard| self.connect(shard));
        for _ in 0..200 {
            self.commit_collector();
            for shard in 0..SHARDS {
                self.transfer_up(shard, 100_000);
                self.transfer_down(shard, 100_000);
            }
            self.commit_head();
        }
        assert_eq!(self.collector.bytes_at_risk(), 0, "everything is stored in the end");
        self.trim_collector();
    }

    /// Checks what the head delivers: every record once and in order, every meter's bytes without a
    /// gap, and everything that was reported as stored.
    pub(super) fn check(&self) {
        let (epoch, end) = (self.head_log.epoch(), self.head_log.committed().position());
        let mut deliveries = Deliveries::new(self.head_disk.clone(), epoch, &[], 0);
        let mut sequences: BTreeMap<(u64, u16), u64> = BTreeMap::new();
        let mut received: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut ended: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut resets: BTreeSet<(u64, u64)> = BTreeSet::new();
        let mut observe = |delivery: super::super::Delivery<'_>| {
            assert_eq!(delivery.collector, "collector");
            assert!(json_of(&delivery).is_some(), "consumers receive {delivery:?}");
            let (shard, sequence) = delivery.number;
            let last = sequences.insert((delivery.epoch, shard), sequence);
            // Resets that follow from one restart share its number.
            let is_reset = matches!(delivery.record, Record::Reset { .. });
            assert!(last.is_none_or(|last| last < sequence || is_reset && last == sequence));
            let Some(meter) = delivery.record.meter() else { return };
            let key = (delivery.epoch, meter);
            match delivery.record {
                Record::Open { .. } => assert_eq!(received.insert(key, 0), None),
                Record::Data { offset, bytes, .. } => {
                    assert_eq!(delivery.identity.listener, "meters");
                    let next = received.get_mut(&key).unwrap();
                    assert_eq!(*next, offset, "meter {meter}");
                    for byte in bytes {
                        assert_eq!(*byte, byte_at(meter, *next));
                        *next += 1;
                    }
                    assert!(!ended.contains_key(&key));
                }
                Record::Eof { offset, .. } => {
                    assert_eq!(received[&key], offset);
                    assert_eq!(ended.insert(key, offset), None);
                }
                Record::Reset { .. } => assert!(resets.insert(key)),
                Record::Restart { .. } => panic!("restarts are resets of meters"),
                Record::Gap { .. } => panic!("no record is lost"),
            }
        };
        while deliveries.next(end, &mut observe).unwrap() {}
        let epoch = self.collector.epoch();
        for (key, length) in &received {
            let is_open = key.0 == epoch && self.collector.find(key.1).is_some();
            let has_ended = ended.contains_key(key) || resets.contains(key);
            assert!(is_open || has_ended, "{key:?}: {length} bytes without an end");
        }
        if self.tier == Tier::Memory {
            return;
        }
        for (key, known) in &self.known {
            let delivered = received.get(key).copied().unwrap_or(0);
            assert!(delivered >= known.durable, "{key:?}: {known:?}, delivered {delivered}");
            assert!(!known.is_closed || ended.contains_key(key), "{key:?}: {known:?}");
        }
    }
}

fn lose(disk: &ModelDisk, power: Option<u64>) {
    if let Some(mut bits) = power {
        disk.lose_power(|| {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            bits >> 63 == 1
        });
    }
}
