//! Loads: what an application hands to its transport, and when.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Application;
use crate::units::{BitRate, Bytes, Duration, Probability};

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
    /// An event that makes many members report at once.
    Burst(Burst),
    /// Recorded messages, read from a file while the run lasts.
    Trace(Trace),
    /// What an application of the smart grid sends, with its deadline.
    Application(Application),
}

impl Load {
    /// The load itself, or what an application profile stands for.
    #[must_use]
    pub fn plain(&self) -> Cow<'_, Self> {
        match self {
            Self::Application(application) => Cow::Owned(application.load()),
            plain => Cow::Borrowed(plain),
        }
    }
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
    /// All members of a group tick together, from the start of the flow on: the reading at
    /// midnight. They also open their connections together, each with its first message. Otherwise each
    /// has a random phase of its own.
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
    /// All members of a group open their connections together, at the start of the flow. Their
    /// messages stay independent.
    #[serde(default)]
    pub synchronised: bool,
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
    /// whenever the connection could send it at once (the meters of paper `sa-tcp`, section 4.4), or
    /// where it waits with others for a full segment (`nagle`). A burst that begins before the connection
    /// is open has one message ready at once, which waits for the connection. A `linux` stack takes some segments
    /// that wait for the window, too, as the kernel's socket does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// Size of a message.
    pub size: Bytes,
    /// Whether lengths are fixed or exponentially distributed.
    #[serde(default)]
    pub spread: PeriodDistribution,
    /// All members of a group open their connections together, at the start of the flow. Their
    /// bursts stay independent.
    #[serde(default)]
    pub synchronised: bool,
}

/// Distribution of the lengths of bursts and silences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PeriodDistribution {
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

/// An event that makes many members report at once: the last gasp of the meters of a district in
/// an outage, or their calls when the power is back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Size of a message.
    pub size: Bytes,
    /// When the event comes, after the start of the flow.
    pub at: Duration,
    /// Each member that is hit reports at a random time up to this after the event.
    #[serde(default)]
    pub spread: Duration,
    /// Messages of each member that is hit.
    #[serde(default = "one_message")]
    pub count: u32,
    /// Time between the messages of one member.
    #[serde(default)]
    pub gap: Duration,
    /// The event comes again after this time, and again. Absent: it comes once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
    /// Share of the members that are hit; drawn for each member and each event.
    #[serde(default = "all_members")]
    pub share: Probability,
}

/// Recorded messages, read row by row while the run lasts, so that the file may be larger than
/// memory. The columns are `time_s` (or one of `time_ms`, `time_us`, `time_ns`; from the start of
/// the flow on), `bytes`, and `member` where there are several: 0 is the first. Without that
/// column, every member sends every row. Other columns are left alone. Rows stand in the order of
/// time; in a time without rows nothing is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// A CSV file whose first line names the columns, or a Parquet file. A relative path begins in
    /// the folder of the scenario file, also where it is swept or set on the command line.
    pub file: String,
}

const fn one_message() -> u32 {
    1
}
fn all_members() -> Probability {
    Probability::ONE
}
