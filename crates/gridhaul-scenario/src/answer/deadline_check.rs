//! Verdicts: whether a flow keeps a limit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Whether a flow keeps a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DeadlineCheck {
    /// Name of the flow.
    pub flow: String,
    /// The limit, such as `98 % of messages within 15 s`.
    pub limit: String,
    /// What was measured against it; null where the backend cannot know it.
    pub measured: Option<f64>,
    /// Unit of `measured`; empty for a share.
    pub unit: String,
    /// Whether the limit is kept; null where it cannot be known.
    pub met: Option<bool>,
}

impl DeadlineCheck {
    /// Share of the messages that must arrive within the deadline.
    pub const SHARE: f64 = 0.98;

    /// The verdict on a deadline. `in_time` is the share of the messages that arrived within it;
    /// `None` where none could be judged.
    #[must_use]
    pub fn of_deadline(flow: &str, deadline: Duration, in_time: Option<f64>) -> Self {
        Self {
            flow: flow.to_owned(),
            limit: format!("{} % of messages within {deadline}", Self::SHARE * 100.0),
            measured: in_time,
            unit: String::new(),
            met: in_time.map(|share| share >= Self::SHARE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_met_from_98_percent_on() {
        let verdict = |share| DeadlineCheck::of_deadline("reading", Duration::from_secs(15), share);
        assert_eq!(verdict(Some(0.98)).limit, "98 % of messages within 15 s");
        let met = [Some(0.979), Some(0.98), None].map(|share| verdict(share).met);
        assert_eq!(met, [Some(false), Some(true), None]);
    }
}
