//! Answers as CSV: a line for each answer, point, and flow or link direction.

use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row};

use crate::error::Error;

/// Formats labelled answers as CSV: a line for each answer, point, and flow or link direction. `only` selects metrics;
/// if it is empty, all metrics of the answers are written. Each metric has three columns: its mean in the unit of its
/// name, the half width of its 95 % confidence interval (`_ci95`) and its number of replications (`_n`). The cell of
/// an unknown value is empty.
///
/// # Errors
/// An internal error of the CSV writer.
pub fn csv(answers: &[(String, &Answer)], only: &[Metric]) -> Result<String, Error> {
    text(answers, only).map_err(Error::Internal)
}

fn text(answers: &[(String, &Answer)], only: &[Metric]) -> anyhow::Result<String> {
    let metrics: Vec<Metric> = if only.is_empty() { known(answers) } else { only.to_vec() };
    let parameters = parameters(answers);
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(headings(&parameters, &metrics))?;
    for (label, answer) in answers {
        for (number, point) in answer.points.iter().enumerate() {
            for (kind, row) in rows(point) {
                let is_present = |metric: &Metric| row.metrics.contains_key(metric);
                if !only.is_empty() && !only.iter().any(is_present) {
                    continue;
                }
                let mut cells = vec![label.clone(), answer.backend.clone(), number.to_string()];
                let value = |key: &&String| point.parameters.get(*key).cloned().unwrap_or_default();
                cells.extend(parameters.iter().map(value));
                cells.extend([kind.to_owned(), row.name.clone(), row.count.to_string()]);
                cells.extend(metrics.iter().flat_map(|metric| estimate(row.metrics.get(metric))));
                writer.write_record(cells)?;
            }
        }
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Mean, half width of the confidence interval and number of replications.
fn estimate(estimate: Option<&Estimate>) -> [String; 3] {
    let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    match estimate {
        Some(Estimate { mean, ci95, n, .. }) => [number(*mean), number(*ci95), n.to_string()],
        None => [const { String::new() }; 3],
    }
}

fn headings(parameters: &[&String], metrics: &[Metric]) -> Vec<String> {
    let mut headings = ["answer", "backend", "point"].map(str::to_owned).to_vec();
    headings.extend(parameters.iter().map(|key| (*key).clone()));
    headings.extend(["kind", "name", "count"].map(str::to_owned));
    for metric in metrics {
        let column = metric.info().column;
        headings.extend([column.to_owned(), format!("{column}_ci95"), format!("{column}_n")]);
    }
    headings
}

/// Swept keys, in the order of the points.
fn parameters<'a>(answers: &[(String, &'a Answer)]) -> Vec<&'a String> {
    let mut keys: Vec<&String> = Vec::new();
    let points = answers.iter().flat_map(|(_, answer)| &answer.points);
    for key in points.flat_map(|point| point.parameters.keys()) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Metrics that any row has, in the order of the columns.
fn known(answers: &[(String, &Answer)]) -> Vec<Metric> {
    let points = || answers.iter().flat_map(|(_, answer)| &answer.points);
    let has = |metric: &&Metric| {
        points().flat_map(rows).any(|(_, row)| row.metrics.contains_key(*metric))
    };
    Metric::ALL.iter().filter(has).copied().collect()
}

fn rows(point: &Point) -> impl Iterator<Item = (&'static str, &Row)> {
    let flows = point.flows.iter().map(|row| ("flow", row));
    flows.chain(point.links.iter().map(|row| ("link", row)))
}
