//! Comparison of answers: differences, their statistical significance, and likely reasons.

mod answer_file;
mod common;
mod reason;
mod significance;

use anyhow::{Context, anyhow};
use gridhaul_report::{HEADLINE, PointIndex, TextTable, format};
use gridhaul_scenario::answer::{Answer, Metric, Point, Row, Scope};
use indexmap::IndexSet;
use serde::Serialize;

use crate::error::Error;
pub use answer_file::read_answers;
pub use significance::{MetricValue, Significance};

/// Answers compared with the first one: the file `comparison.json`.
#[derive(Debug, Serialize)]
pub struct Comparison {
    gridhaul: &'static str,
    /// Names of the answers; the first is the reference.
    pub labels: Vec<String>,
    /// One entry for each compared metric, row and point.
    pub rows: Vec<ComparedMetric>,
    /// Points or rows that are not compared because an answer lacks them, as sentences, and
    /// whether the answers have no metric in common.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
}

/// One metric of one row of one point.
#[derive(Debug, Serialize)]
pub struct ComparedMetric {
    /// Swept keys and their values; empty without a sweep.
    pub point: String,
    /// Name of the flow or link direction.
    pub row: String,
    /// The metric.
    pub metric: Metric,
    /// The value in the first answer, in the unit of the metric.
    pub first: MetricValue,
    /// The values in the other answers, one entry for each.
    pub others: Vec<OtherAnswer>,
}

