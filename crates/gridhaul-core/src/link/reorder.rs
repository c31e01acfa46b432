//! Reordering: random packets get an extra delay, so that later packets overtake them.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Duration;

use super::LinkRandomStreams;
use crate::random::BernoulliTrial;

/// Selects the packets to be delayed.
#[derive(Debug, Clone)]
pub(super) struct Reorder {
    trial: BernoulliTrial,
    delay: Duration,
}

impl Reorder {
    /// Reordering with its own random stream.
    pub(super) fn new(reorder: &scenario::Reorder, random: LinkRandomStreams) -> Self {
        Self {
            trial: BernoulliTrial::new(reorder.probability, random.stream("reorder")),
            delay: reorder.delay,
        }
    }

    /// The extra delay of the next packet, if it is selected.
    pub(super) fn extra_delay(&mut self) -> Option<Duration> {
        self.trial.sample().then_some(self.delay)
    }
}
