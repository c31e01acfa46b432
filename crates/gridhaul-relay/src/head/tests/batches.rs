//! Batches and connections of collectors: sequence numbers, credit, and when the head answers.

use gridhaul_core::coverage_mark::covers;

use super::super::log_item::{Item, items};
use super::super::{Head, HeadError, HeadSettings, HeadState};
use super::hello;
use crate::log::{Durable, Group};
use crate::protocol::{BatchBuilder, Frame, FrameReader, Identity, Record};

const EPOCH: u64 = 7;
const WINDOW: u64 = 1_000;

/// A head with the connection 1 of a collector, and the end of its log.
struct Fixture {
    head: Head,
    log_end: u64,
}

impl Fixture {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut HeadSettings)) -> Self {
        let mut settings = HeadSettings {
            collectors: Vec::new(),
            window: WINDOW,
            backlog: u64::MAX,
            segment: 1_000_000,
            replies: false,
            meters: 100,
        };
        change(&mut settings);
        let head = Head::new(settings, 1, HeadState::default(), Durable::assumed(0));
        let mut fixture = Self { head, log_end: 0 };
        fixture.connect(1, EPOCH).unwrap();
        fixture
    }

    /// The collector connects with a log of this epoch. Returns the answer.
    fn connect(&mut self, number: u32, epoch: u64) -> Result<Vec<String>, HeadError> {
        self.head.handle_connected(number);
        self.head.handle_frame(number, &Frame::Hello(hello("collector", epoch)))?;
        Ok(self.answers())
    }

    /// A batch of records arrives, of which the first has the number `first`.
    fn send(&mut self, number: u32, first: u64, records: &[Record<'_>]) -> Result<(), HeadError> {
        self.head.handle_frame(number, &Frame::Batch(&batch(first, records)))
    }

    /// Makes the next group durable, and returns it.
    fn commit(&mut self) -> Group {
        let group = self.head.poll_group().expect("something to write");
        self.log_end += group.payload.len() as u64;
        self.head.handle_written(Durable::assumed(self.log_end));
        group
    }

    /// Frames for the collector since the last call.
    fn answers(&mut self) -> Vec<String> {
        let mut answers = Vec::new();
        while let Some((_, bytes)) = self.head.poll_output() {
            let mut reader = FrameReader::default();
            reader.push(&bytes);
            while let Some(frame) = reader.next_frame().unwrap() {
                answers.push(match frame {
                    Frame::Welcome(welcome) => {
                        format!("welcome: next {}, credit {}", welcome.next.get(), welcome.credit)
                    }
                    Frame::Ack { next } => format!("ack {}", next.get()),
                    Frame::Credit { limit } => format!("credit {limit}"),
                    other => format!("{other:?}"),
                });
            }
        }
        answers
    }
}

const NOTHING: [&str; 0] = [];

