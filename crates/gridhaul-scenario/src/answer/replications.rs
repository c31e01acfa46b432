//! Combines the replications of each point into an answer.

use std::mem;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::stopping_rule::ExaminedIntervals;
use super::warning_counts::WarningCounts;
use super::{
    Answer, Capture, DeadlineCheck, DelayCounts, DelayDistribution, Estimate, EventLog, MemberRows,
    Metric, Point, Row, Scope, Series, StoppingRule, Warning,
};
use crate::run_error::RunError;
use crate::scenario::{Flow, Load, Scenario, ScenarioPoint};

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
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunRows {
    /// Metrics of each row of flows.
    pub flows: Vec<Metrics>,
    /// Metrics of each direction of each link.
    pub links: Vec<Metrics>,
    /// Message delays of each row of flows: `None` for rows without messages. May be shorter than
    /// `flows`.
    pub delays: Vec<Option<DelayCounts>>,
    /// Metrics of the members of the flows in `record.members`; not part of stored rows.
    #[serde(skip)]
    pub members: Vec<RunMembers>,
}

/// The metrics of the members of a flow in one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunMembers {
    /// Name of the flow.
    pub flow: String,
    /// Metrics of each member.
    pub members: Vec<Metrics>,
}

/// The results of one run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Metrics and delays.
    pub rows: RunRows,
    /// Recorded series, of the replication `record.replication`.
    pub series: Vec<Series>,
    /// Recorded packets of the same replication.
    pub captures: Vec<Capture>,
    /// Event logs of connections in it.
    pub event_logs: Vec<EventLog>,
    /// Warnings about this run.
    pub warnings: Vec<Warning>,
    /// Whether the machine was too busy for a run in real time.
    pub disturbed: bool,
}

/// A run that has ended, and its place in the answer.
#[derive(Debug)]
pub struct FinishedRun {
    /// Index of the point of the sweep.
    pub point: usize,
    /// Number of the replication.
    pub replication: u32,
    /// The results, or the failure.
    pub result: Result<Run, RunError>,
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

/// The rows of a point.
#[derive(Debug, Clone)]
pub struct PointRows {
    /// Rows of flows, of upstream connections of aggregators, and of comparisons of flows.
    pub flows: RowNames,
    /// Rows of directions of links.
    pub links: RowNames,
}

impl Answer {
    /// The answer of a backend from the runs that have ended, in any order; `rows` returns the rows
    /// of the point at an index.
    ///
    /// Of an interrupted point, the replications before the first unfinished one count, so that the
    /// answer is that of fewer replications. Of a point that is complete with fewer replications
    /// (`replications.until`), the others do not count.
    ///
    /// # Errors
    /// The failure of the first run that failed; no run was finished; the rows cannot be
    /// determined.
    pub fn of_replications(
        scenario: &Scenario,
        backend: &str,
        time: TimeBase,
        points: &[ScenarioPoint],
        mut ended: Vec<FinishedRun>,
        rows: impl Fn(usize) -> Result<PointRows, RunError>,
    ) -> Result<Self, RunError> {
        ended.sort_by_key(|run| (run.point, run.replication));
        let mut answer = Self::without_points(scenario, backend);
        let mut runs_of_points: Vec<Vec<Run>> = points.iter().map(|_| Vec::new()).collect();
        for FinishedRun { point, replication, result } in ended {
            let run = result?;
            let runs = &mut runs_of_points[point];
            if replication as usize == runs.len() {
                runs.push(run);
            }
        }
        let rule = StoppingRule::of(scenario);
        let mut intervals = ExaminedIntervals::new(rule);
        let mut warnings = WarningCounts::default();
        let mut finished = Vec::with_capacity(points.len());
        for (index, (point, mut runs)) in points.iter().zip(runs_of_points).enumerate() {
            let mut all: Vec<RunRows> =
                runs.iter_mut().map(|run| mem::take(&mut run.rows)).collect();
            let complete = rule.complete(&all).map(|count| count as usize);
            finished.push(complete.map_or(runs.len(), |_| scenario.replications.max() as usize));
            runs.truncate(complete.unwrap_or(runs.len()));
            all.truncate(runs.len());
            if runs.is_empty() {
                continue;
            }
            if complete.is_some() {
                intervals.add(&all);
            }
            let replication = point.scenario.record.replication;
            if let Some(recorded) = runs.get_mut(replication as usize) {
                answer.add_recordings(points.len() > 1, replication, recorded);
            }
            warnings.take(&mut runs);
            let disturbed = runs.iter().filter(|run| run.disturbed).count() as u32;
            let point = Point::of_runs(point, &rows(index)?, &all, time);
            answer.points.push(Point { disturbed, ..point });
        }
        answer.warnings.extend(warnings.into_warnings());
        answer.warnings.extend(intervals.warning());
        answer.warn_of_failed_connections(scenario);
        answer.warnings.sort();
        answer.warnings.dedup();
        answer.with_finished(&finished, scenario.replications.max() as usize)
    }

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
            replications: scenario.replications.max(),
            incomplete: false,
            points: Vec::new(),
            warnings: scenario.warnings(),
            series: Vec::new(),
            captures: Vec::new(),
            event_logs: Vec::new(),
        }
    }
}

