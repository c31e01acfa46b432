//! The results view: the tables of stored answers.

use std::str::FromStr;

use gridhaul_scenario::answer::{Answer, ColumnData, Metric, Scope};
use gridhaul_scenario::table::{Table, TableName};
use serde::Serialize;

use crate::subject::Results;

/// Stored answers as a page needs them.
#[derive(Serialize)]
pub(crate) struct Description<'a> {
    path: &'a str,
    title: &'a str,
    /// Swept keys, in order.
    parameters: Vec<&'a str>,
    /// Columns of metrics with at least one known value, by table.
    flow_metrics: Vec<&'static str>,
    link_metrics: Vec<&'static str>,
    warnings: Vec<String>,
}

/// A table as columns.
#[derive(Debug, Serialize)]
pub(crate) struct Columns {
    columns: Vec<Column>,
}

#[derive(Debug, Serialize)]
struct Column {
    name: String,
    values: Values,
}

/// Numbers, null where unknown, or texts.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
enum Values {
    Numbers(Vec<Option<f64>>),
    Texts(Vec<String>),
}

impl<'a> Description<'a> {
    pub(crate) fn of(results: &'a Results) -> Self {
        let answers = || results.answers.iter().map(|(_, answer)| answer);
        let mut parameters: Vec<&str> = Vec::new();
        for key in
            answers().flat_map(|answer| &answer.points).flat_map(|point| point.parameters.keys())
        {
            if !parameters.contains(&key.as_str()) {
                parameters.push(key);
            }
        }
        let warnings = answers().flat_map(|answer| {
            let text = |warning: &gridhaul_scenario::answer::Warning| {
                format!("{}, {}: {}", answer.backend, warning.about, warning.message)
            };
            answer.warnings.iter().map(text).collect::<Vec<_>>()
        });
        Self {
            path: &results.path,
            title: answers().next().map_or("", |answer| answer.title.as_str()),
            parameters,
            flow_metrics: known_metrics(results, Scope::Flow),
            link_metrics: known_metrics(results, Scope::Link),
            warnings: warnings.collect(),
        }
    }
}

/// The metrics of a scope that are known somewhere.
fn known_metrics(results: &Results, scope: Scope) -> Vec<&'static str> {
    let rows = |answer: &Answer| {
        let points = answer.points.iter();
        let rows = points.flat_map(|point| match scope {
            Scope::Flow => &point.flows,
            Scope::Link => &point.links,
        });
        let known = rows.flat_map(|row| &row.metrics).filter(|(_, found)| found.mean.is_some());
        known.map(|(metric, _)| *metric).collect::<Vec<_>>()
    };
    let answers = results.answers.iter();
    let known: std::collections::BTreeSet<Metric> =
        answers.flat_map(|(_, answer)| rows(answer)).collect();
    Metric::of_scope(scope)
        .filter(|metric| known.contains(metric))
        .map(|metric| metric.info().column)
        .collect()
}

/// A table, as `gridhaul export` writes it. `only` lists metrics, separated by commas.
pub(crate) fn table(results: &Results, name: &str, only: &str) -> Result<Columns, String> {
    let name = match name {
        "flows" => TableName::Flows,
        "links" => TableName::Links,
        _ => return Err(format!("{name:?} is no table of this page: flows or links")),
    };
    let only = only.split(',').filter(|column| !column.is_empty());
    let only: Vec<Metric> = only
        .map(|column| Metric::from_str(column).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()?;
    let answers: Vec<(String, &Answer)> =
        results.answers.iter().map(|(label, answer)| (label.clone(), answer)).collect();
    let table = Table::new(name, &answers, &only).map_err(|error| error.to_string())?;
    let columns = table.columns.into_iter().map(|column| Column {
        name: column.name,
        values: match column.data {
            ColumnData::Real(values) => {
                let known = |value: f64| Some(value).filter(|value| value.is_finite());
                Values::Numbers(values.into_iter().map(known).collect())
            }
            ColumnData::Whole(values) => {
                Values::Numbers(values.into_iter().map(|value| Some(value as f64)).collect())
            }
            ColumnData::Text { words, rows } => {
                Values::Texts(rows.into_iter().map(|row| words[row as usize].clone()).collect())
            }
        },
    });
    Ok(Columns { columns: columns.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results() -> Results {
        let point = |delay: &str, goodput: f64| {
            format!(
                r#"{{"parameters": {{"link.a.both.delay": "{delay}"}},
                "flows": [{{"name": "up", "count": 1, "metrics": {{
                    "goodput_bit_per_s": {{"mean": {goodput}, "ci95": 1.0, "n": 2}},
                    "rtt_mean_s": {{"mean": null, "ci95": null, "n": 0}}}}}}],
                "links": []}}"#
            )
        };
        let points = [point("1 ms", 3.0), point("2 ms", 2.0)].join(",");
        let text = format!(
            r#"{{"schema": 1, "gridhaul": "1", "backend": "sim", "title": "t",
            "scenario_sha256": "", "seed": 1, "replications": 2, "warnings": [],
            "points": [{points}]}}"#
        );
        let answer = serde_json::from_str(&text).unwrap();
        Results { path: "results/a".to_owned(), answers: vec![("a".to_owned(), answer)] }
    }

    #[test]
    fn a_table_has_the_columns_of_the_export() {
        let table = table(&results(), "flows", "goodput_bit_per_s").unwrap();
        let column =
            |name: &str| &table.columns.iter().find(|own| own.name == name).unwrap().values;
        assert_eq!(*column("goodput_bit_per_s"), Values::Numbers(vec![Some(3.0), Some(2.0)]));
        let texts = ["1 ms", "2 ms"].map(str::to_owned).to_vec();
        assert_eq!(*column("link.a.both.delay"), Values::Texts(texts));
    }

    #[test]
    fn only_known_metrics_are_offered() {
        let results = results();
        let description = Description::of(&results);
        assert_eq!(description.flow_metrics, ["goodput_bit_per_s"]);
        assert_eq!(description.parameters, ["link.a.both.delay"]);
    }

    #[test]
    fn a_table_or_metric_that_does_not_exist_is_refused() {
        assert!(table(&results(), "members", "").is_err());
        assert!(table(&results(), "flows", "speed").unwrap_err().contains("speed"));
    }
}
