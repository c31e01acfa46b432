//! Packets that are held back so that later ones overtake them.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Duration;

use super::LinkRandomStreams;
use crate::random::BernoulliTrial;

/// Chooses the packets that are held back.
#[derive(Debug, Clone)]
pub(super) struct Reorder {
    coin: BernoulliTrial,
    delay: Duration,
}

impl Reorder {
    /// Reordering with its own stream of chance.
    pub(super) fn new(reorder: &scenario::Reorder, chance: LinkRandomStreams) -> Self {
        Self {
            coin: BernoulliTrial::new(reorder.probability, chance.stream("reorder")),
            delay: reorder.delay,
        }
    }

    /// For how long the next packet is held back; `None`: not at all.
    pub(super) fn hold_back(&mut self) -> Option<Duration> {
        self.coin.flip().then_some(self.delay)
    }
}
