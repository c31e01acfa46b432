//! The two sides of a comparison.

use serde::Serialize;

/// The capture, or its simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The capture.
    Measured,
    /// The simulation.
    Simulated,
}

impl Side {
    /// The name, as in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Simulated => "simulated",
        }
    }

    /// The noun in a sentence.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Measured => "the capture",
            Self::Simulated => "the simulation",
        }
    }

    pub(super) const fn other(self) -> Self {
        match self {
            Self::Measured => Self::Simulated,
            Self::Simulated => Self::Measured,
        }
    }
}
