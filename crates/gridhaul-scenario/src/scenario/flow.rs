//! Flows: who sends what to whom, over which transport.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{IpVersion, Load};
use crate::units::Duration;

/// A flow of data from one node to another. Between a group and a single node it stands for one
/// flow for each member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Node where the data begins. It opens the connection.
    pub from: String,
    /// Node where the data ends.
    pub to: String,
    /// Number of equal flows (for each member, where a group is involved).
    #[serde(default = "one_flow")]
    pub count: u32,
    /// What carries the data.
    #[serde(default)]
    pub transport: Transport,
    /// Version of IP, which decides the size of the headers: with TCP 40 B or 60 B, in a datagram
    /// 28 B or 48 B. Connections that an aggregator opens for the flow have that of the aggregator.
    #[serde(default, skip_serializing_if = "IpVersion::is_default")]
    pub ip: IpVersion,
    /// Name of the TCP stack of both ends. Absent: the profile `linux` with CUBIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// Name of the TCP stack of the `to` end, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_stack: Option<String>,
    /// What the application sends and when.
    pub load: Load,
    /// How old a message may be on arrival. The answer judges it: met if at least 98 % of the
    /// messages arrive in time. Absent: the deadline of the application profile, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Duration>,
    /// When the flow starts.
    #[serde(default)]
    pub start: Duration,
    /// Each of several equal flows opens its connection and begins its load at `start` plus a random
    /// time, evenly distributed from 0 s up to this; `"0 s"`: all at the same instant.
    ///
    /// Absent: connections open as those of independent devices do. `periodic`, `poisson`, `on_off`,
    /// `application`: the load runs from `start` on, and each connection opens when its first message is
    /// ready (for `on_off` without `rate`: when the first burst begins; one that is under way at `start`
    /// opens within its first second). `trace`: with the first row. `burst`: at a random time between `start`
    /// and the event, or with the first report where `at` is 0 s. `bulk`, `transfer`, `request_response`: each
    /// of several equal flows starts at a random time within 1 s (`request_response`: within `think` and
    /// `pause` together, unless both are 0 s); a single flow starts at `start`. The delay of a first message
    /// includes the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_spread: Option<Duration>,
    /// Links from `from` to `to` in order. Absent: the way with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<Vec<String>>,
    /// Links from `to` back to `from` in order. Absent: the way with the fewest links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse_route: Option<Vec<String>>,
}

impl Flow {
    /// The deadline of the messages: the flow's own, or the one of its application profile.
    #[must_use]
    pub fn effective_deadline(&self) -> Option<Duration> {
        let of_profile = || match &self.load {
            Load::Application(application) => application.profile.deadline(),
            _ => None,
        };
        self.deadline.or_else(of_profile)
    }
}

/// What carries the data of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// A TCP connection.
    #[default]
    Tcp,
    /// One packet for each message, nothing repeated (UDP).
    Datagram,
    /// As `datagram`, and the receiver sends each packet back (ping); the delay is the round trip.
    Echo,
}

const fn one_flow() -> u32 {
    1
}
