//! Loads: the traffic that applications generate.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Application, Dlms, Exchange, Iec104, Modbus, Mqtt, MqttSubscription, Scenario};
use crate::units::{BitRate, Bytes, Duration, Probability};

/// Traffic of the application of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// Always data to send, until the end of the run.
    Bulk,
    /// Messages that another program sends while it steps the simulation (`gridhaul_sim::Session`).
    /// Runs without such a program refuse this load.
    External,
    /// A given amount of data, as fast as the transport permits; then the flow closes.
    Transfer(Transfer),
    /// Messages at regular intervals.
    Periodic(Periodic),
    /// Messages at random, independent times.
    Poisson(Poisson),
    /// Bursts at a constant rate, separated by idle times.
    OnOff(OnOff),
    /// A request, the response, then a pause.
    RequestResponse(RequestResponse),
    /// A dialogue of several steps, which is repeated.
    Exchange(Exchange),
    /// Modbus/TCP: registers that a client polls.
    Modbus(Modbus),
    /// DLMS/COSEM: an attribute that a client polls.
    Dlms(Dlms),
    /// IEC 60870-5-104: measured values with a window of unacknowledged frames.
    #[serde(rename = "iec_104")]
    Iec104(Iec104),
    /// MQTT: messages that a client publishes at a broker.
    Mqtt(Mqtt),
    /// MQTT: the messages of a flow that a broker forwards to a subscriber.
    MqttSubscription(MqttSubscription),
    /// An event that many members report at the same time.
    Burst(Burst),
    /// Recorded messages, read from a file during the run.
    Trace(Trace),
    /// Traffic of a smart-grid application, with its deadline.
    Application(Application),
}

impl Load {
    /// The load itself, or the equivalent load of an application profile.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, Self> {
        match self {
            Self::Application(application) => Cow::Owned(application.load()),
            Self::Modbus(modbus) => Cow::Owned(modbus.load()),
            Self::Dlms(dlms) => Cow::Owned(dlms.load()),
            plain => Cow::Borrowed(plain),
        }
    }

    /// Whether the `to` end answers: each message is a dialogue of both ends.
    #[must_use]
    pub fn is_dialogue(&self) -> bool {
        matches!(&*self.plain(), Self::RequestResponse(_) | Self::Exchange(_))
    }

    /// Whether the applications of both ends write.
    #[must_use]
    pub fn is_two_way(&self) -> bool {
        let of_both = matches!(self, Self::Iec104(_) | Self::Mqtt(_) | Self::MqttSubscription(_));
        self.is_dialogue() || of_both
    }

    /// Whether the load is one of MQTT.
    #[must_use]
    pub const fn is_mqtt(&self) -> bool {
        matches!(self, Self::Mqtt(_) | Self::MqttSubscription(_))
    }

    /// Whether connections follow each other, on each of which both applications start to
    /// communicate anew ([`Iec104::starts_transfer`]).
    #[must_use]
    pub const fn starts_transfer(&self) -> bool {
        matches!(self, Self::Iec104(load) if load.starts_transfer())
    }

    /// The key of the load for which the connections of its flow are managed.
    #[must_use]
    pub const fn connection_key(&self) -> Option<&'static str> {
        match self {
            Self::Iec104(load) if load.t1.is_some() => Some(T1),
            Self::Iec104(load) if load.starts_transfer() => Some(CONTROLLED),
            _ => None,
        }
    }

    /// The key of the load in a flow.
    #[must_use]
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::External => "external",
            Self::Transfer(_) => "transfer",
            Self::Periodic(_) => "periodic",
            Self::Poisson(_) => "poisson",
            Self::OnOff(_) => "on_off",
            Self::RequestResponse(_) => "request_response",
            Self::Exchange(_) => "exchange",
            Self::Modbus(_) => "modbus",
            Self::Dlms(_) => "dlms",
            Self::Iec104(_) => "iec_104",
            Self::Mqtt(_) => "mqtt",
            Self::MqttSubscription(_) => "mqtt_subscription",
            Self::Burst(_) => "burst",
            Self::Trace(_) => "trace",
            Self::Application(_) => "application",
        }
    }

    /// Whether all members of a group open their connections at the same time.
    #[must_use]
    pub const fn is_synchronised(&self) -> bool {
        match self {
            Self::Periodic(load) => load.synchronised,
            Self::Poisson(load) => load.synchronised,
            Self::OnOff(load) => load.synchronised,
            Self::Application(load) => load.synchronised,
            Self::Iec104(load) => load.synchronised,
            Self::Mqtt(load) => load.synchronised,
            _ => false,
        }
    }
}

