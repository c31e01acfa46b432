//! Time division multiple access.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Time division multiple access: a frame has a time slot for each direction of the links of the
/// medium, and for each member of a group. The frames follow one another from the beginning of the
/// run. A transmission that does not end within its slot continues in the next slot of the
/// direction; `queue` and `aqm` are those of the direction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Tdma {
    /// Length of a time slot.
    pub slot: Duration,
    /// Guard time at the end of each slot, without transmission.
    #[serde(default)]
    pub guard: Duration,
    /// The slots of a frame in order, as directions such as `"feeder.forward"`; a direction that
    /// occurs several times has several slots. Absent: each direction once, in the order of the
    /// file, the forward direction of a link before its reverse direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
}
