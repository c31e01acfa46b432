//! Credit of many collectors while the log has a limit.

use std::collections::BTreeMap;

use gridhaul_core::coverage_mark::covers;

use super::super::{Head, HeadSettings, HeadState};
use super::hello;
use crate::log::Durable;
use crate::protocol::{BatchBuilder, FRAME_MAX, Frame, FrameReader, Identity, Record};

const WINDOW: u64 = 4 << 20;
const LIMIT: u64 = 4_000_000;
const COLLECTORS: u32 = 16;

/// Bytes of the data of a batch.
const BATCH: usize = 200_000;

/// A head with collectors that send whatever they may.
struct Fixture {
    head: Head,
    log_end: u64,
    delivered: u64,
    /// Credit, bytes sent and sequence number by connection.
    collectors: BTreeMap<u32, (u64, u64, u64)>,
}

impl Fixture {
    fn new() -> Self {
        let settings = HeadSettings {
            collectors: Vec::new(),
            window: WINDOW,
            backlog: LIMIT,
            segment: 1 << 30,
            replies: false,
            meters: 100,
        };
        let head = Head::new(settings, 1, HeadState::default(), Durable::assumed(0));
        let mut fixture = Self { head, log_end: 0, delivered: 0, collectors: BTreeMap::new() };
        for number in 0..COLLECTORS {
            fixture.collectors.insert(number, (0, 0, 0));
            fixture.head.handle_connected(number);
            let name = format!("collector-{number}");
            let hello = hello(&name, u64::from(number) + 1);
            fixture.head.handle_frame(number, &Frame::Hello(hello)).unwrap();
        }
        fixture.read();
        fixture
    }

    /// Reads the credits.
    fn read(&mut self) {
        while let Some((number, bytes)) = self.head.poll_output() {
            let credit = &mut self.collectors.get_mut(&number).unwrap().0;
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Some(frame) = reader.next_frame().unwrap() {
                match frame {
                    Frame::Welcome(welcome) => *credit = welcome.credit,
                    Frame::Credit { limit } => *credit = limit,
                    _ => {}
                }
            }
        }
    }

    /// The collectors from `first` on send what their credit permits, and it becomes durable.
    fn send(&mut self, first: u32) {
        for (number, (credit, sent, sequence)) in self.collectors.range_mut(first..) {
            loop {
                let mut builder = BatchBuilder::new(u64::from(*number) + 1, 0, *sequence);
                let bytes = vec![0; BATCH];
                builder.push(&match *sequence {
                    0 => Record::Open { meter: 0, identity: Identity::default() },
                    next => Record::Data {
                        meter: 0,
                        offset: (next - 1) * BATCH as u64,
                        ends_message: true,
                        bytes: &bytes,
                    },
                });
                let mut batch = Vec::new();
                builder.finish(&mut batch);
                if *sent + batch.len() as u64 > *credit {
                    break;
                }
                *sent += batch.len() as u64;
                *sequence += 1;
                self.head.handle_frame(*number, &Frame::Batch(&batch)).unwrap();
            }
        }
        while let Some(group) = self.head.poll_group() {
            self.log_end += group.payload.len() as u64;
            self.head.handle_written(Durable::assumed(self.log_end));
        }
        self.read();
    }

    /// Sends until no collector may, while nothing is delivered.
    fn fill(&mut self, first: u32) {
        let mut before = None;
        while before != Some(self.log_end) {
            before = Some(self.log_end);
            self.send(first);
        }
    }

    fn deliver(&mut self, bytes: u64) {
        self.delivered = (self.delivered + bytes).min(self.log_end);
        self.head.handle_delivered(self.delivered);
        self.read();
    }
}

/// Each collector had a whole window while the log was below its limit: 63 MB with a limit of 4 MB.
#[test]
fn the_limit_of_the_log_holds_for_all_collectors_together() {
    covers!(head_shares_the_free_log_among_its_collectors);
    let mut fixture = Fixture::new();
    let largest = LIMIT + u64::from(COLLECTORS) * FRAME_MAX as u64 + 100_000;
    for _ in 0..50 {
        fixture.fill(0);
        let undelivered = fixture.log_end - fixture.delivered;
        assert!((LIMIT..=largest).contains(&undelivered), "{undelivered} of {largest}");
        fixture.deliver(3_000_000);
    }
}

/// The others hold a credit and do not use it.
#[test]
fn a_collector_continues_whatever_the_others_have_to_send() {
    let mut fixture = Fixture::new();
    fixture.fill(COLLECTORS - 1);
    for _ in 0..50 {
        let before = fixture.log_end;
        let undelivered = fixture.log_end - fixture.delivered;
        fixture.deliver(undelivered);
        fixture.fill(COLLECTORS - 1);
        assert!(fixture.log_end > before + LIMIT / 2, "{before}, then {}", fixture.log_end);
    }
    // The others continue when they have something to send.
    let before: Vec<_> = fixture.collectors.values().map(|(_, sent, _)| *sent).collect();
    for _ in 0..50 {
        fixture.fill(0);
        fixture.deliver(1_000_000);
    }
    let after = fixture.collectors.values().map(|(_, sent, _)| *sent);
    assert!(after.zip(before).all(|(after, before)| after > before + 2 * BATCH as u64));
}
