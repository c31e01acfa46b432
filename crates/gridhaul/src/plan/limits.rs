//! Limits of a plan, and whether an answer meets them.

use gridhaul_report::format;
use gridhaul_scenario::answer::{DeadlineCheck, Metric, Point, Row};
use gridhaul_scenario::scenario::{PlanSpecification, Scenario};
use serde::Serialize;

/// A limit of a flow.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Limit {
    pub(crate) flow: String,
    pub(crate) kind: LimitKind,
    /// Largest allowed loss or delay; for a deadline, the largest ratio of late messages.
    pub(crate) bound: f64,
    /// The deadline in seconds; for delays, the bound.
    seconds: f64,
}

/// The limited quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LimitKind {
    Loss,
    DelayMean,
    DelayP98,
    Deadline,
}

/// The value of a limited quantity in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Measured {
    /// The value, in the unit of the bound; `None` if the backend does not compute it.
    pub(crate) value: Option<f64>,
    /// Half width of its 95 % confidence interval.
    pub(crate) ci95: Option<f64>,
    /// If the value is unknown: a lower bound, the mean delay of a segment.
    pub(crate) floor: Option<f64>,
}

/// Whether a limit is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LimitState {
    Met,
    Violated,
    Unknown,
}

/// The limits of a plan, in the order of the file.
pub(crate) fn limits(scenario: &Scenario, plan: &PlanSpecification) -> Vec<Limit> {
    let mut limits = Vec::new();
    for (name, limit) in &plan.limit {
        let mut add = |kind, bound: f64, seconds: f64| {
            limits.push(Limit { flow: name.clone(), kind, bound, seconds });
        };
        if let Some(loss) = limit.loss {
            add(LimitKind::Loss, loss.ratio(), 0.0);
        }
        if let Some(time) = limit.delay_mean {
            add(LimitKind::DelayMean, time.as_secs_f64(), time.as_secs_f64());
        }
        if let Some(time) = limit.delay_p98 {
            add(LimitKind::DelayP98, time.as_secs_f64(), time.as_secs_f64());
        }
        let deadline = scenario.flow.get(name).and_then(|flow| flow.effective_deadline());
        if let (true, Some(time)) = (limit.deadline, deadline) {
            add(LimitKind::Deadline, 1.0 - DeadlineCheck::SHARE, time.as_secs_f64());
        }
    }
    limits
}

impl Limit {
    /// The limited quantity: `loss of reading`.
    pub(crate) fn name(&self) -> String {
        let quantity = match self.kind {
            LimitKind::Loss => "loss",
            LimitKind::DelayMean => "mean delay",
            LimitKind::DelayP98 => "98th-percentile delay",
            LimitKind::Deadline => "late messages",
        };
        format!("{quantity} of {}", self.flow)
    }

    /// The bound: `at most 2 %`.
    pub(crate) fn bound_words(&self) -> String {
        match self.kind {
            LimitKind::Deadline => {
                format!("at most {} after {}", self.shown(self.bound), self.time(self.seconds))
            }
            _ => format!("at most {}", self.shown(self.bound)),
        }
    }

    /// A value in the unit of the bound.
    pub(crate) fn shown(&self, value: f64) -> String {
        match self.kind {
            LimitKind::Loss | LimitKind::Deadline => format!("{} %", digits(value * 100.0)),
            LimitKind::DelayMean | LimitKind::DelayP98 => self.time(value),
        }
    }

    fn time(&self, seconds: f64) -> String {
        let rounded = format!("{seconds:.2e}").parse().unwrap_or(seconds);
        format::value(rounded, "s")
    }

    /// Ratio of a value to the limit: up to 1, the limit is met.
    pub(crate) fn utilisation(&self, value: f64) -> f64 {
        match (value > 0.0, self.bound > 0.0) {
            (_, true) => value / self.bound,
            (true, false) => f64::INFINITY,
            (false, false) => 1.0,
        }
    }

