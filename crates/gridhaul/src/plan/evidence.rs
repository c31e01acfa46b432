//! What the replications of a candidate show, and whether that decides about its limits.

use gridhaul_scenario::answer::{Answer, DeadlineCheck, Estimate, Metric, Point, Row};
use gridhaul_scenario::scenario::Scenario;

use super::limits::{Kind, Limit, Measured};

/// Fewest replications with which a candidate keeps its limits.
pub(crate) const REPLICATIONS_MIN: usize = 3;

/// The replications of one candidate.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    /// The answer to each, with one seed each.
    runs: Vec<Answer>,
    /// Measured time of each, in seconds.
    measured: f64,
}

/// What the simulation of a candidate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Every limit is kept, with a margin for other seeds.
    Keeps,
    /// These limits are broken, by index.
    Breaks(Vec<usize>),
    /// No limit is broken on average, but these are so close that another seed may break them.
    TooClose(Vec<usize>),
    /// These limits have no value in the simulation.
    Unknown(Vec<usize>),
    /// The network does not work as the limits presuppose, whatever their values are.
    Invalid(String),
}

/// State of one limit over some replications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interval {
    Kept,
    Broken,
    Open,
    Unknown,
}

impl Evidence {
    /// No replication yet of a scenario.
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let measured = scenario.duration.as_secs_f64() - scenario.warmup.as_secs_f64();
        Self { runs: Vec::new(), measured }
    }

    /// Adds a replication. An answer without points is none.
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

    /// Mean and interval of a limit over the replications.
    pub(crate) fn measured(&self, limit: &Limit) -> Measured {
        let samples: Option<Vec<f64>> = self.samples(limit).into_iter().collect();
        let estimate = samples.map_or_else(Estimate::default, |samples| Estimate::of(&samples));
        // Of what is infinite no mean is shown.
        let value = estimate.mean.filter(|mean| mean.is_finite());
        Measured { value, ci95: value.and(estimate.ci95), floor: None }
    }

    /// What the replications so far say; `None` where more are needed and `last` is false.
    pub(crate) fn decision(&self, limits: &[Limit], last: bool) -> Option<Decision> {
        if self.runs.is_empty() {
            return last.then(|| Decision::Unknown((0..limits.len()).collect()));
        }
        if let Some(reason) = self.points().find_map(|point| invalid(point, self.measured)) {
            return Some(Decision::Invalid(reason));
        }
        let states: Vec<_> = limits.iter().map(|limit| self.interval(limit)).collect();
        let with = |wanted: Interval| -> Vec<usize> {
            (0..states.len()).filter(|at| states[*at] == wanted).collect()
        };
        let [broken, unknown, open] =
            [Interval::Broken, Interval::Unknown, Interval::Open].map(with);
        match (broken.is_empty(), unknown.is_empty(), open.is_empty()) {
            (false, ..) => Some(Decision::Breaks(broken)),
            (_, false, _) => Some(Decision::Unknown(unknown)),
            (_, _, false) => last.then(|| self.exceeded(limits, open)),
            _ if self.runs.len() < REPLICATIONS_MIN => None,
            _ => Some(Decision::Keeps),
        }
    }

    /// The replications together: means and 95 % intervals.
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

    /// At the last replication: limits that are broken on average, or else those without margin.
    fn exceeded(&self, limits: &[Limit], open: Vec<usize>) -> Decision {
        let above = |at: &usize| {
            let limit = &limits[*at];
            self.measured(limit).value.is_none_or(|value| limit.used(value) > 1.0)
        };
        let broken: Vec<_> = open.iter().copied().filter(above).collect();
        if broken.is_empty() { Decision::TooClose(open) } else { Decision::Breaks(broken) }
    }

    /// On which side of the bound a limit lies.
    ///
    /// Broken: the 95 % confidence interval of the mean lies above the bound. Kept: the 95 % prediction
    /// interval of a further replication, `mean ± t s √(1 + 1/n)`, lies below; its half width is
    /// `√(n + 1)` times that of the mean (Hahn and Meeker 1991, section 4.8).
    fn interval(&self, limit: &Limit) -> Interval {
        let Some(samples) = self.samples(limit).into_iter().collect::<Option<Vec<f64>>>() else {
            return Interval::Unknown;
        };
        if samples.iter().any(|sample| sample.is_infinite()) {
            return Interval::Broken;
        }
        let estimate = Estimate::of(&samples);
        let (Some(mean), Some(half)) = (estimate.mean, estimate.ci95) else {
            return Interval::Open;
        };
        let further = half * ((samples.len() + 1) as f64).sqrt();
        if limit.used(mean - half) > 1.0 {
            Interval::Broken
        } else if limit.used(mean + further) <= 1.0 {
            Interval::Kept
        } else {
            Interval::Open
        }
    }
}

/// The value of a limit in one replication; infinite where the simulation knows that it is beyond any
/// delay that was measured.
fn sample(limit: &Limit, point: &Point) -> Option<f64> {
    let measured = limit.measure(point).value;
    let row = point.flows.iter().find(|row| row.name == limit.flow)?;
    let arrived = row.mean(Metric::Messages).is_some_and(|messages| messages > 0.0);
    // Messages that never arrived are among the slowest 2 %, and so the percentile has no value.
    let censored = matches!(limit.kind, Kind::DelayP98 | Kind::DelayMean) && arrived;
    measured.or_else(|| censored.then_some(f64::INFINITY))
}

