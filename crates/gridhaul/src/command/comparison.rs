//! Answers side by side: differences, whether they are more than chance, and why they may be.

use anyhow::{Context, anyhow};
use gridhaul_report::{TextTable, format};
use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row, Scope};
use serde::Serialize;

use super::reason;
use crate::failure::Failure;

/// Answers held to the first: the file `comparison.json`.
#[derive(Debug, Serialize)]
pub(crate) struct Comparison {
    gridhaul: &'static str,
    labels: Vec<String>,
    rows: Vec<Compared>,
}

/// One metric of one row of one point.
#[derive(Debug, Serialize)]
struct Compared {
    point: String,
    row: String,
    metric: Metric,
    first: Estimate,
    others: Vec<Other>,
}

/// What another answer says about it.
#[derive(Debug, Serialize)]
struct Other {
    estimate: Estimate,
    /// Relative difference from the first.
    difference: Option<f64>,
    verdict: Verdict,
    /// Why they differ, where a reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// Whether a difference is more than chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Equal, or within the joint 95 % interval; answers of different backends, also within 1 %.
    Agree,
    /// Outside it.
    Differ,
    /// There is no interval: a single run, or no value.
    Unknown,
}

/// How two answers are held to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rule {
    /// Relative difference that counts as none.
    tolerance: f64,
    /// Whether each of the answers knows no chance, so that its values have no interval.
    exact: [bool; 2],
}

/// Different backends are different models of the same thing. Below this, nobody asks for a reason.
const BETWEEN_BACKENDS: f64 = 0.01;

/// What is compared unless columns are named.
const HEADLINE: [Metric; 13] = [
    Metric::Goodput,
    Metric::CompletionTime,
    Metric::RetransmissionRatio,
    Metric::Timeouts,
    Metric::RttMean,
    Metric::MessageLoss,
    Metric::DelayMean,
    Metric::DelayP98,
    Metric::Fairness,
    Metric::LinkThroughput,
    Metric::Utilisation,
    Metric::LossRatio,
    Metric::QueueMean,
];

fn compared(
    metric: Metric,
    point: &Point,
    row: &Row,
    (first_answer, others): (&Answer, &[(&Answer, Option<&Point>)]),
) -> Option<Compared> {
    let first = *row.metrics.get(&metric)?;
    let others: Vec<_> = others
        .iter()
        .map(|(answer, other)| {
            let rows = other.map(|other| match metric.info().scope {
                Scope::Flow => &other.flows,
                Scope::Link => &other.links,
            });
            let found = rows.and_then(|rows| rows.iter().find(|other| other.name == row.name));
            let metrics = found.map(|row| &row.metrics);
            let estimate = metrics.and_then(|metrics| metrics.get(&metric)).copied();
            let rule = Rule::between(first_answer, answer);
            let mut other = Other::new(first, estimate.unwrap_or_default(), rule);
            if other.verdict == Verdict::Differ {
                other.reason = reason::likely(metric, &row.name, [first_answer, answer]);
            }
            other
        })
        .collect();
    let means = others.iter().map(|other| other.estimate.mean).chain([first.mean]);
    if means.flatten().all(|mean| mean == 0.0) || others.iter().all(|it| it.estimate.mean.is_none())
    {
        return None;
    }
    let parameters = point.parameters.iter().map(|(key, value)| format!("{key} = {value}"));
    let point = parameters.collect::<Vec<_>>().join(", ");
    Some(Compared { point, row: row.name.clone(), metric, first, others })
}

impl Other {
    fn new(first: Estimate, estimate: Estimate, rule: Rule) -> Self {
        let (Some(a), Some(b)) = (first.mean, estimate.mean) else {
            return Self { estimate, difference: None, verdict: Verdict::Unknown, reason: None };
        };
        let interval = |estimate: Estimate, exact: bool| estimate.ci95.or(exact.then_some(0.0));
        let close = (a - b).abs() <= rule.tolerance * a.abs();
        let verdict = match (interval(first, rule.exact[0]), interval(estimate, rule.exact[1])) {
            _ if a == b || close => Verdict::Agree,
            // Intervals of independent means add in squares.
            (Some(x), Some(y)) if (a - b).abs() <= x.hypot(y) => Verdict::Agree,
            (Some(_), Some(_)) => Verdict::Differ,
            _ => Verdict::Unknown,
        };
        let difference = if a == b { Some(0.0) } else { (a != 0.0).then(|| b / a - 1.0) };
        Self { estimate, difference, verdict, reason: None }
    }
}

impl Rule {
    fn between(first: &Answer, other: &Answer) -> Self {
        let tolerance = if first.backend == other.backend { 0.0 } else { BETWEEN_BACKENDS };
        // Two equations have no chance to compare by.
        let exact = [first, other].map(|answer| answer.backend == "model");
        let exact = if exact == [true; 2] { [false; 2] } else { exact };
        Self { tolerance, exact }
    }
}

impl Verdict {
    const fn text(self) -> &'static str {
        match self {
            Self::Agree => "agree",
            Self::Differ => "differ",
            Self::Unknown => "–",
        }
    }
}