fn batch(first: u64, records: &[Record<'_>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(EPOCH, 0, first);
    for record in records {
        builder.push(record);
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

fn open(meter: u64) -> Record<'static> {
    Record::Open { meter, identity: Identity::default() }
}

#[test]
fn records_are_acknowledged_when_they_are_durable_and_not_before() {
    covers!(head_acknowledges_after_the_commit);
    let mut fixture = Fixture::new();
    fixture.send(1, 0, &[open(0), open(1)]).unwrap();
    assert_eq!(fixture.answers(), NOTHING);
    let group = fixture.head.poll_group().unwrap();
    assert_eq!(fixture.head.poll_group(), None, "one group is written at a time");
    assert_eq!((fixture.answers(), fixture.head.durable(EPOCH, 0)), (vec![], 0));
    fixture.head.handle_written(Durable::assumed(group.payload.len() as u64));
    assert_eq!((fixture.answers(), fixture.head.durable(EPOCH, 0)), (vec!["ack 2".to_owned()], 2));
}

/// The connection was lost before the acknowledgement arrived.
#[test]
fn a_known_batch_is_acknowledged_again_and_not_written_again() {
    covers!(
        head_second_connection_of_a_shard_replaces_the_first,
        head_drops_a_known_batch,
        head_acknowledges_duplicates_without_writing
    );
    let mut fixture = Fixture::new();
    fixture.send(1, 0, &[open(0)]).unwrap();
    fixture.commit();
    fixture.answers();
    assert_eq!(fixture.connect(2, EPOCH).unwrap(), ["welcome: next 1, credit 1000"]);
    assert_eq!(fixture.head.poll_superseded(), Some(1), "the caller closes the old connection");
    fixture.head.handle_disconnected(1);
    fixture.send(2, 0, &[open(0)]).unwrap();
    assert_eq!(fixture.head.poll_group(), None, "nothing to write");
    assert_eq!((fixture.answers(), fixture.head.state().meter_count()), (vec!["ack 1".into()], 1));
}

#[test]
fn a_batch_after_a_gap_is_refused_unless_the_collector_has_stated_the_gap() {
    covers!(head_refuses_a_batch_after_a_gap);
    let mut fixture = Fixture::new();
    assert!(matches!(fixture.send(1, 5, &[open(0)]), Err(HeadError::Protocol(_))));
    let mut fixture = Fixture::new();
    fixture.head.handle_frame(1, &Frame::Resume { next: 5 }).unwrap();
    fixture.send(1, 5, &[open(0)]).unwrap();
    fixture.commit();
    assert_eq!(fixture.answers(), ["ack 6"]);
}

#[test]
fn a_batch_without_credit_is_refused() {
    covers!(head_refuses_a_batch_without_credit);
    let bytes = vec![0; WINDOW as usize];
    let data = Record::Data { meter: 0, offset: 0, ends_message: true, bytes: &bytes };
    let sent = Fixture::new().send(1, 0, &[open(0), data]);
    assert!(matches!(sent, Err(HeadError::Protocol(_))));
}

/// A sink that stops delivering stops the collectors, and through them the meters.
#[test]
fn undelivered_records_beyond_their_limit_end_the_credit() {
    covers!(head_grants_nothing_while_its_backlog_is_full);
    let mut fixture = Fixture::with(|settings| settings.backlog = 600);
    let bytes = [0; 700];
    let data = Record::Data { meter: 0, offset: 0, ends_message: true, bytes: &bytes };
    fixture.send(1, 0, &[open(0), data]).unwrap();
    fixture.commit();
    assert_eq!(fixture.answers(), ["ack 2"], "and no credit");
    assert_eq!(fixture.connect(2, EPOCH).unwrap(), ["welcome: next 2, credit 0"]);
    fixture.head.handle_disconnected(1);
    fixture.head.handle_delivered(fixture.log_end);
    assert_eq!(fixture.answers(), ["credit 1000"]);
}

/// Without the number before the jump, the loss would be unknown to a reader that begins with the
/// snapshot.
#[test]
fn a_segment_does_not_begin_between_a_jump_and_the_batch_after_it() {
    covers!(head_no_segment_between_jump_and_batch);
    let mut fixture = Fixture::with(|settings| settings.segment = 1);
    fixture.send(1, 0, &[open(0)]).unwrap();
    fixture.commit();
    fixture.head.handle_frame(1, &Frame::Resume { next: 5 }).unwrap();
    assert!(fixture.commit().snapshot.is_some(), "the jump begins a segment");
    fixture.send(1, 5, &[open(1)]).unwrap();
    assert!(fixture.commit().snapshot.is_none());
    fixture.send(1, 6, &[open(2)]).unwrap();
    assert!(fixture.commit().snapshot.is_some());
}

#[test]
fn a_new_log_of_a_collector_ends_the_meters_of_the_old_one() {
    covers!(head_new_epoch_ends_the_meters_of_the_old_one);
    let mut fixture = Fixture::new();
    fixture.send(1, 0, &[open(0)]).unwrap();
    fixture.commit();
    fixture.head.handle_disconnected(1);
    fixture.connect(2, EPOCH + 1).unwrap();
    assert_eq!(fixture.head.state().meter_count(), 0);
    let group = fixture.commit();
    let written: Vec<Item<'_>> = items(&group.payload).map(Result::unwrap).collect();
    let collector = "collector";
    assert_eq!(written, [Item::End { epoch: EPOCH }, Item::Source { epoch: EPOCH + 1, collector }]);
}

/// Each would end the streams of the other's meters.
#[test]
fn a_second_collector_with_the_name_of_a_connected_one_is_refused() {
    covers!(head_refuses_a_second_collector_with_the_name);
    let mut fixture = Fixture::new();
    let refused = fixture.connect(2, EPOCH + 1).unwrap_err().to_string();
    assert!(refused.contains("a name of its own"), "{refused}");
    assert_eq!(fixture.head.state().sources.len(), 1);
}
