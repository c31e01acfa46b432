//! The number of replications of a point, as its results decide (`replications.until`).

use super::{Estimate, Metric, Metrics, RunRows, Scope, Warning};
use crate::scenario::{DecidingMetric, NarrowInterval, Replications, Scenario};
use crate::units::counted;

/// The rule by which the points of a scenario are complete.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StoppingRule {
    replications: Replications,
    /// Number of flows of the scenario: further rows of flows are upstream connections of
    /// aggregators.
    flows: usize,
}

/// The number of replications of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeededReplications {
    /// The point is complete with its first replications, so many of them.
    Complete(u32),
    /// At least so many replications are needed.
    AtLeast(u32),
}

/// Deciding metrics of a flow without `replications.of`: the first that any replication has.
const DECIDING: [Metric; 3] = [Metric::DelayMean, Metric::CompletionTime, Metric::Goodput];

impl StoppingRule {
    /// The rule of a scenario, for all points of its sweep.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Self {
        Self { replications: scenario.replications, flows: scenario.flow.len() }
    }

    /// The smallest and the largest number of replications of a point.
    #[must_use]
    pub const fn replications(&self) -> Replications {
        self.replications
    }

    /// Whether a point is complete with these results of its first replications, in their order.
    /// The decision for a number of replications does not depend on those that follow.
    #[must_use]
    pub fn decide(&self, runs: &[RunRows]) -> NeededReplications {
        let (mut stage, max) = (self.replications.min(), self.replications.max());
        loop {
            let Some(finished) = runs.get(..stage as usize) else {
                return NeededReplications::AtLeast(stage);
            };
            if stage >= max || self.is_narrow(finished) {
                return NeededReplications::Complete(stage);
            }
            stage = stage.saturating_add((stage / 4).max(1)).min(max);
        }
    }

    /// The number of replications with which a point is complete, if it is.
    #[must_use]
    pub fn complete(&self, runs: &[RunRows]) -> Option<u32> {
        match self.decide(runs) {
            NeededReplications::Complete(count) => Some(count),
            NeededReplications::AtLeast(_) => None,
        }
    }

    /// Whether every deciding interval is narrow. A quantity that no replication has does not
    /// decide; one that a single replication has is not known well enough.
    fn is_narrow(&self, runs: &[RunRows]) -> bool {
        let Replications::Until(rule) = self.replications else { return false };
        self.deciding(&rule, runs).all(|estimate| is_narrow(&estimate, &rule))
    }

    /// The estimates that decide about a point.
    fn deciding<'a>(
        &self,
        rule: &NarrowInterval,
        runs: &'a [RunRows],
    ) -> impl Iterator<Item = Estimate> + use<'a> {
        let (scope, count, candidates) = match rule.of {
            None => (Scope::Flow, self.flows, DECIDING.to_vec()),
            Some(of) => (column(of).info().scope, usize::MAX, vec![column(of)]),
        };
        let rows = runs.first().map_or(0, |run| rows_of(run, scope).len()).min(count);
        (0..rows).filter_map(move |row| {
            let metrics = || runs.iter().filter_map(move |run| rows_of(run, scope).get(row));
            let samples = |metric: Metric| {
                metrics().filter_map(|metrics| value(metrics, metric)).collect::<Vec<f64>>()
            };
            let mut known = candidates.iter().map(|metric| samples(*metric));
            known.find(|samples| !samples.is_empty()).map(|samples| Estimate::of(&samples))
        })
    }
}

impl RunRows {
    /// A copy of what decides about replications. The delays of messages take memory, and do not
    /// decide.
    #[must_use]
    pub fn deciding(&self) -> Self {
        let (flows, links) = (self.flows.clone(), self.links.clone());
        Self { flows, links, ..Self::default() }
    }
}

/// Points whose intervals were examined, for the warning about wide and unknown ones.
#[derive(Debug)]
pub(super) struct ExaminedIntervals {
    rule: StoppingRule,
    points: usize,
    wide: usize,
    unknown: usize,
}

impl ExaminedIntervals {
    pub(super) const fn new(rule: StoppingRule) -> Self {
        Self { rule, points: 0, wide: 0, unknown: 0 }
    }

    /// Counts a complete point with these results.
    pub(super) fn add(&mut self, runs: &[RunRows]) {
        let Replications::Until(rule) = self.rule.replications else { return };
        let deciding: Vec<Estimate> = self.rule.deciding(&rule, runs).collect();
        self.points += 1;
        self.unknown += usize::from(deciding.is_empty());
        self.wide += usize::from(deciding.iter().any(|estimate| !is_narrow(estimate, &rule)));
    }

    /// The warning about complete points whose intervals are wide or unknown.
    pub(super) fn warning(&self) -> Option<Warning> {
        let Replications::Until(rule) = self.rule.replications else { return None };
        let (points, mut parts) = (counted(self.points, "point"), Vec::new());
        if self.wide > 0 {
            parts.push(format!(
                "{} of {points} have an interval wider than {} after {} replications",
                self.wide, rule.until, rule.max
            ));
        }
        if self.unknown > 0 {
            let metric =
                rule.of.map_or_else(|| "a deciding metric".into(), |of| column(of).to_string());
            parts.push(format!(
                "{} of {points} have no value of {metric}, and therefore {} replications only",
                self.unknown, rule.min
            ));
        }
        let message = parts.join("; ");
        (!message.is_empty()).then(|| Warning { about: "replications".to_owned(), message })
    }
}

