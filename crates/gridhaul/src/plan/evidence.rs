//! Replications of a candidate, and the statistical decision on its limits.

use gridhaul_scenario::answer::{Answer, DeadlineCheck, Estimate, Metric, Point, Row};
use gridhaul_scenario::scenario::Scenario;

use super::candidate::ParameterSet;
use super::limits::{Limit, LimitKind, Measured};

/// Minimum number of replications for the decision that a candidate meets its limits.
pub(crate) const REPLICATIONS_MIN: usize = 3;

/// The replications of one candidate.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// Answer of each replication; each has its own seed.
    runs: Vec<Answer>,
    /// Measured time of each replication (without warm-up), in seconds.
    measured: f64,
}

/// Result of the simulation of a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Every replication meets every limit, with a margin for other seeds.
    Met,
    /// Some replications violate these limits, by index, although their means do not.
    Occasional { limits: Vec<usize>, runs: usize },
    /// These limits are violated, by index.
    Violated(Vec<usize>),
    /// No mean violates its limit, but these are so close that another seed may violate them.
    TooClose(Vec<usize>),
    /// These limits have no value in the simulation.
    Unknown(Vec<usize>),
    /// The network does not work, so that the values of the limits mean nothing.
    Invalid(String),
    /// The values of all limits are those of another candidate in the same replications: in what
    /// both differ has no influence on them, and the other one fails.
    Equal { to: ParameterSet, decision: Box<Decision> },
}

/// Position of a confidence interval relative to its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IntervalState {
    /// Below the bound: the limit is met.
    Below,
    /// Above the bound: the limit is violated.
    Above,
    /// Contains the bound: undecided.
    Contains,
    /// The limit has no value.
    Unknown,
}

