//! Deadline checks: whether a flow meets its deadline.

use serde::{Deserialize, Serialize};

use crate::units::Duration;

/// Result of a deadline check for a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct DeadlineCheck {
    /// Name of the flow.
    pub flow: String,
    /// The limit, such as `98 % of messages within 15 s`.
    pub limit: String,
    /// Measured share; null if the backend cannot determine it.
    pub measured: Option<f64>,
    /// Unit of `measured`; empty, since it is a share.
    pub unit: String,
    /// Whether the limit is met; null if unknown.
    pub met: Option<bool>,
}

impl DeadlineCheck {
    /// Share of the messages or transfers that must arrive within the deadline.
    pub const SHARE: f64 = 0.98;

    /// Checks a deadline. `in_time` is the share of the messages that arrived within the deadline;
    /// `None` if no message could be checked.
    #[must_use]
    pub fn of_deadline(flow: &str, deadline: Duration, in_time: Option<f64>) -> Self {
        Self::new(flow, "messages", deadline, in_time)
    }

    /// The same for a flow of transfers.
    #[must_use]
    pub fn of_transfers(flow: &str, deadline: Duration, in_time: Option<f64>) -> Self {
        Self::new(flow, "transfers", deadline, in_time)
    }

    fn new(flow: &str, what: &str, deadline: Duration, in_time: Option<f64>) -> Self {
        Self {
            flow: flow.to_owned(),
            limit: format!("{} % of {what} within {deadline}", Self::SHARE * 100.0),
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
        let check = |share| DeadlineCheck::of_deadline("reading", Duration::from_secs(15), share);
        assert_eq!(check(Some(0.98)).limit, "98 % of messages within 15 s");
        let transfers = DeadlineCheck::of_transfers("file", Duration::from_secs(2), None);
        assert_eq!(transfers.limit, "98 % of transfers within 2 s");
        let met = [Some(0.979), Some(0.98), None].map(|share| check(share).met);
        assert_eq!(met, [Some(false), Some(true), None]);
    }
}
