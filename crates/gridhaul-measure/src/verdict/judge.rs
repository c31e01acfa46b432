//! The rule by which a measurement meets a limit.

use gridhaul_scenario::units::Duration;
use serde::Serialize;

use super::{ApplicationClass, Path};
use crate::method::messages_needed;

/// A confidence interval. `None`: the measurement has too few messages for this bound.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds<T> {
    /// Lower confidence bound.
    pub lower: Option<T>,
    /// Upper confidence bound.
    pub upper: Option<T>,
}

/// Result of a measurement for one part of the path.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evidence {
    /// Number of messages.
    pub messages: u64,
    /// Messages that are needed for an upper bound of the quantile.
    pub messages_needed: u64,
    /// Confidence interval of the chosen quantile of the latency, by order statistics. Lost
    /// messages count as later than all others.
    pub latency: Bounds<Duration>,
    /// Confidence interval of the share of messages that are lost, incorrect or later than the
    /// limit.
    pub unsuccessful: Bounds<f64>,
}

/// Verdict on one application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// The limits are met.
    Pass,
    /// A limit is exceeded.
    Fail {
        /// The exceeded limit.
        reason: Reason,
    },
    /// The measurement does not determine whether the limits are met.
    NotDecidable {
        /// The limit in question.
        reason: Reason,
        /// Number of messages.
        messages: u64,
        /// Minimum number of messages that can meet the limit in question. The bounds may need
        /// more.
        messages_needed: u64,
    },
}

/// A limit of an application, or why none can be compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The transfer time.
    Latency,
    /// The share of unsuccessful messages.
    Unsuccessful,
    /// The run ended early: not all messages are counted.
    Incomplete,
}

/// Judges a measurement against the limits of an application. `None` if the standard states no
/// limit for this part of the path.
#[must_use]
pub fn judge(class: &ApplicationClass, path: Path, evidence: &Evidence) -> Option<Verdict> {
    let limit = class.limit(path)?;
    let latency = (Reason::Latency, compare(&evidence.latency, &limit));
    let unsuccessful = class
        .unsuccessful
        .map(|limit| (Reason::Unsuccessful, compare(&evidence.unsuccessful, &limit)));
    let results = || [Some(latency), unsuccessful].into_iter().flatten();
    // One exceeded limit is sufficient, whatever is known about the other.
    if let Some((reason, _)) = results().find(|(_, result)| *result == Comparison::Exceeded) {
        return Some(Verdict::Fail { reason });
    }
    let open = results().find(|(_, result)| *result == Comparison::Unknown);
    Some(open.map_or(Verdict::Pass, |(reason, _)| Verdict::NotDecidable {
        reason,
        messages: evidence.messages,
        messages_needed: match (reason, class.unsuccessful) {
            // As many messages as bound the quantile 1 - limit, all of them successful.
            (Reason::Unsuccessful, Some(limit)) => messages_needed(1.0 - limit),
            _ => evidence.messages_needed,
        },
    }))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Met,
    Exceeded,
    Unknown,
}

fn compare<T: PartialOrd>(bounds: &Bounds<T>, limit: &T) -> Comparison {
    if bounds.upper.as_ref().is_some_and(|upper| upper <= limit) {
        Comparison::Met
    } else if bounds.lower.as_ref().is_some_and(|lower| lower > limit) {
        Comparison::Exceeded
    } else {
        Comparison::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence(
        lower: Option<u64>,
        upper: Option<u64>,
        unsuccessful: [Option<f64>; 2],
    ) -> Evidence {
        Evidence {
            messages: 1_000,
            messages_needed: 149,
            latency: Bounds {
                lower: lower.map(Duration::from_millis),
                upper: upper.map(Duration::from_millis),
            },
            unsuccessful: Bounds { lower: unsuccessful[0], upper: unsuccessful[1] },
        }
    }

    fn class(name: &str) -> ApplicationClass {
        ApplicationClass::all().into_iter().find(|class| class.name == name).unwrap()
    }

    #[test]
    fn the_confidence_bounds_decide() {
        let class = class("TT4");
        let judged = |lower, upper| {
            judge(&class, Path::Applications, &evidence(lower, upper, [None; 2])).unwrap()
        };
        assert_eq!(judged(Some(18), Some(20)), Verdict::Pass);
        assert_eq!(judged(None, Some(20)), Verdict::Pass);
        assert_eq!(judged(Some(21), None), Verdict::Fail { reason: Reason::Latency });
        let open = Verdict::NotDecidable {
            reason: Reason::Latency,
            messages: 1_000,
            messages_needed: 149,
        };
        assert_eq!(judged(Some(20), Some(21)), open);
        assert_eq!(judged(Some(1), None), open);
    }

    #[test]
    fn an_exceeded_limit_decides_alone() {
        let class = class("primary frequency control");
        let judged = |upper, unsuccessful| {
            judge(&class, Path::Network, &evidence(Some(1), upper, unsuccessful)).unwrap()
        };
        let fail = Verdict::Fail { reason: Reason::Unsuccessful };
        assert_eq!(judged(None, [Some(0.001), Some(0.002)]), fail);
        assert_eq!(judged(Some(40), [Some(0.0), Some(0.000_001)]), Verdict::Pass);
        // 1,000 messages without loss determine a share of at most 0.3 %.
        let open = judged(Some(40), [Some(0.0), Some(0.003)]);
        let reason = Reason::Unsuccessful;
        // ln 0.05 / ln 0.99999, and not the 149 of the percentile.
        let expected = Verdict::NotDecidable { reason, messages: 1_000, messages_needed: 299_572 };
        assert_eq!(open, expected);
    }

    #[test]
    fn no_limit_is_no_judgement() {
        let class = class("protection, internal");
        assert_eq!(judge(&class, Path::Network, &evidence(None, Some(1), [None; 2])), None);
    }
}
