//! Times at which sources of bulk data are read although the kernel does not report them.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use super::Loop;
use crate::split::Leg;

/// The times in their order: all sources wait for the same time.
#[derive(Debug, Default)]
pub(super) struct Checks(VecDeque<Check>);

#[derive(Debug, Clone, Copy)]
struct Check {
    at: Instant,
    row: u32,
    /// Number of the session in the row.
    number: u32,
    leg: Leg,
}

impl Checks {
    pub(super) fn add(&mut self, at: Instant, row: u32, number: u32, leg: Leg) {
        self.0.push_back(Check { at, row, number, leg });
    }

    /// When the first source must be read.
    pub(super) fn deadline(&self) -> Instant {
        self.0.front().map_or(Instant::NEVER, |check| check.at)
    }
}

impl Loop {
    /// Serves sources from which less than expected has arrived in time. Checks of sources that were served meanwhile are removed.
    pub(super) fn check_slow_sources(&mut self, now: Instant) {
        while let Some(check) = self.checks.0.front().copied() {
            let Check { at, row, number, leg } = check;
            let connection = self.connections.get_mut(row as usize).and_then(Option::as_mut);
            let connection =
                connection.filter(|it| it.number == number && it.awaits_check(leg, at));
            if connection.is_some() && at > now {
                return;
            }
            self.checks.0.pop_front();
            let Some(connection) = connection else { continue };
            connection.handle_slow_source(leg);
            if !connection.is_queued {
                connection.is_queued = true;
                self.ready.push_back(row);
            }
        }
    }
}
