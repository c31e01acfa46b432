//! Lost records, from the sequence numbers of a shard.

use super::batch::Batch;
use super::record::{PreviousRecords, Record};

/// Sequence numbers continue at the next multiple of this after a restart of a collector. So no
/// number is used twice, even if the end of the log was lost after its records had been sent.
pub(crate) const RESTART_STEP: u64 = 1 << 40;

/// Records that are missing before a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LostRecords {
    /// Number of records; `None` if it is unknown.
    pub count: Option<u64>,
}

/// Records between `expected`, the next sequence number of a shard, and a batch. After a restart of
/// the collector, the numbers jump without a loss if the earlier ones end at `expected`, which the
/// record of the restart states.
pub(crate) fn lost_before(expected: u64, batch: &Batch<'_>) -> Option<LostRecords> {
    let run = |sequence: u64| sequence / RESTART_STEP;
    let first = batch.first;
    if first <= expected {
        return None;
    }
    if run(first) == run(expected) {
        return Some(LostRecords { count: Some(first - expected) });
    }
    match batch.records().next() {
        Some(Ok((_, Record::Restart { previous, .. }))) => match previous {
            PreviousRecords::Unstated => None,
            PreviousRecords::Unknown => Some(LostRecords { count: None }),
            PreviousRecords::EndAt(end) if end <= expected => None,
            PreviousRecords::EndAt(end) => {
                let count = (run(end) == run(expected)).then(|| end - expected);
                Some(LostRecords { count })
            }
        },
        // The record of the restart is lost, and others with it.
        _ => Some(LostRecords { count: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Identity};
    use super::*;

    /// The loss before a batch with this record.
    fn loss(expected: u64, first: u64, record: &Record<'_>) -> Option<Option<u64>> {
        let mut builder = BatchBuilder::new(7, 0, first);
        builder.push(record);
        let mut bytes = Vec::new();
        builder.finish(&mut bytes);
        let batch = Batch::read(&bytes).unwrap().unwrap();
        lost_before(expected, &batch).map(|lost| lost.count)
    }

    #[test]
    fn a_jump_within_a_run_is_a_loss_of_as_many_records() {
        let open = Record::Open { meter: 1, identity: Identity::default() };
        assert_eq!(loss(100, 100, &open), None);
        assert_eq!(loss(100, 90, &open), None, "known records");
        assert_eq!(loss(100, 450, &open), Some(Some(350)));
        assert_eq!(loss(100, RESTART_STEP + 4, &open), Some(None), "the restart is lost as well");
    }

    #[test]
    fn a_jump_of_a_restart_is_a_loss_if_earlier_records_do_not_end_there() {
        let restart = |previous| Record::Restart { first_meter: 1, previous };
        let at = |end| restart(PreviousRecords::EndAt(end));
        assert_eq!(loss(100, RESTART_STEP, &at(100)), None);
        assert_eq!(loss(100, RESTART_STEP, &at(130)), Some(Some(30)));
        assert_eq!(loss(100, 2 * RESTART_STEP, &at(RESTART_STEP + 1)), Some(None));
        assert_eq!(loss(100, RESTART_STEP, &restart(PreviousRecords::Unknown)), Some(None));
        let unstated = restart(PreviousRecords::Unstated);
        assert_eq!(loss(100, RESTART_STEP, &unstated), None, "nothing is known");
    }
}