const fn column(of: DecidingMetric) -> Metric {
    match of {
        DecidingMetric::Goodput => Metric::Goodput,
        DecidingMetric::CompletionTime => Metric::CompletionTime,
        DecidingMetric::LastCompletion => Metric::LastCompletion,
        DecidingMetric::DelayMean => Metric::DelayMean,
        DecidingMetric::DelayP98 => Metric::DelayP98,
        DecidingMetric::DeadlineMet => Metric::DeadlineMet,
        DecidingMetric::MessageLoss => Metric::MessageLoss,
        DecidingMetric::RttMean => Metric::RttMean,
        DecidingMetric::RetransmissionRatio => Metric::RetransmissionRatio,
        DecidingMetric::Utilisation => Metric::Utilisation,
        DecidingMetric::LossRatio => Metric::LossRatio,
        DecidingMetric::QueueMean => Metric::QueueMean,
        DecidingMetric::LinkDelayMean => Metric::LinkDelayMean,
    }
}

fn is_narrow(estimate: &Estimate, rule: &NarrowInterval) -> bool {
    let (Some(mean), Some(half_width)) = (estimate.mean, estimate.ci95) else { return false };
    half_width <= rule.until.ratio() * mean.abs()
}

fn rows_of(run: &RunRows, scope: Scope) -> &[Metrics] {
    match scope {
        Scope::Flow => &run.flows,
        Scope::Link => &run.links,
    }
}

fn value(metrics: &Metrics, wanted: Metric) -> Option<f64> {
    let found = metrics.iter().find(|(metric, _)| *metric == wanted);
    found.map(|&(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Probability;

    fn rule(of: Option<DecidingMetric>) -> StoppingRule {
        let until = Probability::new(0.1).unwrap();
        let rule = NarrowInterval { until, min: 3, max: 12, of };
        StoppingRule { replications: Replications::Until(rule), flows: 1 }
    }

    /// Runs with these goodputs of the flow, and of a row of an aggregator that varies widely.
    fn runs(goodputs: &[f64]) -> Vec<RunRows> {
        let run = |(index, goodput): (usize, &f64)| RunRows {
            flows: vec![
                vec![(Metric::Goodput, *goodput)],
                vec![(Metric::Goodput, 10.0_f64.powi(index as i32))],
            ],
            links: vec![vec![(Metric::LossRatio, 0.0)]],
            ..RunRows::default()
        };
        goodputs.iter().enumerate().map(run).collect()
    }

    #[test]
    fn equal_results_need_the_smallest_number_of_replications() {
        assert_eq!(rule(None).decide(&runs(&[5.0; 2])), NeededReplications::AtLeast(3));
        assert_eq!(rule(None).complete(&runs(&[5.0; 3])), Some(3));
        let zero = runs(&[0.0; 3]);
        assert_eq!(rule(None).complete(&zero), Some(3), "the interval of zeros is zero");
    }

    #[test]
    fn a_wide_interval_needs_more_up_to_the_largest_number() {
        let wide: Vec<f64> = (0..12).map(|run| if run % 2 == 0 { 1.0 } else { 9.0 }).collect();
        for finished in 3..12 {
            assert_eq!(rule(None).complete(&runs(&wide[..finished])), None, "{finished}");
        }
        assert_eq!(rule(None).complete(&runs(&wide)), Some(12));
    }

    #[test]
    fn later_replications_change_no_decision() {
        let mut goodputs = vec![5.0, 9.0, 5.1, 5.0, 5.1];
        goodputs.extend([5.0; 7]);
        let needed = rule(None).complete(&runs(&goodputs));
        let count = needed.expect("complete") as usize;
        assert!((4..=12).contains(&count), "{count}");
        assert_eq!(rule(None).complete(&runs(&goodputs[..count])), needed);
        assert_eq!(
            rule(None).decide(&runs(&goodputs[..count - 1])),
            NeededReplications::AtLeast(count as u32)
        );
    }

    #[test]
    fn the_chosen_metric_decides_and_an_absent_one_does_not() {
        let wide: Vec<f64> = (1..=3).map(f64::from).collect();
        assert_eq!(rule(Some(DecidingMetric::LossRatio)).complete(&runs(&wide)), Some(3));
        assert_eq!(rule(Some(DecidingMetric::RttMean)).complete(&runs(&wide)), Some(3));
        assert_eq!(rule(None).complete(&runs(&wide)), None);
        let mut once = runs(&[5.0; 3]);
        once[0].flows[0].push((Metric::DelayMean, 0.1));
        assert_eq!(rule(None).complete(&once), None, "one value has no interval");
    }

    #[test]
    fn a_warning_counts_wide_and_unknown_intervals() {
        let mut intervals = ExaminedIntervals::new(rule(None));
        intervals.add(&runs(&[5.0; 3]));
        assert_eq!(intervals.warning(), None);
        intervals.add(&runs(&[1.0, 9.0, 1.0]));
        intervals.add(&[RunRows { flows: vec![vec![]], ..RunRows::default() }]);
        let message = intervals.warning().expect("a warning").message;
        assert_eq!(
            message,
            "1 of 3 points have an interval wider than 10 % after 12 replications; 1 of 3 points \
             have no value of a deciding metric, and therefore 3 replications only"
        );
    }

    #[test]
    fn deciding_metrics_are_named_as_their_columns() {
        for of in [DecidingMetric::Goodput, DecidingMetric::DelayP98, DecidingMetric::QueueMean] {
            let name = serde_json::to_value(of).unwrap();
            assert_eq!(name.as_str(), Some(column(of).info().column));
        }
    }

    #[test]
    fn a_fixed_number_decides_alone() {
        let rule = StoppingRule { replications: Replications::Fixed(2), flows: 1 };
        assert_eq!(rule.complete(&runs(&[1.0])), None);
        assert_eq!(rule.complete(&runs(&[1.0, 9.0, 5.0])), Some(2));
    }
}
