//! Loads: what an application hands to its transport, and when.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{BitRate, Bytes, Duration};

/// What the application of a flow sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// As much as the transport takes, for as long as the run lasts.
    Bulk,
    /// A given amount, as fast as the transport takes it; then the flow closes.
    Transfer(Transfer),
    /// A message at every tick of a clock.
    Periodic(Periodic),
    /// Messages at random, independent times.
    Poisson(Poisson),
    /// Bursts at a steady rate with silence between them.
    OnOff(OnOff),
    /// A question, then its answer, then a pause.
    RequestResponse(RequestResponse),
}

/// A given amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Amount of data.
    pub size: Bytes,
}

/// A message at every tick of a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Periodic {
    /// Size of a message.
    pub size: Bytes,
    /// Time between two messages.
    pub every: Duration,
    /// Each message is delayed by a random time up to this.
    #[serde(default)]
    pub jitter: Duration,
    /// All members of a group tick together. Otherwise each has a random phase of its own.
    #[serde(default)]
    pub synchronised: bool,
}

/// Messages at random, independent times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Poisson {
    /// Size of a message.
    pub size: Bytes,
    /// Mean time between two messages.
    pub every: Duration,
}

/// Bursts with silence between them. A run starts in the stationary state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OnOff {
    /// Mean length of a burst.
    pub on: Duration,
    /// Mean length of a silence.
    pub off: Duration,
    /// Rate of payload in a burst. Absent: as fast as the transport takes it; a message is ready
    /// whenever the connection could send it at once (the meters of paper `sa-tcp`, section 4.4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Size of a message.
    pub size: Bytes,
    /// Whether lengths are fixed or exponentially distributed.
    #[serde(default)]
    pub spread: Spread,
}

/// Distribution of the lengths of bursts and silences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Every length is the mean.
    Fixed,
    /// Exponential.
    #[default]
    Exponential,
}

/// A question, then its answer, then a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Size of the question, sent by `from`.
    pub request: Bytes,
    /// Size of the answer, sent by `to`.
    pub response: Bytes,
    /// Time that `to` takes before it answers.
    #[serde(default)]
    pub think: Duration,
    /// Time between an answer and the next question.
    #[serde(default)]
    pub pause: Duration,
}