impl Point {
    /// Means and confidence intervals over the runs of a point, and its deadline checks.
    #[must_use]
    pub fn of_runs(
        point: &ScenarioPoint,
        names: &PointRows,
        runs: &[RunRows],
        time: TimeBase,
    ) -> Self {
        // Equal replications are not sufficient: a rare loss may have occurred in none of them.
        let deterministic = time == TimeBase::Virtual
            && point.scenario.is_deterministic()
            && runs.windows(2).all(|pair| pair[0] == pair[1]);
        let delays = delays(&names.flows, runs);
        let flows = combine(&names.flows, Scope::Flow, runs, deterministic);
        let links = combine(&names.links, Scope::Link, runs, deterministic);
        let deadline_checks = deadline_checks(&point.scenario, &flows);
        Self {
            parameters: point.parameters.clone(),
            numbers: point.numbers.clone(),
            deterministic,
            replications: point.scenario.replications.until().map(|_| runs.len() as u32),
            disturbed: 0,
            labels: point.labels.clone(),
            flows,
            links,
            deadline_checks,
            delays,
            members: members(runs),
        }
    }
}

impl RunRows {
    fn of_scope(&self, scope: Scope) -> &[Metrics] {
        match scope {
            Scope::Flow => &self.flows,
            Scope::Link => &self.links,
        }
    }
}

