//! Packets that are held back so that later ones overtake them.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Duration;

use super::LinkChance;
use crate::chance::Coin;

/// Chooses the packets that are held back.
#[derive(Debug, Clone)]
pub(super) struct Reorder {
    coin: Coin,
    by: Duration,
}

impl Reorder {
    /// Reordering with its own stream of chance.
    pub(super) fn new(reorder: &scenario::Reorder, chance: LinkChance) -> Self {
        Self { coin: Coin::new(reorder.probability, chance.stream("reorder")), by: reorder.by }
    }

    /// For how long the next packet is held back; `None`: not at all.
    pub(super) fn hold_back(&mut self) -> Option<Duration> {
        self.coin.flip().then_some(self.by)
    }
}
