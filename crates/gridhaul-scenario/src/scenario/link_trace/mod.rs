//! Traces of links: files with the rate of a direction over time.
//!
//! The keys of a scenario name the files; `gridhaul_data::link_trace` reads them.

mod deliveries;
mod steps;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RateSchedule;
use crate::units::{BitRate, Duration, Instant};

pub use deliveries::Deliveries;
pub use steps::{LinkStep, LinkSteps};

/// A file with the rate of a direction over time, which replaces `rate`. Time 0 of the file is the
/// beginning of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LinkTrace {
    /// Delivery opportunities in the format of Mahimahi: each line is a whole number of
    /// milliseconds, the time at which the link can deliver 1500 B.
    Mahimahi(MahimahiTrace),
    /// Rates in CSV, each of which applies until the next row.
    Steps(StepTrace),
}

/// A trace of delivery opportunities, with the rules of `mm-link` (Netravali et al., "Mahimahi:
/// Accurate Record-and-Replay for HTTP", 2015; `link_queue.cc`). An opportunity has room
/// for 1504 B, and each packet takes 4 B more than its size, as those of a TUN device do. Several
/// small packets share an opportunity, and a packet that does not fit continues in the next one.
/// Room that no waiting packet can use is lost; a packet that arrives at the time of an opportunity
/// uses the next one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct MahimahiTrace {
    /// Path of the file, relative to the folder of the scenario file.
    pub file: String,
    /// Whether the trace starts again at its last line. Otherwise the link delivers nothing after
    /// that.
    #[serde(default = "yes")]
    pub repeat: bool,
}

/// A trace in CSV. The first line names the columns, such as
/// `time_s,rate_bit_per_s,delay_ms,loss_percent`. Time (in s, ms, us or ns) and rate (bit, kbit or
/// mbit per s) are required. A delay (ms or s) is added to `delay`; a loss (percent or ratio) is
/// the probability of an independent loss in addition to `loss`. The first row has time 0. A rate
/// of 0 stops the transmitter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StepTrace {
    /// Path of the file, relative to the folder of the scenario file.
    pub file: String,
    /// Period after which the trace starts again. Absent: the last row applies until the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

/// Content of the trace of a direction.
#[derive(Debug, Clone)]
pub enum LinkTraceContent {
    /// Delivery opportunities.
    Deliveries(Arc<Deliveries>),
    /// Rate, delay and loss in steps.
    Steps(Arc<LinkSteps>),
}

impl LinkTrace {
    /// Path of the file.
    #[must_use]
    pub fn file(&self) -> &str {
        match self {
            Self::Mahimahi(trace) => &trace.file,
            Self::Steps(trace) => &trace.file,
        }
    }

    /// Key of the path, below `trace`.
    #[must_use]
    pub const fn file_key(&self) -> &'static str {
        match self {
            Self::Mahimahi(_) => "mahimahi.file",
            Self::Steps(_) => "steps.file",
        }
    }
}

impl LinkTraceContent {
    /// The mean rate from `start` to `end`.
    #[must_use]
    pub fn mean_rate(&self, start: Instant, end: Instant) -> BitRate {
        match self {
            Self::Deliveries(deliveries) => deliveries.mean_rate(start, end),
            Self::Steps(steps) => RateSchedule::of_steps(Arc::clone(steps)).mean_rate(start, end),
        }
    }
}

const fn yes() -> bool {
    true
}
