//! Records that follow from others: gaps in the sequence numbers, restarts of a collector, streams
//! of which data is lost.

use gridhaul_core::coverage_mark::covers;

use super::super::HeadState;
use super::super::log_item::Item;
use crate::protocol::{
    Batch, BatchBuilder, Identity, PreviousRecords, RESTART_STEP, Record, ResetCause,
};

const EPOCH: u64 = 7;

/// Applies a batch. Returns the records that are delivered, with their numbers.
fn apply(state: &mut HeadState, first: u64, records: &[Record<'_>]) -> Vec<(u64, String)> {
    let mut builder = BatchBuilder::new(EPOCH, 0, first);
    for record in records {
        builder.push(record);
    }
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    let mut delivered = Vec::new();
    state.apply(&Item::Batch(Batch::read(&bytes).unwrap().unwrap()), |observed, _| {
        delivered.push((observed.number.1, format!("{:?}", observed.record)));
    });
    delivered
}

fn text(number: u64, record: &Record<'_>) -> (u64, String) {
    (number, format!("{record:?}"))
}

fn open(meter: u64) -> Record<'static> {
    Record::Open { meter, identity: Identity::default() }
}

const fn data(offset: u64, bytes: &[u8]) -> Record<'_> {
    Record::Data { meter: 0, offset, ends_message: false, bytes }
}

#[test]
fn missing_records_are_a_gap_with_the_number_of_the_first_of_them() {
    covers!(head_jump_of_sequence_numbers_is_a_gap);
    let mut state = HeadState::default();
    apply(&mut state, 0, &[open(0)]);
    state.apply(&Item::Jump { epoch: EPOCH, shard: 0, next: 5 }, |_, _| {});
    let gap = Record::Gap { records: Some(4), bytes: None };
    assert_eq!(apply(&mut state, 5, &[open(1)]), [text(1, &gap), text(5, &open(1))]);
}

/// The connection after the first jump has ended before a batch.
#[test]
fn a_gap_begins_before_the_first_of_several_jumps() {
    covers!(head_gap_begins_before_the_first_jump);
    let mut state = HeadState::default();
    apply(&mut state, 0, &[open(0)]);
    for next in [5, 9] {
        state.apply(&Item::Jump { epoch: EPOCH, shard: 0, next }, |_, _| {});
        assert!(!state.is_complete());
    }
    let gap = Record::Gap { records: Some(8), bytes: None };
    assert_eq!(apply(&mut state, 9, &[open(1)])[0], text(1, &gap));
    assert!(state.is_complete());
}

#[test]
fn a_restart_of_the_collector_resets_the_meters_that_were_open() {
    covers!(head_restart_resets_open_meters);
    let mut state = HeadState::default();
    apply(&mut state, 0, &[open(0), open(1), Record::Eof { meter: 0, offset: 0 }]);
    let restart = Record::Restart { first_meter: 2, previous: PreviousRecords::EndAt(3) };
    let reset = Record::Reset { meter: 1, cause: ResetCause::Restart };
    let delivered = apply(&mut state, RESTART_STEP, &[restart, open(2)]);
    assert_eq!(delivered, [text(RESTART_STEP, &reset), text(RESTART_STEP + 1, &open(2))]);
    assert_eq!(state.meter_count(), 1);
}

/// FIN would state that the server has everything.
#[test]
fn the_end_of_a_stream_of_which_data_is_missing_is_a_reset() {
    covers!(head_end_of_a_stream_with_a_gap_is_a_reset);
    let end = |second: u64| {
        let mut state = HeadState::default();
        let eof = Record::Eof { meter: 0, offset: second + 3 };
        let records = [open(0), data(0, b"abc"), data(second, b"def"), eof];
        apply(&mut state, 0, &records).pop()
    };
    assert_eq!(end(3), Some(text(3, &Record::Eof { meter: 0, offset: 6 })));
    let reset = Record::Reset { meter: 0, cause: ResetCause::Damage };
    assert_eq!(end(6), Some(text(3, &reset)));
}