impl Comparison {
    /// Holds every answer to the first; `only` these metrics, or those that are looked at first.
    pub(crate) fn of(answers: &[(String, &Answer)], only: &[Metric]) -> Result<Self, Failure> {
        let labels: Vec<_> = answers.iter().map(|(label, _)| label.clone()).collect();
        let (first, others) = answers.split_first().context("nothing to compare")?;
        let alone = answers.iter().all(|(_, answer)| answer.points.len() == 1);
        let metrics = if only.is_empty() { &HEADLINE[..] } else { only };
        let mut rows = Vec::new();
        for point in &first.1.points {
            let same = |other: &&Point| alone || other.parameters == point.parameters;
            let others: Vec<_> = others
                .iter()
                .map(|(_, answer)| (*answer, answer.points.iter().find(same)))
                .collect();
            for row in point.flows.iter().chain(&point.links) {
                rows.extend(
                    metrics
                        .iter()
                        .filter_map(|metric| compared(*metric, point, row, (first.1, &others))),
                );
            }
        }
        if rows.is_empty() {
            let labels = labels.join(" and ");
            return Err(Failure::Input(anyhow!("{labels} have nothing in common")));
        }
        Ok(Self { gridhaul: env!("CARGO_PKG_VERSION"), labels, rows })
    }

    /// One table over all points of a sweep, of the metric that comes first.
    pub(crate) fn overview(&self) -> TextTable {
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
            note: Some("The other columns and the links are in the report.".into()),
            ..TextTable::default()
        }
    }

    /// A table for each point.
    pub(crate) fn tables(&self) -> Vec<TextTable> {
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

    /// Number of metrics that differ by more than chance.
    pub(crate) fn differences(&self) -> usize {
        let others = self.rows.iter().flat_map(|row| &row.others);
        others.filter(|other| other.verdict == Verdict::Differ).count()
    }

    /// What the verdicts do not say: why there is none, and why answers may differ.
    fn note(&self) -> Option<String> {
        let mut lines = Vec::new();
        let mut verdicts = self.rows.iter().flat_map(|row| &row.others);
        if verdicts.any(|other| other.verdict == Verdict::Unknown) {
            lines.push("–: no interval, so no verdict: a single run, or equations".to_owned());
        }
        for row in &self.rows {
            for reason in row.others.iter().filter_map(|other| other.reason.as_ref()) {
                let line = format!("{}, {}: {reason}", row.row, row.metric.info().heading);
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn headers(&self) -> Vec<String> {
        let mut headers = vec!["".into(), "metric".into()];
        for (index, label) in self.labels.iter().enumerate() {
            headers.push(label.clone());
            if index > 0 {
                headers.extend(["difference".into(), "verdict".into()]);
            }
        }
        headers
    }
}

impl Compared {
    fn texts(&self) -> Vec<String> {
        let info = self.metric.info();
        let mut texts = vec![self.row.clone(), info.heading.to_owned()];
        let all: Vec<_> =
            std::iter::once(self.first).chain(self.others.iter().map(|it| it.estimate)).collect();
        let mut all = format::estimates(&all, info.unit).into_iter();
        texts.extend(all.next());
        for (other, text) in self.others.iter().zip(all) {
            texts.push(text);
            texts.push(match other.difference {
                Some(difference) => format!("{:+.1} %", difference * 100.0),
                None => "–".into(),
            });
            texts.push(other.verdict.text().into());
        }
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_rest_on_the_joint_interval() {
        let estimate = |mean, ci95| Estimate { mean: Some(mean), ci95, n: 5 };
        let rule = Rule { tolerance: 0.0, exact: [false; 2] };
        let verdict = |a, b| Other::new(a, b, rule).verdict;
        let a = estimate(100.0, Some(3.0));
        assert_eq!(verdict(a, estimate(104.9, Some(4.0))), Verdict::Agree);
        assert_eq!(verdict(a, estimate(105.1, Some(4.0))), Verdict::Differ);
        assert_eq!(verdict(a, estimate(100.5, None)), Verdict::Unknown);
        assert_eq!(verdict(a, Estimate::default()), Verdict::Unknown);
        assert_eq!(verdict(estimate(1.0, None), estimate(1.0, None)), Verdict::Agree);
        assert_eq!(
            Other::new(a, estimate(110.0, None), rule).difference.map(|d| (d * 100.0).round()),
            Some(10.0)
        );
    }

    #[test]
    fn equations_are_held_to_the_interval_of_the_other() {
        let estimate = |mean, ci95| Estimate { mean: Some(mean), ci95, n: 5 };
        let answer = |backend: &str| Answer {
            backend: backend.to_owned(),
            ..serde_json::from_str(EMPTY).expect("an answer")
        };
        let (model, sim, emu) = (answer("model"), answer("sim"), answer("emu"));
        let verdict = |a, b, rule| Other::new(a, b, rule).verdict;
        let equations = estimate(100.0, None);
        let rule = Rule::between(&model, &sim);
        assert_eq!(verdict(equations, estimate(104.0, Some(5.0)), rule), Verdict::Agree);
        assert_eq!(verdict(equations, estimate(106.0, Some(5.0)), rule), Verdict::Differ);
        assert_eq!(verdict(equations, estimate(106.0, None), rule), Verdict::Unknown);
        let rule = Rule::between(&model, &model);
        assert_eq!(verdict(equations, estimate(106.0, None), rule), Verdict::Unknown);
        // Between backends a percent is nothing; within one, it is a change.
        let (a, b) = (estimate(100.0, Some(0.01)), estimate(100.9, Some(0.01)));
        assert_eq!(verdict(a, b, Rule::between(&sim, &emu)), Verdict::Agree);
        assert_eq!(verdict(a, b, Rule::between(&sim, &sim)), Verdict::Differ);
    }

    const EMPTY: &str = r#"{"schema": 1, "gridhaul": "", "backend": "", "title": "",
        "scenario_sha256": "", "seed": 1, "repeats": 1, "points": [], "warnings": []}"#;
}
