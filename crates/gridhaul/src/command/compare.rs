//! `gridhaul compare`: answers side by side.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use gridhaul_report::{Report, TextTable, format};
use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row, Scope};
use gridhaul_scenario::scenario::Scenario;
use serde::Serialize;

use super::run::{json, shown, stem};
use crate::args::CompareArgs;
use crate::backends;
use crate::failure::Failure;
use crate::folder::{MARKS, Place};
use crate::terminal::{print, print_tables};

/// Compares every answer with the first.
pub(crate) fn run(args: &CompareArgs) -> Result<(), Failure> {
    let place = args.out.as_ref().map(|out| Place::new(out, args.force)).transpose()?;
    let mut sides = Vec::new();
    for file in &args.files {
        sides.extend(sides_of(file, args)?);
    }
    if sides.len() < 2 {
        let help = "name a second file, or several backends: --on sim,model";
        return Err(anyhow!("one answer has nothing to be compared with\n  help: {help}").into());
    }
    name_apart(&mut sides);
    let answers: Vec<_> = sides.iter().map(|side| (side.label.clone(), &side.answer)).collect();
    let comparison = Comparison::of(&answers, &args.only)?;
    let text = json(&comparison)?;
    if args.json {
        print(&text)?;
    } else {
        print_tables(&comparison.tables())?;
    }
    if let Some(place) = place {
        let folder = write(place, &sides, &text)?;
        if !args.quiet {
            eprintln!("report: {folder}");
        }
    }
    let differ = comparison.rows.iter().flat_map(|row| &row.others);
    match differ.filter(|other| other.verdict == Verdict::Differ).count() {
        0 => Ok(()),
        _ if !args.must_agree => Ok(()),
        count => Err(Failure::Check(format!("{count} metrics differ by more than chance"))),
    }
}

/// An answer and where it came from.
struct Side {
    label: String,
    file: String,
    answer: Answer,
    scenario: Option<Scenario>,
}

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
}

/// Whether a difference is more than chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Equal, or within the joint 95 % interval.
    Agree,
    /// Outside it.
    Differ,
    /// There is no interval: a single run, or no value.
    Unknown,
}

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

fn sides_of(file: &Path, args: &CompareArgs) -> Result<Vec<Side>, Failure> {
    let stored = if file.is_dir() { Some(file.join(MARKS[0])) } else { None };
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    let (label, shown) = (label(file), file.display().to_string());
    if let Some(path) = stored.or_else(|| is_json.then(|| file.to_owned())) {
        let answer = stored_answer(&path)?;
        return Ok(vec![Side { label, file: shown, answer, scenario: None }]);
    }
    let mut scenario = Scenario::load(file)?;
    scenario.repeat = args.repeat.unwrap_or(scenario.repeat);
    let answers = backends::answers(&scenario, &args.engine, &label, args.quiet)?;
    let several = answers.len() > 1;
    let side = |answer: Answer| {
        let by = |name: &str| format!("{name} ({})", answer.backend);
        let (label, file) =
            if several { (by(&label), by(&shown)) } else { (label.clone(), shown.clone()) };
        Side { label, file, answer, scenario: Some(scenario.clone()) }
    };
    Ok(answers.into_iter().map(side).collect())
}

fn stored_answer(path: &Path) -> anyhow::Result<Answer> {
    let shown = path.display();
    let text = fs::read(path).with_context(|| {
        format!("cannot read {shown}\n  help: name a results folder, an answer.json or a scenario")
    })?;
    let answer: Answer = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not an answer of gridhaul"))?;
    if answer.schema != Answer::SCHEMA {
        bail!(
            "{shown}: schema {} is not known; this gridhaul reads {}",
            answer.schema,
            Answer::SCHEMA
        );
    }
    Ok(answer)
}

fn label(file: &Path) -> String {
    let answer = file.file_name().is_some_and(|name| name == MARKS[0]);
    let named = if answer { file.parent().unwrap_or(file) } else { file };
    stem(named)
}

/// Uses whole paths where names alone would be the same.
fn name_apart(sides: &mut [Side]) {
    let labels: Vec<_> = sides.iter().map(|side| side.label.clone()).collect();
    for side in sides {
        if labels.iter().filter(|label| **label == side.label).count() > 1 {
            side.label.clone_from(&side.file);
        }
    }
}

