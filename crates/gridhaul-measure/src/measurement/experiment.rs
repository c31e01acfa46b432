//! Experiments: the measured quantity, and when messages are sent.

use gridhaul_scenario::units::{BitRate, Duration};
use serde::{Deserialize, Serialize};

use crate::method::Schedule;

/// Measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Experiment {
    /// Latency of messages at a constant rate.
    Latency(ConstantRate),
    /// Number of lost, duplicated, reordered and corrupt messages at a constant rate.
    Reliability(ConstantRate),
    /// Recovery from an outage during messages at a constant rate.
    Outage(OutageExperiment),
    /// Highest rate that the protocol sustains.
    Rate(RateExperiment),
}

/// Messages at a constant rate, in one run or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ConstantRate {
    /// Number of runs, each with connections, a broker and a network of its own. The spread between
    /// them is reported.
    #[serde(default = "one")]
    pub repetitions: u32,
    /// Application class that decides about the exit code, such as `"TT4"`. Absent: all classes
    /// are judged, and the exit code is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// When messages are sent.
    #[serde(default)]
    pub schedule: ScheduleSettings,
    /// Background load on the links of an emulated network.
    #[serde(default)]
    pub cross_traffic: CrossTrafficSettings,
    /// Additional quantities.
    #[serde(default)]
    pub record: Record,
}

impl Default for ConstantRate {
    fn default() -> Self {
        Self {
            repetitions: 1,
            class: None,
            schedule: ScheduleSettings::default(),
            cross_traffic: CrossTrafficSettings::default(),
            record: Record::default(),
        }
    }
}

/// An outage during messages at a constant rate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutageExperiment {
    /// Failing part, and the time of the outage.
    pub disturbance: Disturbance,
    /// When messages are sent.
    #[serde(default)]
    pub schedule: ScheduleSettings,
    /// Background load on the links of an emulated network.
    #[serde(default)]
    pub cross_traffic: CrossTrafficSettings,
    /// Additional quantities.
    #[serde(default)]
    pub record: Record,
}

/// Failing part of an outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Disturbance {
    /// All links of an emulated network, in both directions.
    Links(LinkOutage),
    /// The broker that is started: it is killed, and started again.
    Broker(BrokerOutage),
    /// Nothing: the user interrupts the network, and the outage is found in the times of arrival.
    Observed(ObservedOutage),
}

/// An outage of all links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkOutage {
    /// Start of the outage, after the start of the network.
    #[serde(default = "five_seconds")]
    pub start: Duration,
    /// Length of the outage.
    #[serde(default = "ten_seconds")]
    pub length: Duration,
}

/// An outage of the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BrokerOutage {
    /// Start of the outage, after the warm-up of the messages.
    #[serde(default = "five_seconds")]
    pub start: Duration,
    /// Time until the broker is started again.
    #[serde(default = "ten_seconds")]
    pub length: Duration,
}

/// An outage that the user causes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ObservedOutage {
    /// Longest outage that is expected.
    #[serde(default = "ten_seconds")]
    pub length: Duration,
}

/// A search of the highest rate. Rates are in messages per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateExperiment {
    /// First rate of the search.
    #[serde(default = "hundred")]
    pub first: f64,
    /// Lowest rate of the search.
    #[serde(default = "one_per_second")]
    pub min: f64,
    /// Highest rate of the search.
    #[serde(default = "hundred_thousand")]
    pub max: f64,
    /// Ratio between the result and the lowest rate that failed, less 1.
    #[serde(default = "five_percent")]
    pub resolution: f64,
    /// Share of messages that may be lost, corrupt or refused, from 0 to 1.
    #[serde(default)]
    pub loss: f64,
    /// Time of a trial after its warm-up.
    #[serde(default = "two_seconds")]
    pub trial: Duration,
    /// Further trials that must confirm the result.
    #[serde(default = "two")]
    pub confirmations: u32,
}

/// When messages are sent at a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ScheduleSettings {
    /// Messages per second.
    #[serde(default = "hundred")]
    pub rate: f64,
    /// Number of messages after the warm-up.
    #[serde(default = "thousand")]
    pub messages: u64,
    /// Number of messages of the warm-up. Absent: those of one second, or 100, whichever are more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u64>,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self { rate: hundred(), messages: thousand(), warm_up: None }
    }
}

impl ScheduleSettings {
    /// The times of the messages.
    #[must_use]
    pub fn schedule(&self) -> Schedule {
        let schedule = Schedule::new(self.rate, self.messages);
        self.warm_up.map_or(schedule, |messages| schedule.with_warm_up(messages))
    }
}

/// A background load on the links of an emulated network: a Poisson process of packets of other
/// applications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CrossTrafficSettings {
    /// Mean rate of the packets in the direction of the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<BitRate>,
    /// Mean rate of the packets in the other direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverse: Option<BitRate>,
    /// Bytes of such a packet, with the headers of IP and UDP, or of Ethernet for `sv` and `goose`.
    #[serde(default = "packet_bytes")]
    pub packet_bytes: u16,
}

impl Default for CrossTrafficSettings {
    fn default() -> Self {
        Self { forward: None, reverse: None, packet_bytes: packet_bytes() }
    }
}

impl CrossTrafficSettings {
    /// Whether there is no load.
    pub(crate) const fn is_empty(&self) -> bool {
        self.forward.is_none() && self.reverse.is_none()
    }
}

/// Quantities that a run records in addition to the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Whether the floor, the latency of the protocol `null`, is measured before.
    #[serde(default = "yes")]
    pub floor: bool,
    /// Whether the network alone is measured afterwards, with datagrams of the same size and rate:
    /// standards limit its share.
    #[serde(default)]
    pub network_share: bool,
    /// Capture of packets at both ends of the network; needs root.
    #[serde(default)]
    pub capture: Capture,
    /// Whether the time at which the kernel received each message is recorded: `udp`, `sv` and
    /// `goose`.
    #[serde(default)]
    pub kernel_times: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self { floor: true, network_share: false, capture: Capture::None, kernel_times: false }
    }
}

/// Capture of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Capture {
    /// No capture.
    #[default]
    None,
    /// The time of each leg and of the broker, and the place of losses.
    Packets,
    /// The same, and a simulation of the same messages over the same emulated network.
    Prediction,
}

impl Disturbance {
    /// Name in documents.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Links(_) => "links",
            Self::Broker(_) => "broker",
            Self::Observed(_) => "observed",
        }
    }

    /// Length of the outage, or of the longest that is expected.
    #[must_use]
    pub const fn length(&self) -> Duration {
        match self {
            Self::Links(outage) => outage.length,
            Self::Broker(outage) => outage.length,
            Self::Observed(outage) => outage.length,
        }
    }

    /// Whether the user causes the outage.
    #[must_use]
    pub const fn is_observed(&self) -> bool {
        matches!(self, Self::Observed(_))
    }
}

const fn one() -> u32 {
    1
}
const fn two() -> u32 {
    2
}
const fn yes() -> bool {
    true
}
const fn thousand() -> u64 {
    1_000
}
const fn packet_bytes() -> u16 {
    1_200
}
const fn one_per_second() -> f64 {
    1.0
}
const fn hundred() -> f64 {
    100.0
}
const fn hundred_thousand() -> f64 {
    100_000.0
}
const fn five_percent() -> f64 {
    0.05
}
const fn two_seconds() -> Duration {
    Duration::from_secs(2)
}
const fn five_seconds() -> Duration {
    Duration::from_secs(5)
}
const fn ten_seconds() -> Duration {
    Duration::from_secs(10)
}
