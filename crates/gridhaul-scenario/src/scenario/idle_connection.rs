//! Idle connections: a NAT or firewall that forgets them, keep-alive, and the user timeout.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// A NAT or firewall before the `to` end, which has an entry for each connection of the flow. It
/// forgets a connection without segments for a time; later segments of that connection, from either
/// end, do not pass. SYN makes a new entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Nat {
    /// Time without a segment after which a connection is forgotten. The default is the minimum of
    /// RFC 5382, REQ-5; many NATs forget connections earlier.
    #[serde(default = "default_idle_timeout")]
    pub idle_timeout: Duration,
    /// Treatment of segments of a connection that is not known.
    #[serde(default)]
    pub answers: NatAnswer,
}

/// Treatment of segments of a connection that a NAT does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum NatAnswer {
    /// They are discarded: their sender notices only by its timers that the connection is lost.
    #[default]
    Drop,
    /// They are discarded, and the sender receives RST.
    Reset,
}

/// Keep-alive of TCP (RFC 9293, section 3.8.4) at the `from` end. The defaults are those of Linux
/// (`tcp_keepalive_time`, `tcp_keepalive_intvl`, `tcp_keepalive_probes`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct KeepAlive {
    /// Time without a segment of the other end before the first probe.
    #[serde(default = "default_idle")]
    pub idle: Duration,
    /// Time between probes without an answer.
    #[serde(default = "default_interval")]
    pub interval: Duration,
    /// Probes without an answer after which the connection is reset.
    #[serde(default = "default_probes")]
    pub probes: u32,
}

const fn default_idle_timeout() -> Duration {
    Duration::from_secs(7_440)
}
const fn default_idle() -> Duration {
    Duration::from_secs(7_200)
}
const fn default_interval() -> Duration {
    Duration::from_secs(75)
}
const fn default_probes() -> u32 {
    9
}
