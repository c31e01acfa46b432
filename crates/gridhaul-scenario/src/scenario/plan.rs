//! Plans: choices, their costs, and limits that must be met.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Values;
use crate::units::{Duration, Probability};

/// Specification for `gridhaul plan`, which searches for the cheapest candidate that meets every
/// limit.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(any(test, feature = "schema"), schemars(rename = "Plan"))]
pub struct PlanSpecification {
    /// Currency of the costs, such as `"EUR"`; for display only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub currency: String,
    /// Whether to consider candidates without aggregators as well: every `aggregator` is removed,
    /// and keys that concern only aggregators (those of their nodes and of stacks that no flow
    /// uses) are neither chosen nor paid for.
    #[serde(default)]
    pub without_aggregators: bool,
    /// Keys to choose, such as `"node.concentrator.count"`, and their possible values, as in a
    /// sweep. Every combination is a candidate.
    #[serde(default)]
    pub choose: IndexMap<String, Values>,
    /// Cost of one unit of a chosen key: of one node, 1 Mbit/s, 1 kB, 1 s, one message, packet or
    /// segment. The cost applies to each of the nodes or links that the key represents.
    #[serde(default)]
    pub cost: IndexMap<String, f64>,
    /// Limits that must be met, by the name of the flow.
    #[serde(default)]
    pub limit: IndexMap<String, PlanLimit>,
}

/// Limits of a flow. All limits that are given must be met.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PlanLimit {
    /// Largest permitted loss of data segments over all stages (`segment_loss_total_ratio`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Probability>,
    /// Largest permitted mean delay of the messages (`delay_mean_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_mean: Option<Duration>,
    /// Largest permitted 98th percentile of message delay (`delay_p98_s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_p98: Option<Duration>,
    /// Whether the deadline of the flow, or of its application profile, must be met: at least 98 %
    /// of the messages arrive in time.
    #[serde(default)]
    pub deadline: bool,
}