/// The deadline checks of the flows with a deadline.
fn deadline_checks(scenario: &Scenario, flows: &[Row]) -> Vec<DeadlineCheck> {
    let limited = scenario.flow.iter().zip(flows);
    let check = |((name, flow), row): ((&String, &Flow), &Row)| {
        let deadline = flow.effective_deadline()?;
        let in_time = row.mean(Metric::DeadlineMet);
        Some(match flow.load {
            Load::Transfer(_) => DeadlineCheck::of_transfers(name, deadline, in_time),
            _ => DeadlineCheck::of_deadline(name, deadline, in_time),
        })
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

/// The members' metrics of each run, one entry per run and flow.
fn members(runs: &[RunRows]) -> Vec<MemberRows> {
    let of_run = |(replication, run): (usize, &RunRows)| {
        let rows = run.members.iter().map(move |RunMembers { flow, members }| MemberRows {
            flow: flow.clone(),
            replication: replication as u32,
            metrics: columns(members.iter()),
        });
        rows.collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// Transposes the metrics of several rows: for each metric its value in each row.
fn columns<'a>(
    rows: impl ExactSizeIterator<Item = &'a Metrics>,
) -> IndexMap<Metric, Vec<Option<f64>>> {
    let count = rows.len();
    let mut columns: IndexMap<Metric, Vec<Option<f64>>> = IndexMap::new();
    for (row, metrics) in rows.enumerate() {
        for &(metric, value) in metrics {
            columns.entry(metric).or_insert_with(|| vec![None; count])[row] = Some(value);
        }
    }
    columns.sort_unstable_keys();
    columns
}

/// Means over the replications for each row.
fn combine(names: &RowNames, scope: Scope, runs: &[RunRows], deterministic: bool) -> Vec<Row> {
    let row = |(index, name): (usize, &(String, u64))| {
        let mut samples: Vec<(Metric, Vec<f64>)> = Vec::new();
        for run in runs {
            for (place, &(metric, value)) in run.of_scope(scope)[index].iter().enumerate() {
                // Runs mostly have the same metrics in the same order.
                let at_place = samples.get(place).is_some_and(|(known, _)| *known == metric);
                let place = if at_place { Some(place) } else { None };
                match place.or_else(|| samples.iter().position(|(known, _)| *known == metric)) {
                    Some(place) => samples[place].1.push(value),
                    None => samples.push((metric, vec![value])),
                }
            }
        }
        let estimate = |values: &[f64]| match values.first() {
            Some(&value) if deterministic => Estimate::exact(value, values.len() as u32),
            _ => Estimate::of(values),
        };
        let known = samples.iter().map(|(metric, values)| (*metric, estimate(values)));
        let mut row = Row::new(name.clone(), scope, known);
        row.mark_censored();
        if !deterministic && runs.len() > 1 {
            row.replications = columns(runs.iter().map(|run| &run.of_scope(scope)[index]));
        }
        row
    };
    names.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::RecordedBytes;
    use super::*;

    fn scenario() -> Scenario {
        let text = "title = \"t\"\nduration = \"1 s\"\nreplications = 3\n[node]\na = {}\nb = {}\n\
                    [link.l]\nfrom = \"a\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n\
                    [flow.f]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n\
                    [[sweep]]\nvary.\"link.l.both.delay\" = [\"1 ms\", \"2 ms\"]";
        Scenario::from_toml(text, "test.toml").unwrap()
    }

    /// A run with this goodput, and a series named after it.
    fn ended(point: usize, replication: u32, goodput: f64) -> FinishedRun {
        let flows = vec![vec![(Metric::Goodput, goodput)]];
        let rows = RunRows { flows, ..RunRows::default() };
        let series = vec![Series { name: format!("s{goodput}"), ..Series::default() }];
        let result = Ok(Run { rows, series, ..Run::default() });
        FinishedRun { point, replication, result }
    }

    fn answer(ended: Vec<FinishedRun>) -> Result<Answer, RunError> {
        let scenario = scenario();
        let points = scenario.points().unwrap();
        let rows = |_| Ok(PointRows { flows: vec![("f".to_owned(), 1)], links: Vec::new() });
        Answer::of_replications(&scenario, "sim", TimeBase::Virtual, &points, ended, rows)
    }

    #[test]
    fn a_recording_that_is_full_has_a_warning() {
        let mut full = ended(1, 0, 10.0);
        let run = full.result.as_mut().unwrap();
        let name = "wire.forward".to_owned();
        let pcapng = RecordedBytes::default();
        run.captures = vec![Capture { name, pcapng, omitted_packets: 7 }];
        let answer = answer(vec![ended(0, 0, 1.0), full]).unwrap();
        let warning = answer.warnings.iter().find(|own| own.about == "wire.forward-1").unwrap();
        assert!(warning.message.contains("lacks 7 later packets"), "{warning:?}");
        assert!(!answer.warnings.iter().any(|own| own.about.starts_with("s10")));
    }

    #[test]
    fn replications_after_the_first_unfinished_one_do_not_count() {
        let runs = vec![ended(1, 1, 40.0), ended(1, 0, 10.0), ended(0, 1, 5.0), ended(1, 2, 70.0)];
        let answer = answer(runs).unwrap();
        assert!(answer.incomplete);
        let [point] = &answer.points[..] else { panic!("{} points", answer.points.len()) };
        assert_eq!(point.parameters["link.l.both.delay"], "2 ms");
        assert_eq!(point.flows[0].mean(Metric::Goodput), Some(40.0));
        let [series] = &answer.series[..] else { panic!("{:?}", answer.series) };
        assert_eq!((series.name.as_str(), series.point), ("s10-0", 0));
    }

    #[test]
    fn a_row_has_the_value_of_each_replication() {
        let answer = answer((0..3).map(|run| ended(0, run, f64::from(run) * 10.0)).collect());
        let mut answer = answer.unwrap();
        let known =
            |answer: &Answer| answer.points[0].flows[0].replications.get(&Metric::Goodput).cloned();
        assert_eq!(known(&answer), Some(vec![Some(0.0), Some(10.0), Some(20.0)]));
        assert_eq!(answer.points[0].numbers["link.l.both.delay_s"], 0.001);
        answer.remove_replications();
        assert_eq!(known(&answer), None);
    }

    #[test]
    fn a_quantity_that_one_replication_lacks_is_unknown_in_its_row() {
        let rows = [vec![(Metric::Goodput, 1.0), (Metric::RttMean, 0.1)], vec![]];
        let columns = columns(rows.iter());
        assert_eq!(columns[&Metric::Goodput], [Some(1.0), None]);
        assert_eq!(columns[&Metric::RttMean], [Some(0.1), None]);
    }

    #[test]
    fn the_failure_of_the_first_run_that_failed_is_reported() {
        let failure = |replication, message: &str| FinishedRun {
            point: 0,
            replication,
            result: Err(RunError::Machine(message.to_owned())),
        };
        let error = answer(vec![failure(2, "later"), ended(1, 0, 1.0), failure(1, "first")]);
        assert_eq!(error.unwrap_err().to_string(), "first");
    }
}