impl Evidence {
    /// No replications of a scenario yet.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let measured = scenario.duration.as_secs_f64() - scenario.warmup.as_secs_f64();
        Self { runs: Vec::new(), measured }
    }

    /// Adds a replication. An answer without points is ignored.
    pub(crate) fn add(&mut self, answer: Answer) {
        if !answer.points.is_empty() {
            self.runs.push(answer);
        }
    }

    /// Number of replications.
    pub(crate) fn replications(&self) -> usize {
        self.runs.len()
    }

    /// The seeds of the replications.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        self.runs.iter().map(|run| run.seed).collect()
    }

    /// The value of a limit in each replication.
    pub(crate) fn samples(&self, limit: &Limit) -> Vec<Option<f64>> {
        self.points().map(|point| sample(limit, point)).collect()
    }

    /// Mean and confidence interval of a limit over the replications.
    pub(crate) fn measured(&self, limit: &Limit) -> Measured {
        let samples: Option<Vec<f64>> = self.samples(limit).into_iter().collect();
        let estimate = samples.map_or_else(Estimate::default, |samples| Estimate::of(&samples));
        // An infinite mean has no value to show.
        let value = estimate.mean.filter(|mean| mean.is_finite());
        Measured { value, ci95: value.and(estimate.ci95), floor: None }
    }

    /// Some limits by their indices: name, measured value if there is one, and the text of `end`.
    pub(crate) fn describe(
        &self,
        limits: &[Limit],
        which: &[usize],
        end: impl Fn(&Limit) -> String,
    ) -> String {
        let texts = which.iter().map(|&index| {
            let limit = &limits[index];
            let value = self.measured(limit).value;
            let value = value.map_or_else(String::new, |value| format!(" {}", limit.shown(value)));
            format!("{}{value}{}", limit.name(), end(limit))
        });
        texts.collect::<Vec<_>>().join(", ")
    }

    /// The decision after the replications so far; `None` if more are needed and `last` is false.
    pub(crate) fn decision(&self, limits: &[Limit], last: bool) -> Option<Decision> {
        if self.runs.is_empty() {
            return last.then(|| Decision::Unknown((0..limits.len()).collect()));
        }
        if let Some(reason) = invalid(&self.points().collect::<Vec<_>>(), self.measured) {
            return Some(Decision::Invalid(reason));
        }
        let states: Vec<_> = limits.iter().map(|limit| self.interval(limit)).collect();
        let with = |wanted: IntervalState| -> Vec<usize> {
            (0..states.len()).filter(|at| states[*at] == wanted).collect()
        };
        let [violated, unknown, undecided] =
            [IntervalState::Above, IntervalState::Unknown, IntervalState::Contains].map(with);
        match (violated.is_empty(), unknown.is_empty(), undecided.is_empty()) {
            (false, ..) => Some(Decision::Violated(violated)),
            (_, false, _) => Some(Decision::Unknown(unknown)),
            (_, _, false) => last.then(|| self.final_decision(limits, undecided)),
            _ if self.runs.len() < REPLICATIONS_MIN => None,
            _ => Some(self.in_every_run(limits)),
        }
    }

    /// The decision without assumptions about the distribution: [`Decision::Met`] if each
    /// replication meets every limit.
    pub(crate) fn in_every_run(&self, limits: &[Limit]) -> Decision {
        if let Some(reason) = invalid(&self.points().collect::<Vec<_>>(), self.measured) {
            return Decision::Invalid(reason);
        }
        let violates = |limit: &Limit, point: &Point| {
            sample(limit, point).is_none_or(|value| limit.utilisation(value) > 1.0)
        };
        let in_a_run = |at: &usize| self.points().any(|point| violates(&limits[*at], point));
        let limits_violated = (0..limits.len()).filter(in_a_run).collect();
        let fails = |point: &&Point| limits.iter().any(|limit| violates(limit, point));
        match self.points().filter(fails).count() {
            0 => Decision::Met,
            runs => Decision::Occasional { limits: limits_violated, runs },
        }
    }

    /// Whether no random number influences the replications, so that further ones would be equal.
    pub(crate) fn is_deterministic(&self) -> bool {
        self.points().all(|point| point.deterministic)
    }

    /// An upper bound of the messages in the buffer of an aggregator: the sum of the largest
    /// numbers of all rows. `None` if a replication has no such value.
    pub(crate) fn buffer_max(&self) -> Option<f64> {
        let of_run = |point: &Point| {
            let values: Vec<f64> =
                point.flows.iter().filter_map(|row| row.mean(Metric::BufferMax)).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        let values: Option<Vec<f64>> = self.points().map(of_run).collect();
        values?.into_iter().max_by(f64::total_cmp)
    }

    /// Number of the replications that both have, if these have the same values of all limits.
    pub(crate) fn equal_runs(&self, other: &Self, limits: &[Limit]) -> Option<usize> {
        let common = self.replications().min(other.replications());
        let first = |evidence: &Self, limit| {
            let mut samples = evidence.samples(limit);
            samples.truncate(common);
            samples
        };
        let is_equal = limits.iter().all(|limit| first(self, limit) == first(other, limit));
        is_equal.then_some(common)
    }

    /// One answer with the means and 95 % confidence intervals over the replications.
    pub(crate) fn answer(&self) -> Option<Answer> {
        let mut answer = self.runs.first()?.clone();
        answer.replications = self.runs.len() as u32;
        answer.warnings = self.runs.iter().flat_map(|run| run.warnings.clone()).collect();
        answer.warnings.sort();
        answer.warnings.dedup();
        answer.points.truncate(1);
        let point = answer.points.first_mut()?;
        let points: Vec<_> = self.points().collect();
        for (at, row) in point.flows.iter_mut().enumerate() {
            combine(row, &points.iter().filter_map(|point| point.flows.get(at)));
        }
        for (at, row) in point.links.iter_mut().enumerate() {
            combine(row, &points.iter().filter_map(|point| point.links.get(at)));
        }
        for check in &mut point.deadline_checks {
            let row = point.flows.iter().find(|row| row.name == check.flow);
            check.measured = row.and_then(|row| row.mean(Metric::DeadlineMet));
            check.met = check.measured.map(|share| share >= DeadlineCheck::SHARE);
        }
        Some(answer)
    }

    fn points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().filter_map(|run| run.points.first())
    }

    /// The decision after the last replication: limits violated on average, or those without
    /// margin.
    fn final_decision(&self, limits: &[Limit], undecided: Vec<usize>) -> Decision {
        let above = |at: &usize| {
            let limit = &limits[*at];
            self.measured(limit).value.is_none_or(|value| limit.utilisation(value) > 1.0)
        };
        let violated: Vec<_> = undecided.iter().copied().filter(above).collect();
        if violated.is_empty() {
            Decision::TooClose(undecided)
        } else {
            Decision::Violated(violated)
        }
    }

    /// Position of the confidence interval relative to the bound of a limit.
    ///
    /// Violated: the 95 % confidence interval of the mean lies above the bound. Met: the 95 %
    /// prediction interval of a further replication, `mean ± t s √(1 + 1/n)`, lies below; its half
    /// width is `√(n + 1)` times that of the mean (Hahn and Meeker 1991, section 4.8).
    fn interval(&self, limit: &Limit) -> IntervalState {
        let Some(samples) = self.samples(limit).into_iter().collect::<Option<Vec<f64>>>() else {
            return IntervalState::Unknown;
        };
        if samples.iter().any(|sample| sample.is_infinite()) {
            return IntervalState::Above;
        }
        let estimate = Estimate::of(&samples);
        let (Some(mean), Some(half)) = (estimate.mean, estimate.ci95) else {
            return IntervalState::Contains;
        };
        let further = half * ((samples.len() + 1) as f64).sqrt();
        if limit.utilisation(mean - half) > 1.0 {
            IntervalState::Above
        } else if limit.utilisation(mean + further) <= 1.0 {
            IntervalState::Below
        } else {
            IntervalState::Contains
        }
    }
}

