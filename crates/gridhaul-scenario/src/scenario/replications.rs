//! The number of replications of a point: fixed, or as many as a confidence interval needs.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};

use crate::units::Probability;

/// Number of replications of each point.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Replications {
    /// The same number for each point, such as `10`.
    Fixed(u32),
    /// As many as each point needs for a narrow confidence interval.
    Until(NarrowInterval),
}

/// Replications of a point until the 95 % confidence interval of its means is narrow: the interval
/// is examined after `min` replications, and then whenever their number has grown by a quarter (at
/// least by one). The first replications decide in the order of their numbers, so that the number
/// does not depend on threads, machines and interruptions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct NarrowInterval {
    /// Half width of the interval, relative to the mean, at which a point is complete.
    pub until: Probability,
    /// Smallest number of replications, at least 2. With few replications, an interval may be
    /// narrow by chance.
    #[serde(default = "five")]
    pub min: u32,
    /// Largest number of replications.
    pub max: u32,
    /// Metric whose interval decides, in every row that has it. Absent: for each flow the mean
    /// message delay (`delay_mean_s`), without messages the completion time of transfers
    /// (`completion_time_s`), otherwise the goodput (`goodput_bit_per_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<DecidingMetric>,
}

/// A metric whose confidence interval may decide, by its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub enum DecidingMetric {
    /// Goodput of flows.
    #[serde(rename = "goodput_bit_per_s")]
    Goodput,
    /// Completion time of transfers.
    #[serde(rename = "completion_time_s")]
    CompletionTime,
    /// Completion of the last device.
    #[serde(rename = "last_completion_s")]
    LastCompletion,
    /// Mean message delay.
    #[serde(rename = "delay_mean_s")]
    DelayMean,
    /// 98th percentile of message delay.
    #[serde(rename = "delay_p98_s")]
    DelayP98,
    /// Share of messages that met the deadline.
    #[serde(rename = "deadline_met_ratio")]
    DeadlineMet,
    /// Share of messages that were lost.
    #[serde(rename = "message_loss_ratio")]
    MessageLoss,
    /// Mean round-trip time.
    #[serde(rename = "rtt_mean_s")]
    RttMean,
    /// Share of retransmitted segments.
    #[serde(rename = "retransmission_ratio")]
    RetransmissionRatio,
    /// Utilisation of directions of links.
    #[serde(rename = "utilisation_ratio")]
    Utilisation,
    /// Share of packets that directions of links lost.
    #[serde(rename = "loss_ratio")]
    LossRatio,
    /// Mean queue of directions of links.
    #[serde(rename = "queue_mean_packets")]
    QueueMean,
    /// Mean packet delay of directions of links.
    #[serde(rename = "link_delay_mean_s")]
    LinkDelayMean,
}

impl Replications {
    /// Smallest number of replications of a point.
    #[must_use]
    pub const fn min(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Until(rule) => rule.min,
        }
    }

    /// Largest number of replications of a point.
    #[must_use]
    pub const fn max(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Until(rule) => rule.max,
        }
    }

    /// The rule of points with different numbers of replications.
    #[must_use]
    pub const fn until(self) -> Option<NarrowInterval> {
        match self {
            Self::Fixed(_) => None,
            Self::Until(rule) => Some(rule),
        }
    }
}

impl fmt::Display for Replications {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(count) => count.fmt(f),
            Self::Until(NarrowInterval { until, max, .. }) => {
                write!(f, "{{ until = \"{until}\", max = {max} }}")
            }
        }
    }
}

// Manual, since the derived code for untagged enums does not report which key of a table is wrong.
impl<'de> Deserialize<'de> for Replications {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ReplicationsVisitor;
        impl<'de> Visitor<'de> for ReplicationsVisitor {
            type Value = Replications;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a whole number from 1 to 4294967295, or a table such as { until = \"5 %\", \
                     max = 100 }",
                )
            }
            fn visit_i64<E: Error>(self, number: i64) -> Result<Replications, E> {
                let fail = |_| E::invalid_value(Unexpected::Signed(number), &self);
                number.try_into().map(Replications::Fixed).map_err(fail)
            }
            fn visit_u64<E: Error>(self, number: u64) -> Result<Replications, E> {
                let fail = |_| E::invalid_value(Unexpected::Unsigned(number), &self);
                number.try_into().map(Replications::Fixed).map_err(fail)
            }
            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Replications, A::Error> {
                let read = NarrowInterval::deserialize(MapAccessDeserializer::new(table));
                read.map(Replications::Until)
            }
        }
        deserializer.deserialize_any(ReplicationsVisitor)
    }
}

const fn five() -> u32 {
    5
}