/// Keys of a load for which connections are managed, below a flow.
const T1: &str = "load.iec_104.t1";
const CONTROLLED: &str = "load.iec_104.controlled";

impl Scenario {
    /// Whether the load of a flow starts anew on each connection ([`Load::starts_transfer`]), or
    /// may do so at a point of the sweep.
    pub(super) fn may_start_transfer(&self) -> bool {
        let is_key = |key: &String| {
            let below_flow = key.strip_prefix("flow.").and_then(|key| key.split_once('.'));
            below_flow.is_some_and(|(_, key)| [T1, CONTROLLED].contains(&key))
        };
        self.flow.values().any(|flow| flow.load.starts_transfer())
            || self.sweep.iter().any(|entry| entry.vary.keys().any(is_key))
    }
}

/// A given amount of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Amount of data.
    pub size: Bytes,
}

/// Messages at regular intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Size of a message.
    pub size: Bytes,
    /// Time between two messages.
    pub every: Duration,
    /// Each message is delayed by a random time up to this value.
    #[serde(default)]
    pub jitter: Duration,
    /// Whether all members of a group send at the same times, from the start of the flow on, like a
    /// meter reading at midnight. They also open their connections at the same time, with the first
    /// message. Otherwise each has its own random phase.
    #[serde(default)]
    pub synchronised: bool,
}

/// Messages at random, independent times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Size of a message.
    pub size: Bytes,
    /// Mean time between two messages.
    pub every: Duration,
    /// Whether all members of a group open their connections at the start of the flow. Their
    /// messages are independent in any case.
    #[serde(default)]
    pub synchronised: bool,
}

/// Bursts separated by idle times. A run starts in the stationary state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Mean length of a burst.
    pub on: Duration,
    /// Mean length of an idle time.
    pub off: Duration,
    /// Payload rate during a burst. Absent: as fast as the transport permits; a message is ready
    /// whenever the connection could send it at once (like the meters of paper `sa-tcp`, section
    /// 4.4), or could combine it with others into a full segment (`nagle`). A burst that begins
    /// before the connection is open has one message ready, which waits for the connection. A
    /// `linux` stack also accepts a few segments beyond the window, like the send buffer of a
    /// socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Size of a message.
    pub size: Bytes,
    /// Distribution of the lengths of bursts and idle times.
    #[serde(default)]
    pub spread: PeriodDistribution,
    /// Whether all members of a group open their connections at the start of the flow. Their bursts
    /// are independent in any case.
    #[serde(default)]
    pub synchronised: bool,
}

/// Distribution of the lengths of bursts and idle times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PeriodDistribution {
    /// Every length equals the mean.
    Fixed,
    /// Exponentially distributed lengths.
    #[default]
    Exponential,
}

/// A request, the response, then a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Size of the request, sent by `from`.
    pub request: Bytes,
    /// Size of the response, sent by `to`.
    pub response: Bytes,
    /// Time from the request to the response at `to`.
    #[serde(default)]
    pub think: Duration,
    /// Time between a response and the next request.
    #[serde(default)]
    pub pause: Duration,
}

/// An event that many members report at the same time, such as the last-gasp messages of the meters
/// of a district in a power outage, or their reports when power is restored.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Size of a message.
    pub size: Bytes,
    /// Time of the event, from the start of the flow.
    pub at: Duration,
    /// Each affected member reports after a random time, uniformly distributed up to this value.
    #[serde(default)]
    pub spread: Duration,
    /// Number of messages of each affected member.
    #[serde(default = "one_message")]
    pub count: u32,
    /// Time between two messages of a member.
    #[serde(default)]
    pub gap: Duration,
    /// Period of a recurring event. Absent: a single event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Probability that a member is affected, independent for each member and event.
    #[serde(default = "all_members")]
    pub share: Probability,
}

/// Recorded messages, read row by row during the run, so that the file may be larger than memory.
/// The columns are `time_s` (or one of `time_ms`, `time_us`, `time_ns`; from the start of the
/// flow), `bytes`, and optionally `member`, the number of the sending member, from 0. Without
/// `member`, every member sends every row. Other columns are ignored. Rows are sorted by time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A CSV file whose first line names the columns, or a Parquet file. A relative path is
    /// relative to the folder of the scenario file, also in a sweep or on the command line.
    pub file: String,
}

const fn one_message() -> u32 {
    1
}
fn all_members() -> Probability {
    Probability::ONE
}