    /// The limited quantity at a point of an answer.
    pub(crate) fn measure(&self, point: &Point) -> Measured {
        let Some(row) = point.flows.iter().find(|row| row.name == self.flow) else {
            return Measured::default();
        };
        let found = |metric: Metric, map: &dyn Fn(f64) -> f64| {
            let estimate = row.metrics.get(&metric).copied().unwrap_or_default();
            (estimate.mean.map(map), estimate.ci95)
        };
        let (value, ci95) = match self.kind {
            LimitKind::Loss => with_unsent(row, found(Metric::SegmentLossTotal, &|loss| loss)),
            LimitKind::DelayMean if is_mean_censored(row) => (None, None),
            LimitKind::DelayMean => found(Metric::DelayMean, &|delay| delay),
            LimitKind::DelayP98 => found(Metric::DelayP98, &|delay| delay),
            LimitKind::Deadline => found(Metric::DeadlineMet, &|share| 1.0 - share),
        };
        let floor = if value.is_none() { self.floor(row) } else { None };
        Measured { value, ci95, floor }
    }

    /// A lower bound: the delay of a message is at least that of one of its segments. For the 98th
    /// percentile the mean segment delay is a cautious estimate, which excludes only infeasible
    /// candidates.
    fn floor(&self, row: &Row) -> Option<f64> {
        let segment_delay = row.mean(Metric::SegmentDelayTotal)?;
        match self.kind {
            LimitKind::Loss => None,
            LimitKind::DelayMean | LimitKind::DelayP98 => Some(segment_delay),
            // A mean delay above the deadline: most messages are late.
            LimitKind::Deadline => Some(if segment_delay > self.seconds { 1.0 } else { 0.0 }),
        }
    }

    /// Whether a value meets the limit.
    pub(crate) fn state(&self, measured: &Measured) -> LimitState {
        match (measured.value, measured.floor) {
            (Some(value), _) if self.utilisation(value) <= 1.0 => LimitState::Met,
            (Some(_), _) => LimitState::Violated,
            (None, Some(floor)) if floor > 0.0 && self.utilisation(floor) > 1.0 => {
                LimitState::Violated
            }
            (None, _) => LimitState::Unknown,
        }
    }
}

/// The loss of segments combined with that of messages that were never sent (their connection was
/// not established), of lost datagrams, and of all messages if none arrived.
fn with_unsent(row: &Row, (segments, ci95): MeanWithInterval) -> MeanWithInterval {
    let due = row.mean(Metric::MessagesDue).is_some_and(|due| due > 0.0);
    if due && row.mean(Metric::Messages) == Some(0.0) {
        return (Some(1.0), None);
    }
    match row.mean(Metric::MessageLoss) {
        Some(unsent) if unsent > 0.0 || segments.is_none() => {
            (Some(1.0 - (1.0 - segments.unwrap_or(0.0)) * (1.0 - unsent)), ci95)
        }
        _ => (segments, ci95),
    }
}

/// Whether more than 2 % of the messages are missing, so that the 98th percentile is unknown and
/// the mean over the others is biased.
fn is_mean_censored(row: &Row) -> bool {
    row.mean(Metric::Messages).is_some() && row.mean(Metric::DelayP98).is_none()
}

/// A mean and the half width of its 95 % confidence interval.
type MeanWithInterval = (Option<f64>, Option<f64>);

/// Three significant digits.
fn digits(value: f64) -> String {
    let rounded = format!("{value:.2e}").parse().unwrap_or(value);
    format::number(rounded)
}

#[cfg(test)]
mod tests {
    use super::super::test_backends::{district, plan_of, point};
    use super::*;

    fn limits_of(text: &str) -> Vec<Limit> {
        let mut scenario = district("seed = [1]", "seed = 1");
        let flow = scenario.flow.get_mut("reading").unwrap();
        flow.deadline = Some(gridhaul_scenario::units::Duration::from_secs(15));
        let limit = toml::from_str(text).unwrap();
        scenario.plan.as_mut().unwrap().limit = [("reading".to_owned(), limit)].into();
        let (plan, _) = plan_of(&scenario);
        limits(&scenario, &plan)
    }

