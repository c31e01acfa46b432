//! Times at which connections need attention.

use std::collections::BTreeSet;

use gridhaul_scenario::units::Instant;

/// One timer for each row of the table of connections.
#[derive(Debug, Default)]
pub(super) struct Timers {
    due: BTreeSet<(Instant, u32)>,
}

impl Timers {
    /// Moves the timer of a row, which `set` contains; [`Instant::NEVER`] is no timer.
    pub(super) fn set(&mut self, row: u32, set: &mut Instant, at: Instant) {
        if *set == at {
            return;
        }
        self.due.remove(&(*set, row));
        *set = at;
        if at != Instant::NEVER {
            self.due.insert((at, row));
        }
    }

    /// The next row whose timer has expired. The timer is removed.
    pub(super) fn poll(&mut self, now: Instant) -> Option<u32> {
        let first = *self.due.first().filter(|(at, _)| *at <= now)?;
        self.due.remove(&first);
        Some(first.1)
    }

    /// When the first timer expires.
    pub(super) fn deadline(&self) -> Instant {
        self.due.first().map_or(Instant::NEVER, |(at, _)| *at)
    }
}
