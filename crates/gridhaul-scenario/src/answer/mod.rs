//! Answers: results with the same structure for all backends.

mod capture;
mod deadline_check;
mod delay;
mod estimate;
mod event_log;
mod ineffective_keys;
mod metric;
mod recorded_bytes;
mod recording;
mod replications;
mod row_warnings;
#[cfg(any(test, feature = "schema"))]
mod rows_schema;
mod series;
mod stopping_rule;
mod unopened_connections;
mod warning_counts;

use std::mem;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::run_error::RunError;
use crate::scenario::Record;
use crate::units::counted;

pub use capture::Capture;
pub use deadline_check::DeadlineCheck;
pub use delay::{DelayCounts, DelayDistribution};
pub use estimate::Estimate;
pub use event_log::{
    Cause, ConnectionEvent, EventInfo, EventLog, EventLogWriter, LossRecoveryState, NAMES,
    NameInfo, NodeCause, NodeEvent, NodeState, Timer,
};
pub use metric::{Metric, MetricInfo, Scope};
pub use recorded_bytes::{RecordedBytes, RecordedBytesWriter, RecordingFile};
pub use recording::{LossReason, LostMessage, Recording, WindowSample};
pub use replications::{
    FinishedRun, Metrics, PointRows, RowNames, Run, RunMembers, RunRows, TimeBase, segment_metrics,
};
pub use series::{
    Column, ColumnData, ColumnInfo, ColumnKind, Series, SeriesBatch, SeriesColumn, SeriesInfo,
};
pub use stopping_rule::{NeededReplications, StoppingRule};

/// The answer of one backend to one scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Answer {
    /// Version of this schema.
    pub schema: u32,
    /// Version of gridhaul that computed the answer.
    pub gridhaul: String,
    /// Backend that computed the answer: `sim`, `model`, `paper-model`, `printed-model` or `emu`.
    pub backend: String,
    /// Title of the scenario.
    pub title: String,
    /// SHA-256 of the merged scenario without its `folder`, in hexadecimal.
    pub scenario_sha256: String,
    /// Seed of the scenario.
    pub seed: u64,
    /// Number of replications of each point; with `replications.until` the largest number.
    pub replications: u32,
    /// Whether the run was interrupted: `points` then contains only finished points, each with its
    /// finished replications, and a warning has their numbers.
    #[serde(default)]
    pub incomplete: bool,
    /// One entry per combination of swept values; a single entry without a sweep.
    pub points: Vec<Point>,
    /// Warnings about the validity of the results.
    pub warnings: Vec<Warning>,
    /// Recorded series. In results folders they are Parquet files.
    #[serde(skip)]
    pub series: Vec<Series>,
    /// Recorded packets, as pcapng files.
    #[serde(skip)]
    pub captures: Vec<Capture>,
    /// Event logs of connections, as JSON lines.
    #[serde(skip)]
    pub event_logs: Vec<EventLog>,
}

/// The answer for one combination of swept values.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Point {
    /// Swept keys and their values, as text.
    pub parameters: IndexMap<String, String>,
    /// Swept values as numbers in base units, by `<key>_<unit>`: for the key `link.a.both.delay`
    /// and the value `40 ms`, the name that ends in `delay_s` has the number 0.04. Truth values,
    /// names, words and tables have none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub numbers: IndexMap<String, f64>,
    /// Whether no random number influences the results of this point: all its replications are
    /// equal to the last bit, and there is no confidence interval. Always true for the analytical
    /// model, never for the emulator.
    #[serde(default)]
    pub deterministic: bool,
    /// With `replications.until`, the number of replications of this point. Absent: that of the
    /// answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replications: Option<u32>,
    /// Number of replications of an emulation during which the machine was too busy. Their results,
    /// and so those of this point, are not trustworthy; a warning has the cause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub disturbed: u32,
    /// Swept keys and the labels of their values, for sweep entries with `label`.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub labels: IndexMap<String, String>,
    /// One row per flow of the scenario; equal flows share a row. Then one row per group of
    /// upstream connections of an aggregator, named `<aggregator>><end>`. Then one row per entry of
    /// `record.fairness`, with the fairness of its flows and, unless they have transfers, the sum
    /// of their goodputs.
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "rows_schema::flow_rows"))]
    pub flows: Vec<Row>,
    /// One row per direction of each link, named `<link>.forward` or `<link>.reverse`. Then one row
    /// per class of each `scheduler`, named `<link>.forward.<class>` or `<link>.reverse.<class>`;
    /// its utilisation is the share of the direction that the class uses.
    #[cfg_attr(any(test, feature = "schema"), schemars(schema_with = "rows_schema::link_rows"))]
    pub links: Vec<Row>,
    /// One deadline check per flow with a deadline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deadline_checks: Vec<DeadlineCheck>,
    /// Delay distribution per flow with messages, by the name of the flow; null if no message
    /// arrived, and in answers of the analytical model.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub delays: IndexMap<String, Option<DelayDistribution>>,
    /// Metrics of the members of the flows in `record.members`: one entry per flow and replication.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberRows>,
}

/// The metrics of one flow or one direction of a link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Row {
    /// Name of the flow or direction.
    pub name: String,
    /// Number of equal flows or links that share this row.
    pub count: u64,
    /// Metrics by column name, `<quantity>_<unit>`. Every column of a flow, or of a direction of a
    /// link, is present; the mean is null if the quantity does not exist or is not known.
    pub metrics: IndexMap<Metric, Estimate>,
    /// With `record.each_replication`, the value of each known metric in each replication, in their
    /// order; null where the quantity does not exist. Absent with one replication and if the point
    /// is deterministic, since each replication then has the mean.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub replications: IndexMap<Metric, Vec<Option<f64>>>,
}