fn compared(
    metric: Metric,
    point: &Point,
    row: &Row,
    points: &[Option<&Point>],
) -> Option<Compared> {
    let first = *row.metrics.get(&metric)?;
    let others: Vec<_> = points
        .iter()
        .map(|other| {
            let rows = other.map(|other| match metric.info().scope {
                Scope::Flow => &other.flows,
                Scope::Link => &other.links,
            });
            let found = rows.and_then(|rows| rows.iter().find(|other| other.name == row.name));
            let metrics = found.map(|row| &row.metrics);
            let estimate = metrics.and_then(|metrics| metrics.get(&metric)).copied();
            Other::new(first, estimate.unwrap_or_default())
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
    fn new(first: Estimate, estimate: Estimate) -> Self {
        let (Some(a), Some(b)) = (first.mean, estimate.mean) else {
            return Self { estimate, difference: None, verdict: Verdict::Unknown };
        };
        let verdict = match (first.ci95, estimate.ci95) {
            _ if a == b => Verdict::Agree,
            // Intervals of independent means add in squares.
            (Some(x), Some(y)) if (a - b).abs() <= x.hypot(y) => Verdict::Agree,
            (Some(_), Some(_)) => Verdict::Differ,
            _ => Verdict::Unknown,
        };
        let difference = if a == b { Some(0.0) } else { (a != 0.0).then(|| b / a - 1.0) };
        Self { estimate, difference, verdict }
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
            let mut points: Vec<Option<&Point>> = Vec::new();
            for (_, answer) in others {
                let same = |other: &&Point| alone || other.parameters == point.parameters;
                points.push(answer.points.iter().find(same));
            }
            for row in point.flows.iter().chain(&point.links) {
                rows.extend(
                    metrics.iter().filter_map(|metric| compared(*metric, point, row, &points)),
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
        let mut verdicts = self.rows.iter().flat_map(|row| &row.others);
        if let Some(last) = tables.last_mut()
            && verdicts.any(|other| other.verdict == Verdict::Unknown)
        {
            last.note = Some("–: no interval, so no verdict: a single run, or equations".into());
        }
        tables
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
        texts.push(format::estimate(&self.first, info.unit));
        for other in &self.others {
            texts.push(format::estimate(&other.estimate, info.unit));
            texts.push(match other.difference {
                Some(difference) => format!("{:+.1} %", difference * 100.0),
                None => "–".into(),
            });
            texts.push(other.verdict.text().into());
        }
        texts
    }
}

fn write(place: Place, sides: &[Side], comparison: &str) -> Result<String, Failure> {
    let answers: Vec<_> = sides.iter().map(|side| (side.label.clone(), &side.answer)).collect();
    let scenarios = sides.iter().filter_map(|side| side.scenario.as_ref());
    let toml: Vec<_> = scenarios.map(Scenario::to_toml).collect();
    let title = answers.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>().join(" / ");
    let report = gridhaul_report::html(&Report {
        title: &title,
        description: "",
        answers: &answers,
        scenario_toml: &toml.join("\n\n"),
        ..Report::default()
    });
    let mut folder = place.begin()?;
    folder.write("comparison.json", comparison.as_bytes())?;
    folder.write("report.html", report.as_bytes())?;
    Ok(shown(&folder.commit()?.join("report.html")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_rest_on_the_joint_interval() {
        let estimate = |mean, ci95| Estimate { mean: Some(mean), ci95, n: 5 };
        let verdict = |a, b| Other::new(a, b).verdict;
        let a = estimate(100.0, Some(3.0));
        assert_eq!(verdict(a, estimate(104.9, Some(4.0))), Verdict::Agree);
        assert_eq!(verdict(a, estimate(105.1, Some(4.0))), Verdict::Differ);
        assert_eq!(verdict(a, estimate(100.5, None)), Verdict::Unknown);
        assert_eq!(verdict(a, Estimate::default()), Verdict::Unknown);
        assert_eq!(verdict(estimate(1.0, None), estimate(1.0, None)), Verdict::Agree);
        assert_eq!(
            Other::new(a, estimate(110.0, None)).difference.map(|d| (d * 100.0).round()),
            Some(10.0)
        );
    }
}
