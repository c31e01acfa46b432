//! Route changes, as in mobile ad hoc networks.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Periodic route changes: the direction alternates between two routes, the first with the `delay`
/// of the direction, the second with an additional delay. The order of packets is kept: after a
/// change to the shorter route, no packet overtakes those on the longer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouteChange {
    /// Time between two changes.
    pub every: Duration,
    /// Additional delay of the second route.
    pub delay: Duration,
}
