//! States of a link in the direction to the peer.

use gridhaul_scenario::units::Instant;

/// State of a link in the direction to the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Packets arrive at the peer.
    Usable,
    /// Several probes in a row are missing, and another link answers.
    Suspected,
    /// Packets do not arrive.
    Failed(Failure),
    /// Probes arrive again since this time; until they have done so for long enough, the link is
    /// used only if no other link is usable.
    Holding(Instant),
}

/// Cause of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The device has no carrier, or does not exist.
    NoCarrier,
    /// The device of the peer has no carrier.
    PeerWithoutCarrier,
    /// Probes do not arrive.
    Silence,
    /// Large probes do not arrive, but small ones do.
    LargePackets,
    /// The peer reports other links only: it has no link of this name, and whether packets arrive
    /// is unknown.
    UnknownToPeer,
}

impl LinkState {
    /// Order of preference: a link of a lower rank is used before the others.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::Usable => 0,
            Self::Holding(_) => 1,
            Self::Suspected => 2,
            Self::Failed(Failure::LargePackets) => 3,
            Self::Failed(Failure::UnknownToPeer) => 4,
            Self::Failed(Failure::Silence | Failure::PeerWithoutCarrier) => 5,
            Self::Failed(Failure::NoCarrier) => 6,
        }
    }
}
