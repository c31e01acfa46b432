//! The answer to a scenario of bulk flows: all points of the sweep, and warnings about assumptions.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Answer, Point, Warning};
use gridhaul_scenario::backend::{Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Load, Scenario, ScenarioPoint};
use indexmap::{IndexMap, IndexSet};

use super::point_answer::answer_point;
use crate::model_rules::ModelRules;

/// Whether a scenario has bulk flows or transfers, which the steady-state formulas describe.
#[must_use]
pub fn is_bulk(scenario: &Scenario) -> bool {
    scenario.flow.values().any(|flow| matches!(flow.load, Load::Bulk | Load::Transfer(_)))
}

/// Checks that at least one point of the sweep has a formula and that no key requires packets.
///
/// # Errors
/// Each unsupported key.
pub fn supports(scenario: &Scenario, rules: ModelRules) -> Result<(), Vec<Unsupported>> {
    let mut unsupported = Vec::new();
    let mut reject = |key: &str, reason: &str| {
        unsupported.push(Unsupported { key: key.to_owned(), reason: reason.to_owned() });
    };
    if scenario.record.interval.is_some() {
        let reason = "the steady-state formulas give no time series; use backend `sim`";
        reject("record.interval", reason);
    }
    if !scenario.record.pcap.is_empty() {
        reject("record.pcap", "equations have no packets; use backend `sim`");
    }
    if !scenario.record.events.is_empty() {
        reject("record.events", "equations have no connections; use backend `sim`");
    }
    for key in scenario.record.keys_of_members() {
        reject(key, "equations have no members; use backend `sim`");
    }
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    // An inconsistent scenario is rejected when it is run.
    let points = scenario.points().unwrap_or_default();
    for point in &points {
        match answer_point(&point.scenario, rules) {
            Ok(_) => return Ok(()),
            Err(keys) => {
                for key in keys {
                    if !unsupported.contains(&key) {
                        unsupported.push(key);
                    }
                }
            }
        }
    }
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}

/// Answers all points. A point without a formula has no metrics, and a warning states the reason.
///
/// # Errors
/// A sweep that contradicts the scenario, or no point that has a formula.
pub fn answer(
    scenario: &Scenario,
    rules: ModelRules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
    supports(scenario, rules).map_err(RunError::Unsupported)?;
    let mut collected = CollectedWarnings::default();
    let mut answered = Vec::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        answered.push(answer_one(point, rules, &mut collected));
        progress.advance(index as u64 + 1, points.len() as u64);
    }
    let mut answer = Answer::without_points(scenario, "model");
    // The equations are deterministic.
    answer.replications = 1;
    let finished = answered.len();
    answer.points = answered;
    answer.warnings.extend(collected.warnings(points.len()));
    let finished: Vec<_> = (0..points.len()).map(|point| usize::from(point < finished)).collect();
    answer.with_finished(&finished, 1)
}

/// Warnings of all points, with the points to which they apply.
#[derive(Debug, Default)]
struct CollectedWarnings {
    /// Key and formula, then the bottleneck of the flow, with its points.
    laws: BTreeMap<(String, &'static str), BTreeMap<String, Vec<String>>>,
    /// Key and message.
    notes: BTreeMap<(String, String), Vec<String>>,
}

impl CollectedWarnings {
    fn warnings(self, points: usize) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((about, law), limits) in self.laws {
            let limits: Vec<_> = limits
                .iter()
                .map(|(limit, at)| format!("{limit} limits{}", affected_points(at, points)))
                .collect();
            let message = format!("by {law}; {}", limits.join("; "));
            warnings.push(Warning { about, message });
        }
        for ((about, message), at) in self.notes {
            let message = message + &affected_points(&at, points);
            warnings.push(Warning { about, message });
        }
        warnings.sort();
        warnings
    }
}

/// The points to which a warning applies; empty if it applies to all.
fn affected_points(at: &[String], points: usize) -> String {
    match at {
        _ if at.len() == points => String::new(),
        [one] => format!(" at {one}"),
        [first, ..] => format!(" at {} of {points} points, the first being {first}", at.len()),
        [] => String::new(),
    }
}

fn answer_one(
    point: &ScenarioPoint,
    rules: ModelRules,
    collected: &mut CollectedWarnings,
) -> Point {
    let name = point_name(&point.parameters);
    let (mut flows, mut links) = (Vec::new(), Vec::new());
    match answer_point(&point.scenario, rules) {
        Ok(answer) => {
            for (about, law, limit) in answer.laws {
                let limits = collected.laws.entry((about, law)).or_default();
                limits.entry(limit).or_default().push(name.clone());
            }
            for note in answer.notes {
                collected.notes.entry(note).or_default().push(name.clone());
            }
            (flows, links) = (answer.flows, answer.links);
        }
        Err(keys) => {
            for key in keys {
                let message = format!("no result: {}", key.reason);
                collected.notes.entry((key.key, message)).or_default().push(name.clone());
            }
        }
    }
    Point {
        parameters: point.parameters.clone(),
        numbers: point.numbers.clone(),
        labels: point.labels.clone(),
        deterministic: true,
        flows,
        links,
        ..Point::default()
    }
}

/// The swept values of a point, each with the last part of its key. Links of a chain often have the
/// same value of a key, which is then stated once.
fn point_name(parameters: &IndexMap<String, String>) -> String {
    let value = |(key, value): (&String, &String)| {
        let key = key.rsplit('.').next().unwrap_or(key);
        format!("{key} = {value}")
    };
    let values: IndexSet<String> = parameters.iter().map(value).collect();
    values.into_iter().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(parameters: &[[&str; 2]]) -> String {
        let owned = |[key, value]: &[&str; 2]| ((*key).to_owned(), (*value).to_owned());
        point_name(&parameters.iter().map(owned).collect())
    }

    #[test]
    fn equal_values_of_the_links_of_a_chain_are_named_once() {
        let chain = [
            ["duration", "300 s"],
            ["link.hop1.class", "broadband"],
            ["link.hop2.class", "broadband"],
            ["link.hop1.loss.bernoulli", "1 %"],
            ["link.hop2.loss.bernoulli", "1 %"],
        ];
        assert_eq!(name(&chain), "duration = 300 s, class = broadband, bernoulli = 1 %");
    }

    #[test]
    fn different_values_of_the_same_key_are_all_named() {
        let links = [["link.down.rate", "2 Mbit/s"], ["link.up.rate", "20 kbit/s"]];
        assert_eq!(name(&links), "rate = 2 Mbit/s, rate = 20 kbit/s");
    }
}