/// The value of a limit in one replication; infinite if a delay is censored, hence longer than
/// every measured delay.
fn sample(limit: &Limit, point: &Point) -> Option<f64> {
    let measured = limit.measure(point).value;
    let row = point.flows.iter().find(|row| row.name == limit.flow)?;
    let arrived = row.mean(Metric::Messages).is_some_and(|messages| messages > 0.0);
    // Messages that never arrived are among the slowest 2 %, so that the percentile has no value.
    let censored = matches!(limit.kind, LimitKind::DelayP98 | LimitKind::DelayMean) && arrived;
    measured.or_else(|| censored.then_some(f64::INFINITY))
}

/// Means over the replications of a row; each metric over the replications in which it has a value.
fn combine<'a>(row: &mut Row, rows: &(impl Iterator<Item = &'a Row> + Clone)) {
    for (metric, estimate) in &mut row.metrics {
        let samples: Vec<f64> = rows.clone().filter_map(|row| row.mean(*metric)).collect();
        *estimate = Estimate { censored: estimate.censored, ..Estimate::of(&samples) };
    }
}

/// Largest tolerated ratio of failed connections, 0.1 %.
const FAILED_MAX: f64 = 1e-3;

/// Why the values of the limits mean nothing: in a replication connections were not established,
/// or, over all replications, messages that were due did not arrive.
fn invalid(points: &[&Point], measured: f64) -> Option<String> {
    let rows = || points.iter().flat_map(|point| &point.flows);
    let rows_of = |name: &str| rows().filter(|row| row.name == name).collect::<Vec<&Row>>();
    let mut first = points.iter().take(1).flat_map(|point| &point.flows);
    let missing = || first.find_map(|row| undelivered(&row.name, &rows_of(&row.name), measured));
    rows().find_map(not_established).or_else(missing)
}

fn not_established(row: &Row) -> Option<String> {
    let failed = row.mean(Metric::ConnectionsFailed)?;
    let all = failed + row.mean(Metric::ConnectionsOpened).unwrap_or(0.0);
    (failed > FAILED_MAX * all)
        .then(|| format!("{failed} of {all} connections of {} were never established", row.name))
}

