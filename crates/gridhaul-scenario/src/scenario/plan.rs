//! Plans: what may be chosen, what it costs, what must hold.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Values;
use crate::units::{Duration, Probability};

/// What `gridhaul plan` looks for: the cheapest choice that keeps every limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Plan")]
pub struct PlanSpecification {
    /// Currency of the costs, such as `"EUR"`; only shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub currency: String,
    /// Also try to do without collectors: every `aggregator` is removed, and what belongs to
    /// collectors (keys of their nodes, stacks that no flow uses) is neither chosen nor paid for.
    #[serde(default)]
    pub without_aggregators: bool,
    /// Keys to choose, such as `"node.collector.count"`, and the values that they may take, as in a
    /// sweep. Every combination is a candidate.
    #[serde(default)]
    pub choose: IndexMap<String, Values>,
    /// Cost of one unit of a key that is chosen: of a node, of 1 Mbit/s, 1 kB, 1 s, one message,
    /// packet or segment. It is paid for each of the nodes or links that the key stands for.
    #[serde(default)]
    pub cost: IndexMap<String, f64>,
    /// Limits that must be kept, by the name of the flow.
    #[serde(default)]
    pub limit: IndexMap<String, PlanLimit>,
}

/// Limits of a flow. Every one that is given must be kept.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanLimit {
    /// Most that may be lost of the data segments, over all stages (`segment_loss_total_ratio`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// Longest mean delay of the messages (`delay_mean_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_mean: Option<Duration>,
    /// Longest delay of the fastest 98 % of the messages (`delay_p98_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_p98: Option<Duration>,
    /// The deadline of the flow, or of its application profile, must be met: 98 % of the messages
    /// arrive in time.
    #[serde(default)]
    pub deadline: bool,
}
