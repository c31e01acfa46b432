//! The quantities used in sentences, and the significance of differences.

use gridhaul_scenario::answer::{Estimate, Metric, Row};

use crate::format::{self, Unit};

/// A quantity of a flow with its name in sentences.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Measure {
    pub(super) metric: Metric,
    pub(super) name: &'static str,
    /// Whether a larger value is better.
    pub(super) larger_is_better: bool,
}

const fn measure(metric: Metric, name: &'static str, larger_is_better: bool) -> Measure {
    Measure { metric, name, larger_is_better }
}

const COMPLETION: Measure = measure(Metric::CompletionTime, "completion time", false);
const GOODPUT: Measure = measure(Metric::Goodput, "goodput", true);
const RTT: Measure = measure(Metric::RttMean, "mean round-trip time", false);
const RETRANSMISSION: Measure = measure(Metric::RetransmissionRatio, "retransmission ratio", false);
const DELAY_P98: Measure = measure(Metric::DelayP98, "98th percentile of message delay", false);
const DELAY_MEAN: Measure = measure(Metric::DelayMean, "mean message delay", false);
const DEADLINE_MET: Measure =
    measure(Metric::DeadlineMet, "share of messages that met the deadline", true);
const WORST_MEMBER: Measure =
    measure(Metric::MemberDeliveredMin, "delivery ratio of the worst member", true);
const LOSS: Measure = measure(Metric::MessageLoss, "message loss", false);

/// Quantities of message flows, transfers and streams, by importance.
const OF_MESSAGES: &[Measure] =
    &[WORST_MEMBER, DELAY_P98, DEADLINE_MET, LOSS, DELAY_MEAN, GOODPUT, RETRANSMISSION];
const OF_TRANSFERS: &[Measure] = &[COMPLETION, RTT, RETRANSMISSION];
const OF_STREAMS: &[Measure] = &[GOODPUT, RTT, RETRANSMISSION];

/// The quantities of a flow with these rows, by importance.
pub(super) fn of_rows<'a>(rows: &(impl Iterator<Item = &'a Row> + Clone)) -> Vec<Measure> {
    let known = |metric| rows.clone().any(|row| row.mean(metric).is_some());
    let all = if known(Metric::DelayMean) || known(Metric::DelayP98) || known(Metric::DeadlineMet) {
        OF_MESSAGES
    } else if known(Metric::CompletionTime) {
        OF_TRANSFERS
    } else {
        OF_STREAMS
    };
    all.iter().copied().filter(|measure| known(measure.metric)).collect()
}

impl Measure {
    pub(super) fn of(&self, row: &Row) -> Option<Estimate> {
        let estimate = row.metrics.get(&self.metric)?;
        estimate.mean.is_some_and(f64::is_finite).then_some(*estimate)
    }

    pub(super) fn unit(&self) -> Unit<'static> {
        match self.metric.info() {
            info if info.column.ends_with("_ratio") => Unit::Share,
            info => Unit::Of(info.unit),
        }
    }

    pub(super) fn text(&self, value: f64) -> String {
        format::rough(value, self.unit())
    }

    /// The value with its confidence interval, if known.
    pub(super) fn with_interval(&self, estimate: &Estimate) -> String {
        let Some(mean) = estimate.mean else { return format::UNKNOWN.to_owned() };
        match (self.unit(), estimate.ci95.filter(|half| *half > 0.0)) {
            (Unit::Of(unit), Some(_)) => format::estimate(estimate, unit),
            (Unit::Share, Some(half)) => {
                format!("{} %", format::interval(mean * 100.0, Some(half * 100.0), 1.0))
            }
            _ => self.text(mean),
        }
    }

    /// Distance of two values: the absolute logarithm of their ratio. Ratios below 0.1 % count as
    /// 0.1 %, since smaller differences are irrelevant to a user.
    pub(super) fn distance(&self, from: f64, to: f64) -> f64 {
        let floor = if self.unit() == Unit::Share { 1e-3 } else { 0.0 };
        let (from, to) = (from.abs().max(floor), to.abs().max(floor));
        match (from, to) {
            (0.0, 0.0) => 0.0,
            (0.0, _) | (_, 0.0) => DISTANCE_MAX,
            _ => (to / from).ln().abs().min(DISTANCE_MAX),
        }
    }
}

/// Upper bound of the distance, a factor of e³ = 20.
const DISTANCE_MAX: f64 = 3.0;

/// Relative difference below which a change is not reported.
pub(super) const NOTABLE: f64 = 0.02;

/// Whether two estimates differ by more than their joint 95 % confidence interval; intervals of
/// independent means add in squares. Without an interval any difference counts.
pub(super) fn is_significant(one: &Estimate, other: &Estimate) -> bool {
    let (Some(a), Some(b)) = (one.mean, other.mean) else { return false };
    let half = |estimate: &Estimate| estimate.ci95.filter(|half| half.is_finite()).unwrap_or(0.0);
    (a - b).abs() > half(one).hypot(half(other))
}