/// Messages that did not arrive, except those in transit at the end of the runs; by Little's law,
/// their ratio is the mean delay divided by the measured time. In a single run the bursts of its
/// last seconds decide, so that the messages of all runs are counted together.
fn undelivered(name: &str, runs: &[&Row], measured: f64) -> Option<String> {
    let sum = |metric| runs.iter().map(|row| row.mean(metric)).sum::<Option<f64>>();
    let due = sum(Metric::MessagesDue).filter(|due| *due > 0.0)?;
    let missing = 1.0 - sum(Metric::Messages)? / due;
    let delays = runs.iter().filter_map(|row| row.mean(Metric::DelayMean));
    let in_transit = delays.sum::<f64>() / runs.len() as f64 / measured;
    (missing > 1.0 - DeadlineCheck::SHARE + in_transit).then(|| {
        format!("{:.1} % of the messages of {name} that were due did not arrive", missing * 100.0)
    })
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::backend::{Backend, NoProgress};

    use super::super::limits::limits;
    use super::super::test_backends::{FakeBackend, district, plan_of, point};
    use super::*;

    /// The decision on a limit of 2 % for these losses, one per seed.
    fn decision(losses: &[f64], last: bool) -> Option<Decision> {
        let (evidence, limits) = evidence_of(losses);
        evidence.decision(&limits, last)
    }

    fn decision_in_every_run(losses: &[f64]) -> Decision {
        let (evidence, limits) = evidence_of(losses);
        evidence.in_every_run(&limits)
    }

    fn evidence_of(losses: &[f64]) -> (Evidence, Vec<Limit>) {
        let scenario = district("seed = [1]", "seed = 1");
        let (plan, _) = plan_of(&scenario);
        let mut evidence = Evidence::of(&scenario);
        for (seed, loss) in (1..).zip(losses) {
            let run = Scenario { seed, ..scenario.clone() };
            let backend = FakeBackend::new(|_: &Scenario| Some(*loss));
            evidence.add(backend.run(&run, &NoProgress).unwrap());
        }
        (evidence, limits(&scenario, &plan))
    }

    #[test]
    fn a_candidate_is_decided_when_the_interval_excludes_the_limit() {
        // One replication has no interval.
        assert_eq!(decision(&[0.5], false), None);
        // Half width t(1) s/√2 = 12.7 × 0.001: 2.7 % to 5.3 %, above 2 %.
        assert_eq!(decision(&[0.039, 0.041], false), Some(Decision::Violated(vec![0])));
        // 0.7 % to 3.3 %: contains the limit.
        assert_eq!(decision(&[0.019, 0.021], false), None);
        // Two replications are too few to meet a limit, even if they are equal.
        assert_eq!(decision(&[0.01, 0.01], false), None);
        assert_eq!(decision(&[0.01, 0.01, 0.01], false), Some(Decision::Met));
    }

    #[test]
    fn a_further_replication_must_meet_the_limit() {
        // The mean of 0.7 % is far below the limit, but one of ten replications is above.
        let mut losses = [0.0; 10];
        losses[..2].copy_from_slice(&[0.021, 0.007]);
        let occasional = Decision::Occasional { limits: vec![0], runs: 1 };
        assert_eq!(decision(&losses, true), Some(occasional.clone()));
        assert_eq!(decision_in_every_run(&losses), occasional);
        assert_eq!(decision_in_every_run(&losses[1..]), Decision::Met);
        // Mean 1.5 %, s = 0.1 %: a further one is below 1.5 + 4.303 × 0.1 × √(4/3) = 1.997 %.
        assert_eq!(decision(&[0.014, 0.015, 0.016], false), Some(Decision::Met));
        // 2.012 %, although the confidence interval of the mean ends at 1.76 %.
        assert_eq!(decision(&[0.01415, 0.01515, 0.01615], false), None);
        assert_eq!(decision(&[0.01415, 0.01515, 0.01615], true), Some(Decision::TooClose(vec![0])));
        assert_eq!(decision(&[0.019, 0.0225], true), Some(Decision::Violated(vec![0])));
    }

    #[test]
    fn failed_connections_and_missing_messages_invalidate_a_replication() {
        let reason = |metrics: &[(Metric, f64)]| invalid(&[&point(metrics)], 50.0);
        let opened = |failed, opened| {
            reason(&[(Metric::ConnectionsFailed, failed), (Metric::ConnectionsOpened, opened)])
        };
        assert_eq!((opened(0.0, 5000.0), opened(5.0, 4995.0)), (None, None));
        let message = opened(6.0, 4994.0).unwrap();
        assert_eq!(message, "6 of 5000 connections of reading were never established");
        let arrived = |messages, delay| {
            reason(&[
                (Metric::MessagesDue, 1000.0),
                (Metric::Messages, messages),
                (Metric::DelayMean, delay),
            ])
        };
        assert_eq!(arrived(981.0, 0.1), None);
        assert_eq!(
            arrived(970.0, 0.1).unwrap(),
            "3.0 % of the messages of reading that were due did not arrive"
        );
        // With a delay of 2 s, 4 % of the messages are in transit when a run of 50 s ends.
        assert_eq!(arrived(950.0, 2.0), None);
        // A burst at the end of one run of three is in transit there: 1 % over all runs.
        let run = |messages| point(&[(Metric::MessagesDue, 1000.0), (Metric::Messages, messages)]);
        let runs = [run(970.0), run(1000.0), run(1000.0)];
        assert_eq!(invalid(&runs.each_ref(), 50.0), None);
    }

    #[test]
    fn replications_are_combined() {
        let scenario = district("seed = [1]", "seed = 1");
        let mut evidence = Evidence::of(&scenario);
        for (seed, loss) in [(4, 0.01), (5, 0.02), (6, 0.03)] {
            let backend = FakeBackend::new(move |_: &Scenario| Some(loss));
            let run = Scenario { seed, ..scenario.clone() };
            evidence.add(backend.run(&run, &NoProgress).unwrap());
        }
        let answer = evidence.answer().unwrap();
        let estimate = answer.points[0].flows[0].metrics[&Metric::SegmentLossTotal];
        assert!((estimate.mean.unwrap() - 0.02).abs() < 1e-12 && estimate.n == 3);
        assert!((estimate.ci95.unwrap() - 4.303 * 0.01 / 3_f64.sqrt()).abs() < 1e-6);
        assert_eq!((answer.replications, evidence.seeds()), (3, vec![4, 5, 6]));
    }
}
