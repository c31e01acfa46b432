//! Logs of which any batches are lost by damage.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::HeadState;
use super::super::log_item::Item;
use crate::protocol::{Batch, BatchBuilder, Identity, Record, ResetCause};

const EPOCH: u64 = 7;
const METERS: u64 = 3;

/// A batch of one record.
fn batch(sequence: u64, record: &Record<'_>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(EPOCH, 0, sequence);
    builder.push(record);
    let mut bytes = Vec::new();
    builder.finish(&mut bytes);
    bytes
}

/// The streams of all meters: each is opened, has data of these lengths in turn, and ends.
fn records(pieces: &[(u64, usize)]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let push = |all: &mut Vec<Vec<u8>>, record| all.push(batch(all.len() as u64, &record));
    for meter in 0..METERS {
        push(&mut all, Record::Open { meter, identity: Identity::default() });
    }
    let mut lengths = [0; METERS as usize];
    for &(meter, length) in pieces {
        let offset = lengths[meter as usize];
        let bytes = &[b'x'; 16][..length];
        push(&mut all, Record::Data { meter, offset, ends_message: false, bytes });
        lengths[meter as usize] += length as u64;
    }
    for meter in 0..METERS {
        push(&mut all, Record::Eof { meter, offset: lengths[meter as usize] });
    }
    all
}

proptest! {
    /// FIN states that everything was delivered. So a stream of which a record is lost ends with a
    /// reset, and any other with FIN.
    #[test]
    fn a_stream_with_a_gap_ends_with_a_reset(
        pieces in prop::collection::vec((0..METERS, 1..16_usize), 0..20),
        lost in prop::collection::btree_set(0..26_usize, 0..4),
    ) {
        let all = records(&pieces);
        let mut state = HeadState::default();
        let mut ends = BTreeMap::new();
        let kept = all.iter().enumerate().filter(|(at, _)| !lost.contains(at));
        for (_, bytes) in kept {
            let item = Item::Batch(Batch::read(bytes).unwrap().unwrap());
            state.apply(&item, |observed, _| match observed.record {
                Record::Eof { meter, .. } => { ends.insert(meter, None); }
                Record::Reset { meter, cause } => { ends.insert(meter, Some(cause)); }
                _ => {}
            });
        }
        let meter_of = |at: &usize| {
            let batch = Batch::read(all.get(*at)?).unwrap().unwrap();
            batch.records().next()?.unwrap().1.meter()
        };
        let incomplete: BTreeSet<u64> = lost.iter().filter_map(meter_of).collect();
        for meter in 0..METERS {
            let is_end_lost = lost.contains(&(all.len() - METERS as usize + meter as usize));
            let expected = incomplete.contains(&meter).then_some(ResetCause::Damage);
            prop_assert_eq!(ends.get(&meter).copied(), (!is_end_lost).then_some(expected));
        }
    }
}
