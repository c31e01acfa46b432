//! Outages of a direction.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// A time in which a direction does not work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Start, from the beginning of the run.
    pub start: Duration,
    /// Duration.
    pub length: Duration,
    /// Period of a recurring outage, from start to start. Absent: a single outage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Treatment of packets during the outage.
    #[serde(default)]
    pub mode: OutageMode,
}

/// Treatment of packets during an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OutageMode {
    /// The transmitter continues to send, and all packets are lost.
    #[default]
    Drop,
    /// The transmitter stops; packets stay in the queue.
    Hold,
}
