//! Combines the rows of replications into the points of an answer.

use indexmap::IndexMap;

use super::{
    Answer, DeadlineCheck, DelayCounts, DelayDistribution, Estimate, Metric, Point, Row, Scope,
    Warning,
};
use crate::scenario::{ChannelTransitions, Directions, Flow, Loss, Scenario, ScenarioPoint};

/// The metrics of one row in one run.
pub type Metrics = Vec<(Metric, f64)>;

/// Metrics of the segments with data that senders have sent; without any, the ratio is unknown.
pub fn segment_metrics(segments: u64, retransmissions: u64, into: &mut Metrics) {
    into.push((Metric::SegmentsSent, segments as f64));
    into.push((Metric::Retransmissions, retransmissions as f64));
    if segments > 0 {
        let ratio = retransmissions as f64 / segments as f64;
        into.push((Metric::RetransmissionRatio, ratio));
    }
}

/// The rows of one run, in the order of the rows of the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunRows {
    /// Metrics of each row of flows.
    pub flows: Vec<Metrics>,
    /// Metrics of each direction of each link.
    pub links: Vec<Metrics>,
    /// Message delays of each row of flows: `None` for rows without messages. May be shorter than
    /// `flows`.
    pub delays: Vec<Option<DelayCounts>>,
}

/// Time base of a backend, which determines whether its replications can be equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeBase {
    /// Simulated time: replications without random numbers are equal to the last bit.
    Virtual,
    /// Real time: no two runs are equal.
    Real,
}

/// Name and number of equal flows or links of each row.
pub type RowNames = Vec<(String, u64)>;

impl Answer {
    /// The answer of a backend to a scenario, without points yet.
    #[must_use]
    pub fn without_points(scenario: &Scenario, backend: &str) -> Self {
        Self {
            schema: Self::SCHEMA,
            gridhaul: env!("CARGO_PKG_VERSION").to_owned(),
            backend: backend.to_owned(),
            title: scenario.title.clone(),
            scenario_sha256: scenario.sha256(),
            seed: scenario.seed,
            replications: scenario.replications,
            incomplete: false,
            points: Vec::new(),
            warnings: scenario.warnings(),
            series: Vec::new(),
            captures: Vec::new(),
        }
    }
}

impl Point {
    /// Means and confidence intervals over the runs of a point, and its deadline checks.
    #[must_use]
    pub fn of_runs(
        point: &ScenarioPoint,
        (flows, links): (&RowNames, &RowNames),
        runs: &[RunRows],
        time: TimeBase,
    ) -> Self {
        // Equal replications are not sufficient: a rare loss may have occurred in none of them.
        let deterministic = time == TimeBase::Virtual
            && point.scenario.is_deterministic()
            && runs.windows(2).all(|pair| pair[0] == pair[1]);
        let delays = delays(flows, runs);
        let rows = |names, scope| combine((names, scope), runs, deterministic);
        let (flows, links) = (rows(flows, Scope::Flow), rows(links, Scope::Link));
        let deadline_checks = deadline_checks(&point.scenario, &flows);
        let (parameters, labels) = (point.parameters.clone(), point.labels.clone());
        Self { parameters, labels, deterministic, flows, links, deadline_checks, delays }
    }
}

impl RunRows {
    fn of_scope(&self, scope: Scope) -> &[Metrics] {
        match scope {
            Scope::Flow => &self.flows,
            Scope::Link => &self.links,
        }
    }