/// The value in another answer.
#[derive(Debug, Serialize)]
pub struct OtherAnswer {
    /// The value.
    #[serde(flatten)]
    pub value: MetricValue,
    #[serde(skip)]
    same_backend: bool,
    /// Relative difference from the first: 0.1 where this value is 10 % larger.
    pub difference: Option<f64>,
    /// Whether the difference is statistically significant.
    pub result: Significance,
    /// Why the values differ, if a reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Explanations of results without a test of significance.
const UNKNOWN: &str = "–: undetermined: a single replication, an unknown value, a censored mean, \
                       or too few equal replications";
const DETERMINISTIC: &str = "deterministic: neither answer depends on random numbers; the \
                             difference is exact, but there is no confidence interval to compare \
                             it with";

/// Headline metrics that are not compared by default: the remaining ones show the same difference.
const NOT_COMPARED: [Metric; 3] =
    [Metric::Throughput, Metric::TransfersFinished, Metric::LinkDelayMean];

/// Metrics that are compared by default.
fn compared_by_default() -> Vec<Metric> {
    HEADLINE.iter().copied().filter(|metric| !NOT_COMPARED.contains(metric)).collect()
}

fn compared(
    metric: Metric,
    point: &Point,
    row: &Row,
    (first_answer, others): (&Answer, &[(&Answer, Option<&Point>)]),
) -> Option<ComparedMetric> {
    let first = MetricValue::of(row.metrics.get(&metric), first_answer, Some(point));
    let others: Vec<_> = others
        .iter()
        .map(|(answer, other)| {
            let rows = other.map(|other| match metric.info().scope {
                Scope::Flow => &other.flows,
                Scope::Link => &other.links,
            });
            let found = rows.and_then(|rows| rows.iter().find(|other| other.name == row.name));
            let estimate = found.and_then(|row| row.metrics.get(&metric));
            let known = MetricValue::of(estimate, answer, *other);
            let same_backend = answer.backend == first_answer.backend;
            let result = Significance::of([&first, &known], same_backend);
            let differs = matches!(result, Significance::Differ | Significance::Deterministic);
            let reason = differs.then(|| reason::likely(metric, &row.name, [first_answer, answer]));
            let difference = first.difference(&known);
            OtherAnswer { value: known, same_backend, difference, result, reason: reason.flatten() }
        })
        .collect();
    is_shown(&first, &others).then(|| {
        let point = common::point_name(point);
        ComparedMetric { point, row: row.name.clone(), metric, first, others }
    })
}

/// The rows of a point with their scope.
fn rows_of(point: &Point) -> impl Iterator<Item = (Scope, &Row)> {
    let flows = point.flows.iter().map(|row| (Scope::Flow, row));
    flows.chain(point.links.iter().map(|row| (Scope::Link, row)))
}

/// Whether a row is shown: both values are known and not all are zero, or only one of two answers
/// of the same backend has a value, such as a completion time.
fn is_shown(first: &MetricValue, others: &[OtherAnswer]) -> bool {
    let means = others.iter().map(|other| other.value.estimate.mean);
    if means.chain([first.estimate.mean]).flatten().all(|mean| mean == 0.0) {
        return false;
    }
    let is_known = |known: &MetricValue| known.estimate.mean.is_some();
    others.iter().any(|other| other.same_backend || is_known(first) && is_known(&other.value))
}

/// Compares every answer with the first, point by point and row by row; each answer has a label.
/// `only` selects metrics; if it is empty, the headline metrics are compared.
///
/// # Errors
/// No answer, or answers without a common point. Without a common metric, the comparison has no
/// rows.
pub fn compare(answers: &[(String, &Answer)], only: &[Metric]) -> Result<Comparison, Error> {
    Comparison::of(answers, only)
}

impl Comparison {
    fn of<'answers>(
        answers: &[(String, &'answers Answer)],
        only: &[Metric],
    ) -> Result<Self, Error> {
        let labels: Vec<_> = answers.iter().map(|(label, _)| label.clone()).collect();
        let (first, others) = answers.split_first().context("nothing to compare")?;
        let alone = answers.iter().all(|(_, answer)| answer.points.len() == 1);
        let by_default = compared_by_default();
        let metrics = if only.is_empty() { &by_default[..] } else { only };
        let mut not_compared = common::missing(first, others);
        let others: Vec<(&'answers Answer, PointIndex<'answers>)> =
            others.iter().map(|(_, answer)| (*answer, PointIndex::new(answer))).collect();
        if !alone && !common::has_common_point(first.1, &others) {
            let labels = labels.join(" and ");
            let reason = not_compared.join("; ");
            return Err(Error::Input(anyhow!(
                "{labels} have no point of a sweep in common: {reason}\n  \
                 help: compare answers to the same sweep, or to scenarios without a sweep"
            )));
        }
        let mut rows = Vec::new();
        for (index, point) in first.1.points.iter().enumerate() {
            let of_point = |(answer, points): &(&'answers Answer, PointIndex<'answers>)| {
                let first = alone.then(|| answer.points.first()).flatten();
                (*answer, first.or_else(|| points.find(index, point)))
            };
            let others: Vec<_> = others.iter().map(of_point).collect();
            for (scope, row) in rows_of(point) {
                let metrics = metrics.iter().filter(|metric| metric.info().scope == scope);
                let row = |metric: &Metric| compared(*metric, point, row, (first.1, &others));
                rows.extend(metrics.filter_map(row));
            }
        }
        if rows.is_empty() {
            not_compared.push(format!("{} have no metric in common", labels.join(" and ")));
        }
        Ok(Self { gridhaul: env!("CARGO_PKG_VERSION"), labels, rows, not_compared })
    }

    /// One table of the first metric over all points of a sweep.
    #[must_use]
    pub fn overview(&self) -> TextTable {
        let metric = self.rows.first().map(|row| row.metric);
        let mut headers = self.headers();
        headers.insert(0, String::new());
        let rows = self.rows.iter().filter(|row| Some(row.metric) == metric);
        TextTable {
            headers,
            rows: rows
                .map(|row| std::iter::once(row.point.clone()).chain(row.texts()).collect())
                .collect(),
            key_columns: 3,
            note: Some("See the report for the other metrics and the links.".into()),
            ..TextTable::default()
        }
    }

    /// A table for each point.
    #[must_use]
    pub fn tables(&self) -> Vec<TextTable> {
        let mut tables: Vec<TextTable> = Vec::new();
        for compared in &self.rows {
            if tables.last().is_none_or(|table| table.title != compared.point) {
                tables.push(TextTable {
                    title: compared.point.clone(),
                    headers: self.headers(),
                    key_columns: 2,
                    ..TextTable::default()
                });
            }
            if let Some(table) = tables.last_mut() {
                table.rows.push(compared.texts());
            }
        }
        if let Some(last) = tables.last_mut() {
            last.note = self.note();
        }
        tables
    }

    /// The reasons for which nothing is compared; `None` if something is.
    #[must_use]
    pub fn without_rows(&self) -> Option<String> {
        self.rows.is_empty().then(|| self.not_compared.join("; "))
    }

    /// Number of metrics that differ significantly or, without a confidence interval, by more than
    /// 1 %.
    #[must_use]
    pub fn differences(&self) -> usize {
        let others = self.rows.iter().flat_map(|row| &row.others);
        others.filter(|other| other.result.is_disagreement(other.difference)).count()
    }

    /// Notes on undetermined and deterministic results, and on likely reasons of differences.
    fn note(&self) -> Option<String> {
        let mut lines: IndexSet<String> = self.not_compared.iter().cloned().collect();
        let has =
            |result| self.rows.iter().flat_map(|row| &row.others).any(|row| row.result == result);
        if has(Significance::Unknown) {
            lines.insert(UNKNOWN.to_owned());
        }
        if has(Significance::Deterministic) {
            lines.insert(DETERMINISTIC.to_owned());
        }
        for row in &self.rows {
            for reason in row.others.iter().filter_map(|other| other.reason.as_ref()) {
                lines.insert(format!("{}, {}: {reason}", row.row, row.metric.info().heading));
            }
        }
        (!lines.is_empty()).then(|| lines.into_iter().collect::<Vec<_>>().join("\n"))
    }

    fn headers(&self) -> Vec<String> {
        let mut headers = vec!["".into(), "metric".into()];
        for (index, label) in self.labels.iter().enumerate() {
            headers.push(label.clone());
            if index > 0 {
                headers.extend(["difference".into(), "result".into()]);
            }
        }
        headers
    }
}

impl ComparedMetric {
    fn texts(&self) -> Vec<String> {
        let info = self.metric.info();
        let mut texts = vec![self.row.clone(), info.heading.to_owned()];
        let all: Vec<&MetricValue> = std::iter::once(&self.first)
            .chain(self.others.iter().map(|other| &other.value))
            .collect();
        let estimates: Vec<_> = all.iter().map(|known| known.estimate).collect();
        let texts_of_values = format::estimates(&estimates, info.unit).into_iter().zip(&all);
        let mut values = texts_of_values.map(|(text, known)| {
            text + &format::qualification(&known.estimate, known.replications)
        });
        texts.extend(values.next());
        for (other, text) in self.others.iter().zip(values) {
            texts.push(text);
            texts.push(match other.difference {
                // A difference that is rounded to zero has no direction.
                Some(difference) if difference.abs() < 0.0005 => "0.0 %".into(),
                Some(difference) => format!("{:+.1} %", difference * 100.0),
                None => "–".into(),
            });
            texts.push(other.result.text().into());
        }
        texts
    }
}