    #[test]
    fn a_limit_reads_its_own_metric() {
        let all = "loss = \"2 %\"\ndelay_mean = \"1 s\"\ndelay_p98 = \"20 s\"\ndeadline = true";
        let point = point(&[
            (Metric::SegmentLossTotal, 0.01),
            (Metric::DelayMean, 1.5),
            (Metric::DelayP98, 20.0),
            (Metric::DeadlineMet, 0.979),
        ]);
        let limits = limits_of(all);
        let states: Vec<_> =
            limits.iter().map(|limit| limit.state(&limit.measure(&point))).collect();
        assert_eq!(
            states,
            [LimitState::Met, LimitState::Violated, LimitState::Met, LimitState::Violated]
        );
        let used: Vec<_> = limits
            .iter()
            .map(|limit| (limit.utilisation(limit.measure(&point).value.unwrap()) * 100.0).round())
            .collect();
        assert_eq!(used, [50.0, 150.0, 100.0, 105.0]);
        let words: Vec<_> = limits.iter().map(Limit::bound_words).collect();
        assert_eq!(words, ["at most 2 %", "at most 1 s", "at most 20 s", "at most 2 % after 15 s"]);
    }

    #[test]
    fn an_unknown_value_violates_a_limit_only_by_its_lower_bound() {
        let limit = &limits_of("delay_p98 = \"2 s\"")[0];
        let state = |segment_delay: f64| {
            let point = point(&[(Metric::SegmentDelayTotal, segment_delay)]);
            limit.state(&limit.measure(&point))
        };
        assert_eq!((state(0.3), state(2.1)), (LimitState::Unknown, LimitState::Violated));
        assert_eq!(limit.state(&Measured::default()), LimitState::Unknown);
        let late = &limits_of("deadline = true")[0];
        let measured =
            |segment_delay| late.measure(&point(&[(Metric::SegmentDelayTotal, segment_delay)]));
        assert_eq!(late.state(&measured(14.0)), LimitState::Unknown);
        assert_eq!(late.state(&measured(16.0)), LimitState::Violated);
    }

    #[test]
    fn messages_that_were_never_sent_count_as_lost() {
        let limit = &limits_of("loss = \"2 %\"")[0];
        let loss = |metrics: &[(Metric, f64)]| limit.measure(&point(metrics)).value;
        let segments = (Metric::SegmentLossTotal, 0.01);
        let [due, none] = [(Metric::MessagesDue, 100.0), (Metric::Messages, 0.0)];
        assert_eq!(loss(&[segments, due, (Metric::Messages, 100.0)]), Some(0.01));
        assert_eq!(loss(&[due, none]), Some(1.0), "no message was sent");
        assert_eq!(loss(&[segments, due, none]), Some(1.0));
        let half = (Metric::MessageLoss, 0.5);
        assert_eq!(loss(&[segments, due, (Metric::Messages, 50.0), half]), Some(1.0 - 0.99 * 0.5));
        assert_eq!(loss(&[due, (Metric::Messages, 50.0), half]), Some(0.5), "datagrams");
        assert_eq!(loss(&[]), None);
    }

    #[test]
    fn a_censored_mean_meets_no_limit() {
        let limit = &limits_of("delay_mean = \"2 s\"")[0];
        let mean = [(Metric::Messages, 50.0), (Metric::DelayMean, 1.0)];
        assert_eq!(limit.measure(&point(&mean)).value, None);
        let complete = [mean[0], mean[1], (Metric::DelayP98, 1.5)];
        assert_eq!(limit.measure(&point(&complete)).value, Some(1.0));
        assert_eq!(limit.measure(&point(&mean[1..])).value, Some(1.0), "by the model");
    }

    #[test]
    fn a_limit_of_zero_is_met_by_zero_only() {
        let limit = &limits_of("loss = \"0 %\"")[0];
        let state = |loss| limit.state(&limit.measure(&point(&[(Metric::SegmentLossTotal, loss)])));
        assert_eq!((state(0.0), state(1e-9)), (LimitState::Met, LimitState::Violated));
    }
}
