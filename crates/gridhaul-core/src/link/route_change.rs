//! Route changes: a delay that alternates between two values.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

/// The additional delay of the second route, as a function of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteChange {
    every: Duration,
    delay: Duration,
}

impl RouteChange {
    /// The routes of a direction; the first one is in use at the start.
    pub(super) const fn new(keys: &scenario::RouteChange) -> Self {
        Self { every: keys.every, delay: keys.delay }
    }

    /// The additional delay of a packet that leaves the transmitter at this time.
    pub(super) fn addition(&self, at: Instant) -> Duration {
        let period = at.as_nanos() / self.every.as_nanos().max(1);
        if period.is_multiple_of(2) { Duration::ZERO } else { self.delay }
    }
}
