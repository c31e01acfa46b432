//! Behaviour of a protocol without a connection.

use gridhaul_scenario::units::Duration;
use serde::{Deserialize, Serialize};

/// Behaviour of a protocol with connections without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReconnectPolicy {
    /// Time between a failure and the next attempt; `None` for a client that does not connect
    /// again.
    pub after: Option<Duration>,
    /// Whether messages are queued meanwhile, or refused.
    pub queue: bool,
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self { after: Some(Duration::from_millis(100)), queue: false }
    }
}
