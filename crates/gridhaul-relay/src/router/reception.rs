//! Probes that have arrived over a link.

use gridhaul_scenario::units::Instant;

use super::probe::{AGE_MAX, LastProbe};

/// Probes of the present session of the peer that have arrived over a link.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reception {
    last: Option<(u32, Instant)>,
    count: u32,
}

impl Reception {
    /// A probe has arrived. A copy of the last one, which a network may create, does not count.
    pub(super) fn receive(&mut self, now: Instant, number: u32) {
        if self.last.is_none_or(|(last, _)| last != number) {
            self.count = self.count.wrapping_add(1);
            self.last = Some((number, now));
        }
    }

    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn last(&self, now: Instant) -> Option<LastProbe> {
        self.last.map(|(number, at)| LastProbe { number, age: now.since(at).min(AGE_MAX) })
    }
}