    /// Warnings about the validity of these rows.
    #[must_use]
    pub fn warnings(&self, scenario: &Scenario) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((name, flow), metrics) in scenario.flow.iter().zip(&self.flows) {
            let value = |wanted: Metric| {
                metrics.iter().find(|(metric, _)| *metric == wanted).map(|&(_, value)| value)
            };
            let nothing_delivered = value(Metric::Goodput) == Some(0.0);
            let unchecked =
                flow.effective_deadline().is_some() && value(Metric::DeadlineMet).is_none();
            if unchecked && !nothing_delivered {
                warnings.push(Warning {
                    about: format!("flow.{name}.deadline"),
                    message:
                        "no message was due early enough for the deadline check; make `duration` \
                              longer than the sum of `warmup` and the deadline"
                            .to_owned(),
                });
            }
            if value(Metric::TransfersUnfinished).is_some_and(|share| share > 0.0) {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message:
                        "transfers had not finished at the end of a run; completion_time_s and \
                              transfer_rate_bit_per_s exclude them, and their share is \
                              transfers_unfinished_ratio; increase `duration`"
                            .to_owned(),
                });
            }
            let has_delays = value(Metric::DelayMean).is_some();
            if has_delays && value(Metric::DelayP98).is_none() {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message: "more than 2 % of the messages had not arrived at the end of the run, although \
                              they were due earlier than the delay of the others: the 98th percentile of the \
                              delay is among them and unknown; mean and largest delay are those of the \
                              messages that arrived"
                        .to_owned(),
                });
            }
            if nothing_delivered {
                warnings.push(Warning {
                    about: format!("flow.{name}"),
                    message:
                        "nothing was delivered in the measured time; check `duration` and the links \
                              on the path"
                            .to_owned(),
                });
            }
        }
        warnings.extend(sparse_bursts(scenario, &self.links));
        warnings
    }
}

/// Links whose losses come in bursts of packets, but whose packets are further apart than a burst of back-to-back
/// packets lasts: a utilisation below the probability that a burst ends. Each burst then lasts for many packet intervals.
fn sparse_bursts(scenario: &Scenario, links: &[Metrics]) -> Vec<Warning> {
    let directions = Directions::new(scenario);
    let rows = directions.rows().iter().zip(Directions::keys(scenario)).zip(links);
    let sparse = rows.filter_map(|(((name, _), direction), metrics)| {
        let Some(Loss::GilbertElliott(channel)) = &direction.loss else { return None };
        let ChannelTransitions::PerPacket { bad_to_good, .. } = channel.transitions() else {
            return None;
        };
        let value = |wanted| metrics.iter().find(|(metric, _)| *metric == wanted).map(|it| it.1);
        let used = value(Metric::Utilisation)?;
        let packets = value(Metric::PacketsOut)?;
        (packets > 0.0 && used < bad_to_good.ratio()).then(|| Warning {
            about: format!("link.{name}.loss.gilbert_elliott"),
            message: "the packets are further apart than a burst of back-to-back packets lasts, so that a burst, \
                      which is counted in packets here, lasts for many of their intervals; use mean_good and \
                      mean_bad for bursts in time"
                .to_owned(),
        })
    });
    sparse.collect()
}

/// The deadline checks of the flows with a deadline.
fn deadline_checks(scenario: &Scenario, flows: &[Row]) -> Vec<DeadlineCheck> {
    let limited = scenario.flow.iter().zip(flows);
    let check = |((name, flow), row): ((&String, &Flow), &Row)| {
        let deadline = flow.effective_deadline()?;
        Some(DeadlineCheck::of_deadline(name, deadline, row.mean(Metric::DeadlineMet)))
    };
    limited.filter_map(check).collect()
}

/// The delay distribution of each row with messages, pooled over the runs.
fn delays(flows: &RowNames, runs: &[RunRows]) -> IndexMap<String, Option<DelayDistribution>> {
    let pooled = flows.iter().enumerate().filter_map(|(index, (name, _))| {
        let mut own = runs.iter().filter_map(|run| run.delays.get(index)?.as_ref()).peekable();
        own.peek()?;
        let mut all = DelayCounts::default();
        own.for_each(|run| all.pool(run));
        Some((name.clone(), all.distribution()))
    });
    pooled.collect()
}

/// Means over the replications for each row.
fn combine((names, scope): (&RowNames, Scope), runs: &[RunRows], deterministic: bool) -> Vec<Row> {
    let row = |(index, name): (usize, &(String, u64))| {
        let mut samples: IndexMap<Metric, Vec<f64>> = IndexMap::new();
        for run in runs {
            for &(metric, value) in &run.of_scope(scope)[index] {
                samples.entry(metric).or_default().push(value);
            }
        }
        let estimate = |values: &[f64]| match values.first() {
            Some(&value) if deterministic => Estimate::exact(value, values.len() as u32),
            _ => Estimate::of(values),
        };
        let known = samples.iter().map(|(metric, values)| (*metric, estimate(values)));
        let mut row = Row::new(name.clone(), scope, known);
        row.mark_censored();
        row
    };
    names.iter().enumerate().map(row).collect()
}