/// The metrics of each member of a flow in one replication.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct MemberRows {
    /// Name of the flow.
    pub flow: String,
    /// Number of the replication, from 0.
    pub replication: u32,
    /// For each metric, its value for each member, in their order; null where it does not exist.
    pub metrics: IndexMap<Metric, Vec<Option<f64>>>,
}

/// A warning about the validity of an answer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
pub struct Warning {
    /// Subject: a key of the scenario or a name in it.
    pub about: String,
    /// Text of the warning.
    pub message: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Answer {
    /// Version of the schema that this code writes.
    pub const SCHEMA: u32 = 1;

    /// The answer of a run whose points have `finished` of `replications` replications. If some are
    /// missing, the run was interrupted, and the answer is marked as incomplete.
    ///
    /// # Errors
    /// No replication was finished.
    pub fn with_finished(
        mut self,
        finished: &[usize],
        replications: usize,
    ) -> Result<Self, RunError> {
        let complete = finished.iter().filter(|&&runs| runs == replications).count();
        if complete == finished.len() {
            return Ok(self);
        }
        if finished.iter().all(|&runs| runs == 0) {
            return Err(RunError::Interrupted);
        }
        let partial = finished.iter().filter(|&&runs| runs > 0 && runs < replications);
        let partial: Vec<_> = partial.map(ToString::to_string).collect();
        let mut message =
            format!("interrupted: {complete} of {} complete", counted(finished.len(), "point"));
        if !partial.is_empty() {
            let runs = partial.join(", ");
            message += &format!("; an incomplete one has {runs} of {replications} replications");
        }
        self.incomplete = true;
        // First, because it concerns every number of the answer.
        self.warnings.insert(0, Warning { about: "run".to_owned(), message });
        Ok(self)
    }

    /// Number of replications of a point of this answer.
    #[must_use]
    pub fn replications_of(&self, point: &Point) -> u32 {
        point.replications.unwrap_or(self.replications)
    }

    /// Removes the values of single replications unless they are recorded
    /// (`record.each_replication`): the state in which an answer is stored.
    pub fn remove_unrecorded(&mut self, record: &Record) {
        if !record.each_replication {
            self.remove_replications();
        }
    }

    /// Removes the values of single replications, for a file that does not have them.
    pub fn remove_replications(&mut self) {
        for point in &mut self.points {
            point.flows.iter_mut().chain(&mut point.links).for_each(|row| row.replications.clear());
        }
    }

    /// Adds series, captures and event logs of the recorded run of the point that is added next. If
    /// there are several points, the number of the point is appended to the names.
    fn add_recordings(&mut self, several_points: bool, replication: u32, recorded: &mut Run) {
        let point = self.points.len();
        let suffix = if several_points { format!("-{point}") } else { String::new() };
        let tables = recorded.series.iter().map(|series| (&series.name, series.omitted_rows));
        let captures = recorded.captures.iter().map(|own| (&own.name, own.omitted_packets));
        let omitted = tables.chain(captures).filter(|&(_, count)| count > 0);
        self.warnings.extend(omitted.map(|(name, count)| Warning {
            about: format!("{name}{suffix}"),
            message: format!(
                "the recording is full and ends early: it lacks {count} later packets or messages; \
                 shorten `duration`, or record fewer flows or links"
            ),
        }));
        self.series.extend(mem::take(&mut recorded.series).into_iter().map(|mut series| {
            series.name.push_str(&suffix);
            (series.point, series.replication) = (point, replication);
            series
        }));
        self.captures.extend(mem::take(&mut recorded.captures).into_iter().map(|mut capture| {
            capture.name.push_str(&suffix);
            capture
        }));
        self.event_logs.extend(mem::take(&mut recorded.event_logs).into_iter().map(|mut log| {
            log.name.push_str(&suffix);
            log
        }));
    }
}

impl Row {
    /// A row with the columns of every row of its scope, with those in `known` and with the rest of
    /// their groups, in their order. Columns that are not in `known` are null.
    #[must_use]
    pub fn new(
        (name, count): (String, u64),
        scope: Scope,
        known: impl IntoIterator<Item = (Metric, Estimate)>,
    ) -> Self {
        let columns = Metric::of_every_row(scope).map(|metric| (metric, Estimate::default()));
        let mut metrics: IndexMap<Metric, Estimate> = columns.collect();
        metrics.extend(known);
        for is_in_group in Metric::GROUPS {
            if metrics.keys().any(|&metric| is_in_group(metric)) {
                for metric in Metric::of_scope(scope).filter(|&metric| is_in_group(metric)) {
                    metrics.entry(metric).or_default();
                }
            }
        }
        metrics.sort_unstable_keys();
        Self { name, count, metrics, replications: IndexMap::new() }
    }

    /// Marks the means that exclude unfinished transfers as censored.
    fn mark_censored(&mut self) {
        if self.mean(Metric::TransfersUnfinished).is_some_and(|share| share > 0.0) {
            for metric in [Metric::CompletionTime, Metric::CompletionTimeMax, Metric::TransferRate]
            {
                if let Some(estimate) = self.metrics.get_mut(&metric) {
                    estimate.censored = estimate.mean.is_some();
                }
            }
        }
    }

    /// Whether this is the row of a class of a scheduler, such as `feeder.forward.control`: names
    /// of links and classes have no dots.
    #[must_use]
    pub fn is_of_class(&self) -> bool {
        self.name.matches('.').count() == 2
    }

    /// Mean of a metric, if it is known.
    #[must_use]
    pub fn mean(&self, metric: Metric) -> Option<f64> {
        self.metrics.get(&metric).and_then(|estimate| estimate.mean)
    }
}