/// Means over the replications of a row; a metric counts where it exists.
fn combine<'a>(row: &mut Row, rows: &(impl Iterator<Item = &'a Row> + Clone)) {
    for (metric, estimate) in &mut row.metrics {
        let samples: Vec<f64> = rows.clone().filter_map(|row| row.mean(*metric)).collect();
        *estimate = Estimate { censored: estimate.censored, ..Estimate::of(&samples) };
    }
}

/// Largest share of the connections that may have failed: more than one in a thousand are no matter of chance.
const FAILED_MAX: f64 = 1e-3;

/// Why the limits of a replication say nothing, whatever their values are: connections that never opened, or
/// messages that were due and did not arrive.
fn invalid(point: &Point, measured: f64) -> Option<String> {
    point.flows.iter().find_map(|row| unopened(row).or_else(|| undelivered(row, measured)))
}

fn unopened(row: &Row) -> Option<String> {
    let failed = row.mean(Metric::ConnectionsFailed)?;
    let all = failed + row.mean(Metric::ConnectionsOpened).unwrap_or(0.0);
    (failed > FAILED_MAX * all)
        .then(|| format!("{failed} of {all} connections of {} never opened", row.name))
}

/// Messages that did not arrive, beyond those that are on their way when the run ends: by Little's law, their
/// mean delay over the measured time.
fn undelivered(row: &Row, measured: f64) -> Option<String> {
    let due = row.mean(Metric::MessagesDue).filter(|due| *due > 0.0)?;
    let missing = 1.0 - row.mean(Metric::Messages)? / due;
    let under_way = row.mean(Metric::DelayMean).unwrap_or(0.0) / measured;
    (missing > 1.0 - DeadlineCheck::SHARE + under_way).then(|| {
        format!(
            "{:.1} % of the messages of {} that were due did not arrive",
            missing * 100.0,
            row.name
        )
    })
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::backend::{Backend, NoProgress};

    use super::super::fake::{Fake, district, plan_of, point};
    use super::super::limits::limits;
    use super::*;

    /// What these losses, one for each seed, say about a limit of 2 %.
    fn decision(losses: &[f64], last: bool) -> Option<Decision> {
        let scenario = district("seed = [1]", "seed = 1");
        let (plan, _) = plan_of(&scenario);
        let mut evidence = Evidence::of(&scenario);
        for (seed, loss) in (1..).zip(losses) {
            let run = Scenario { seed, ..scenario.clone() };
            let backend = Fake::new(|_: &Scenario| Some(*loss));
            evidence.add(backend.run(&run, &NoProgress).unwrap());
        }
        evidence.decision(&limits(&scenario, &plan), last)
    }

    #[test]
    fn a_candidate_is_decided_when_the_interval_lies_on_one_side() {
        // One replication has no interval.
        assert_eq!(decision(&[0.5], false), None);
        // Half width t(1) s/√2 = 12.7 × 0.001: 2.7 % to 5.3 %, above 2 %.
        assert_eq!(decision(&[0.039, 0.041], false), Some(Decision::Breaks(vec![0])));
        // 0.7 % to 3.3 %: on both sides.
        assert_eq!(decision(&[0.019, 0.021], false), None);
        // Two replications keep nothing, equal as they are.
        assert_eq!(decision(&[0.01, 0.01], false), None);
        assert_eq!(decision(&[0.01, 0.01, 0.01], false), Some(Decision::Keeps));
    }

    #[test]
    fn a_further_replication_must_keep_the_limit() {
        // Mean 1.5 %, s = 0.1 %: a further one is below 1.5 + 4.303 × 0.1 × √(4/3) = 1.997 %.
        assert_eq!(decision(&[0.014, 0.015, 0.016], false), Some(Decision::Keeps));
        // 2.012 %, although the interval of the mean ends at 1.76 %.
        assert_eq!(decision(&[0.01415, 0.01515, 0.01615], false), None);
        assert_eq!(decision(&[0.01415, 0.01515, 0.01615], true), Some(Decision::TooClose(vec![0])));
        assert_eq!(decision(&[0.019, 0.0225], true), Some(Decision::Breaks(vec![0])));
    }

    #[test]
    fn what_never_opened_or_arrived_keeps_no_limit() {
        let said = |metrics: &[(Metric, f64)]| invalid(&point(metrics), 50.0);
        let opened = |failed, opened| {
            said(&[(Metric::ConnectionsFailed, failed), (Metric::ConnectionsOpened, opened)])
        };
        assert_eq!((opened(0.0, 5000.0), opened(5.0, 4995.0)), (None, None));
        let told = opened(6.0, 4994.0).unwrap();
        assert_eq!(told, "6 of 5000 connections of reading never opened");
        let arrived = |messages, delay| {
            said(&[
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
        // 4 % are on their way when a run of 50 s ends, if each takes 2 s.
        assert_eq!(arrived(950.0, 2.0), None);
    }

    #[test]
    fn replications_are_put_together() {
        let scenario = district("seed = [1]", "seed = 1");
        let mut evidence = Evidence::of(&scenario);
        for (seed, loss) in [(4, 0.01), (5, 0.02), (6, 0.03)] {
            let backend = Fake::new(move |_: &Scenario| Some(loss));
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
