//! Contents of a capture from which tests estimate a link.

use gridhaul_scenario::units::Duration;

use super::{Basis, LinkSamples, LossSamples, RoundTrips, Smallest};
use crate::Position;

#[derive(Debug, Default)]
pub(super) struct Collected {
    pub samples: LinkSamples,
    pub round_trips: RoundTrips,
    pub echo: Smallest,
    pub losses: LossSamples,
}

impl Collected {
    /// The basis of an unknown place that has seen one packet of 1,500 B.
    pub(super) const fn basis(&self) -> Basis<'_> {
        Basis {
            samples: &self.samples,
            round_trips: &self.round_trips,
            position: Position::Unknown,
            sides: None,
            echo: &self.echo,
            acknowledged: 0,
            delivery: Duration::ZERO,
            packets: 1,
            bytes: 1_500,
            losses: &self.losses,
            unnecessary: 0,
            time_unit_nanos: 1,
        }
    }
}
