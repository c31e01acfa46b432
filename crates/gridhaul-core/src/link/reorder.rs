//! Packets that are held back so that later ones overtake them.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Duration;

use super::LinkRandomStreams;
use crate::random::BernoulliTrial;

/// Chooses the packets that are held back.
#[derive(Debug, Clone)]
pub(super) struct Reorder {
    trial: BernoulliTrial,
    delay: Duration,
}

impl Reorder {
    /// Reordering with its own stream of chance.
    pub(super) fn new(reorder: &scenario::Reorder, random: LinkRandomStreams) -> Self {
        Self {
            trial: BernoulliTrial::new(reorder.probability, random.stream("reorder")),
            delay: reorder.delay,
        }
    }

    /// For how long the next packet is held back; `None`: not at all.
    pub(super) fn hold_back(&mut self) -> Option<Duration> {
        self.trial.sample().then_some(self.delay)
    }
}
