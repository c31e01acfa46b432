//! Agreement of model and simulation at every point of every scenario that both accept.
//!
//! Goodput, loss, mean and 98th-percentile delay agree within 10 % of the simulated value, or the
//! scenario lists the deviation with its reason in a comment, and the reason is still needed:
//!
//! ```toml
//! # agreement: replications = 10
//! # deviation: delay_p98_s at `false`: the first message also waits for the handshake
//! ```
//!
//! The first comment sets a key for this test (more replications, a shorter run); the second names
//! the column and the swept values (none without a sweep).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Metric, Point, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};
use gridhaul_sim::Sim;

use crate::support::repository;

const COMPARED: [Metric; 4] =
    [Metric::Goodput, Metric::SegmentLossTotal, Metric::DelayMean, Metric::DelayP98];

/// Papers whose scenarios both backends accept and that take less than a minute.
const PAPERS: [&str; 2] = ["papers/hybrid/section3_2.toml", "papers/hybrid/table5.toml"];

/// Scenarios without a comparison, each with a key that the model refuses.
const REFUSED: [(&str, &str); 3] = [
    ("aggregators.toml", "synchronised"),
    ("midnight.toml", "synchronised"),
    ("shared-line.toml", "medium"),
];

/// A deviation that a scenario lists: column and swept values.
type Listed = (String, String);

/// Keys that are set for this test, and the deviations that are listed with a reason.
fn comments(text: &str) -> (Vec<(String, toml::Value)>, BTreeMap<Listed, String>) {
    let (mut settings, mut listed) = (Vec::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(setting) = line.strip_prefix("# agreement: ") {
            let (key, value) = setting.split_once('=').expect("# agreement: key = value");
            let value: toml::Table = format!("value = {value}").parse().expect("a TOML value");
            settings.push((key.trim().to_owned(), value["value"].clone()));
        }
        if let Some(deviation) = line.strip_prefix("# deviation: ") {
            let (what, reason) = deviation.split_once(": ").expect("# deviation: column: reason");
            assert!(reason.len() > 20, "a reason: {line}");
            let (column, point) = what.split_once(" at ").unwrap_or((what, ""));
            listed
                .insert((column.to_owned(), point.trim_matches('`').to_owned()), reason.to_owned());
        }
    }
    (settings, listed)
}

/// The scenario of a file with the keys that are set for this test, and its text.
fn read(file: &str) -> (Scenario, String) {
    let text = fs::read_to_string(repository().join(file)).unwrap();
    let mut tree: toml::Table = text.parse().unwrap();
    for (key, value) in comments(&text).0 {
        let (mut table, mut steps) = (&mut tree, key.split('.').peekable());
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                table.insert(step.to_owned(), value.clone());
                break;
            }
            table = table[step].as_table_mut().expect("a table");
        }
    }
    (Scenario::from_toml(&tree.to_string(), file).unwrap_or_else(|error| panic!("{error}")), text)
}

fn differ(metric: Metric, model: f64, simulated: f64) -> bool {
    // Loss ratios below 0.1 % are negligible.
    let small = metric == Metric::SegmentLossTotal && model < 1e-3 && simulated < 1e-3;
    !small && (model - simulated).abs() > 0.1 * simulated.abs()
}

/// Compares the rows of flows at one point; returns the columns that differ and appends to the
/// table.
fn compare(point: &str, model: &Point, simulated: &Point, table: &mut String) -> BTreeSet<String> {
    let mut columns = BTreeSet::new();
    for row in &simulated.flows {
        let Some(other) = model.flows.iter().find(|other| other.name == row.name) else { continue };
        // Upstream connections of aggregators have neither message delays nor the loss of all
        // stages.
        let metrics = COMPARED.iter().filter(|_| !row.name.contains('>'));
        for &metric in metrics {
            let value = |row: &Row| row.mean(metric);
            let (Some(equations), Some(packets)) = (value(other), value(row)) else { continue };
            let column = metric.info().column;
            let differs = differ(metric, equations, packets);
            let mark = if differs { "DIFFER" } else { "agree" };
            *table += &format!(
                "{point:60} {:12} {column:26} {equations:12.5e} {packets:12.5e} {mark}\n",
                row.name
            );
            if differs {
                columns.insert(column.to_owned());
            }
        }
    }
    columns
}

fn values(point: &ScenarioPoint) -> String {
    point.parameters.values().cloned().collect::<Vec<_>>().join(", ")
}

/// Compares every point of a file that both accept. Returns the number of points, and the errors in
/// the list of deviations.
fn check(file: &str, table: &mut String) -> (usize, Vec<String>) {
    let (scenario, text) = read(file);
    let listed = comments(&text).1;
    let (mut compared, mut wrong, mut needed) = (0, Vec::new(), BTreeSet::new());
    for point in scenario.points().unwrap() {
        let scenario = &point.scenario;
        if Model::REFINED.supports(scenario).is_err() || Sim::default().supports(scenario).is_err()
        {
            continue;
        }
        let model = Model::REFINED.run(scenario, &NoProgress).unwrap();
        let simulated = Sim::default().run(scenario, &NoProgress).unwrap();
        compared += 1;
        let at = values(&point);
        let name = format!("{file} {at}");
        for column in compare(&name, &model.points[0], &simulated.points[0], table) {
            let key = (column, at.clone());
            if !listed.contains_key(&key) {
                wrong.push(format!("{name}: {} differs and is not listed", key.0));
            }
            needed.insert(key);
        }
    }
    let stale = listed.keys().filter(|key| !needed.contains(*key));
    wrong.extend(stale.map(|(column, at)| {
        format!("{file}: {column} at `{at}` is listed and no longer differs: remove the comment")
    }));
    (compared, wrong)
}

fn scenarios() -> Vec<String> {
    let files = fs::read_dir(repository().join("scenarios")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    names.into_iter().map(|name| format!("scenarios/{name}")).collect()
}

#[test]
fn model_and_simulation_agree_except_for_listed_reasons() {
    let (mut table, mut wrong, mut compared) = (String::new(), Vec::new(), BTreeMap::new());
    for file in scenarios().into_iter().chain(PAPERS.map(str::to_owned)) {
        let (points, problems) = check(&file, &mut table);
        compared.insert(file, points);
        wrong.extend(problems);
    }
    println!("{table}");
    assert!(wrong.is_empty(), "{}\n{table}", wrong.join("\n"));
    for file in ["district", "meters", "cell", "secondary", "lossy-line", "relay", "three-answers"]
    {
        assert!(compared[&format!("scenarios/{file}.toml")] > 0, "{file} is compared");
    }
}

#[test]
fn the_model_rejects_unsupported_scenarios_by_key() {
    for (file, key) in REFUSED {
        let (scenario, _) = read(&format!("scenarios/{file}"));
        for point in scenario.points().unwrap() {
            let refused = Model::REFINED.supports(&point.scenario).unwrap_err();
            assert!(
                refused.iter().any(|unsupported| unsupported.key.ends_with(key)),
                "{file}: {refused:?}"
            );
        }
    }
}
