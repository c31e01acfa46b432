//! Limits of what a collector can make a head keep.

use gridhaul_core::coverage_mark::covers;

use super::super::admission::COLLECTORS_MAX;
use super::super::{Head, HeadError, HeadSettings, HeadState};
use super::hello;
use crate::log::Durable;
use crate::protocol::{BatchBuilder, Frame, Identity, Record};

const EPOCH: u64 = 7;

fn head() -> Head {
    let mut head = new(&[]);
    head.handle_connected(1);
    head.handle_frame(1, &Frame::Hello(hello("collector", EPOCH))).unwrap();
    head
}

fn new(collectors: &[&str]) -> Head {
    let settings = HeadSettings {
        collectors: collectors.iter().map(ToString::to_string).collect(),
        window: 100_000,
        backlog: u64::MAX,
        segment: 1_000_000,
        replies: false,
        meters: 3,
    };
    Head::new(settings, 1, HeadState::default(), Durable::assumed(0))
}

fn batch(first: u64, records: &[Record<'_>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(EPOCH, 0, first);
    for record in records {
        builder.push(record);
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

#[test]
fn a_collector_has_a_limit_of_open_meters() {
    covers!(head_limits_open_meters);
    let mut head = head();
    let open = |meter| Record::Open { meter, identity: Identity::default() };
    let mut send =
        |first, records: &[Record<'_>]| head.handle_frame(1, &Frame::Batch(&batch(first, records)));
    send(0, &[open(0), open(1), open(2)]).unwrap();
    assert_eq!(send(3, &[open(3)]), Err(HeadError::TooManyMeters { limit: 3 }));
    // Batches that are retransmitted do not count, and meters that have ended make space.
    send(0, &[open(0), open(1), open(2)]).unwrap();
    send(3, &[Record::Eof { meter: 0, offset: 0 }]).unwrap();
    send(4, &[open(3)]).unwrap();
    assert_eq!(head.state().meter_count(), 3);
}

#[test]
fn strangers_cannot_state_any_number_of_names() {
    let connect = |head: &mut Head, name: &str, number: u32| {
        head.handle_connected(number);
        let done = head.handle_frame(number, &Frame::Hello(hello(name, u64::from(number))));
        head.handle_disconnected(number);
        done
    };
    let mut head = new(&[]);
    let limit = COLLECTORS_MAX as u32;
    for number in 0..limit {
        connect(&mut head, &format!("collector-{number}"), number).unwrap();
    }
    let refused = connect(&mut head, "one-more", limit).unwrap_err().to_string();
    assert!(refused.contains("head.collectors"), "{refused}");
    connect(&mut head, "collector-7", limit + 1).unwrap();
}

#[test]
fn a_superseded_connection_that_has_ended_does_not_end_a_later_one_with_its_number() {
    let mut head = head();
    head.handle_connected(2);
    head.handle_frame(2, &Frame::Hello(hello("collector", EPOCH))).unwrap();
    head.handle_disconnected(1);
    head.handle_connected(1);
    assert_eq!(head.poll_superseded(), None);
}
