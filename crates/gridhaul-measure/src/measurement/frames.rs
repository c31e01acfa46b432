//! Settings of Sampled Values and GOOSE.

use gridhaul_protocols::settings::{Retransmission, Vlan};
use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

/// Data set of Sampled Values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum DataSetName {
    /// The bytes of the message.
    #[default]
    #[serde(rename = "raw")]
    Raw,
    /// 9-2LE with 80 samples in a cycle of 50 Hz: four currents and four voltages; messages of
    /// 32 B. Its rate is 4,000 messages per second.
    #[serde(rename = "9-2le")]
    LightEdition50,
    /// The same with 60 Hz; its rate is 4,800 messages per second.
    #[serde(rename = "9-2le-60hz")]
    LightEdition60,
}

/// A VLAN tag (IEEE 802.1Q).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct VlanTag {
    /// Identifier, from 0 to 4094.
    pub id: u16,
    /// Priority, from 0 to 7.
    #[serde(default = "four")]
    pub priority: u8,
}

/// Retransmissions of an event of GOOSE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum GooseRetransmission {
    /// None.
    Never,
    /// After intervals of which each is twice as long as the one before.
    Doubling(DoublingIntervals),
}

/// Intervals of which each is twice as long as the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DoublingIntervals {
    /// Time from the event to its first retransmission.
    #[serde(default = "four_milliseconds")]
    pub after: Duration,
    /// Longest interval.
    #[serde(default = "one_second")]
    pub every: Duration,
}

impl DataSetName {
    /// Samples per second of the data set of 9-2LE: 80 in each cycle.
    #[must_use]
    pub const fn light_edition(self) -> Option<u16> {
        match self {
            Self::Raw => None,
            Self::LightEdition50 => Some(80 * 50),
            Self::LightEdition60 => Some(80 * 60),
        }
    }
}

impl Default for GooseRetransmission {
    fn default() -> Self {
        Self::Doubling(DoublingIntervals { after: four_milliseconds(), every: one_second() })
    }
}

impl From<VlanTag> for Vlan {
    fn from(tag: VlanTag) -> Self {
        Self { id: tag.id, priority: tag.priority }
    }
}

impl GooseRetransmission {
    /// The intervals; `None` for no retransmissions.
    pub(crate) const fn intervals(self) -> Option<Retransmission> {
        match self {
            Self::Never => None,
            Self::Doubling(DoublingIntervals { after, every }) => {
                Some(Retransmission { shortest: after, longest: every })
            }
        }
    }
}

const fn four() -> u8 {
    4
}
const fn four_milliseconds() -> Duration {
    Duration::from_millis(4)
}
const fn one_second() -> Duration {
    Duration::from_secs(1)
}
