//! The progress of a direction over time, in a fixed amount of memory.

use gridhaul_scenario::units::{Duration, Instant};

use crate::Limit;

/// The state of a direction after an acknowledgement of new data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Checkpoint {
    pub(crate) at: Instant,
    /// Acknowledged bytes.
    pub(crate) bytes: u64,
    pub(crate) retransmissions: u64,
    /// Time of each limit until then, in the order of [`Limit::ALL`].
    pub(crate) limits: [Duration; Limit::ALL.len()],
}

/// The progress of a direction: acknowledged bytes and the time of each limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct History {
    /// Position of the first byte.
    origin: u64,
    checkpoints: Vec<Checkpoint>,
    /// The last acknowledgement, if it is not among the checkpoints.
    last: Option<Checkpoint>,
    /// Acknowledgements for each checkpoint that is kept, less one.
    skipped_each: u64,
    skipped: u64,
}

/// Largest number of checkpoints. Of more, every second one is dropped: a thousandth of a transfer
/// cannot be seen in a chart.
const CHECKPOINTS_MAX: usize = 1_024;

impl History {
    /// Begins with the first data.
    pub(crate) fn begin(&mut self, at: Instant, origin: u64) {
        self.origin = origin;
        let limits = [Duration::ZERO; Limit::ALL.len()];
        self.checkpoints.push(Checkpoint { at, bytes: 0, retransmissions: 0, limits });
    }

    /// Adds an acknowledgement of the bytes before a position; `checkpoint` has the other numbers.
    pub(crate) fn add(&mut self, position: u64, checkpoint: Checkpoint) {
        let bytes = position.saturating_sub(self.origin);
        let checkpoint = Checkpoint { bytes, ..checkpoint };
        if self.skipped < self.skipped_each {
            self.skipped += 1;
            self.last = Some(checkpoint);
            return;
        }
        self.skipped = 0;
        self.last = None;
        if self.checkpoints.len() == CHECKPOINTS_MAX {
            let mut index = 0;
            self.checkpoints.retain(|_| {
                index += 1;
                // The first one has the beginning.
                index % 2 == 1
            });
            self.skipped_each = 2 * self.skipped_each + 1;
        }
        self.checkpoints.push(checkpoint);
    }

    /// The checkpoints in the order of time.
    pub(crate) fn checkpoints(&self) -> impl Iterator<Item = &Checkpoint> {
        self.checkpoints.iter().chain(&self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_history_keeps_its_ends_in_a_fixed_amount_of_memory() {
        let mut history = History::default();
        history.begin(Instant::ZERO, 500);
        for number in 1..=100_000_u64 {
            let checkpoint = Checkpoint {
                at: Instant::from_nanos(number),
                bytes: 0,
                retransmissions: number,
                limits: [Duration::ZERO; Limit::ALL.len()],
            };
            history.add(500 + 10 * number, checkpoint);
        }
        let all: Vec<_> = history.checkpoints().collect();
        assert!((CHECKPOINTS_MAX / 2..=CHECKPOINTS_MAX + 1).contains(&all.len()), "{}", all.len());
        assert!(all.is_sorted_by_key(|checkpoint| checkpoint.at));
        assert_eq!((all[0].at, all[0].bytes), (Instant::ZERO, 0));
        let last = all[all.len() - 1];
        assert_eq!((last.at, last.bytes), (Instant::from_nanos(100_000), 1_000_000));
    }
}
