//! The answer to a scenario of bulk flows: all points of its sweep, and what a reader must know.

use std::collections::BTreeMap;

use gridhaul_scenario::answer::{Answer, Point, Warning};
use gridhaul_scenario::backend::{Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{Load, Scenario, ScenarioPoint};
use indexmap::IndexMap;

use super::bulk::answer_point;
use crate::rules::Rules;

/// Whether a scenario is about bulk flows or transfers, so that these formulas are to answer it.
#[must_use]
pub fn is_bulk(scenario: &Scenario) -> bool {
    scenario.flow.values().any(|flow| matches!(flow.load, Load::Bulk | Load::Transfer(_)))
}

/// Whether at least one point of the sweep has a formula, and no key asks for what equations cannot
/// give.
///
/// # Errors
/// Each key that cannot be honoured.
pub fn supports(scenario: &Scenario, rules: Rules) -> Result<(), Vec<Unsupported>> {
    let mut unsupported = Vec::new();
    let mut refuse = |key: &str, reason: &str| {
        unsupported.push(Unsupported { key: key.to_owned(), reason: reason.to_owned() });
    };
    if scenario.record.interval.is_some() {
        refuse("record.interval", "the steady state has no course over time; ask `--on sim`");
    }
    if !scenario.record.pcap.is_empty() {
        refuse("record.pcap", "equations have no packets; ask `--on sim`");
    }
    if !unsupported.is_empty() {
        return Err(unsupported);
    }
    // A scenario that contradicts itself is refused when it is run.
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

/// Answers all points. One without a formula has no metrics, and a warning says why.
///
/// # Errors
/// A sweep that contradicts the scenario, or no point that has a formula.
pub fn answer(
    scenario: &Scenario,
    rules: Rules,
    progress: &dyn Progress,
) -> Result<Answer, RunError> {
    let points = scenario.points().map_err(|error| RunError::Invalid(error.to_string()))?;
    supports(scenario, rules).map_err(RunError::Unsupported)?;
    let mut heard = Heard::default();
    let mut answered = Vec::with_capacity(points.len());
    for (index, point) in points.iter().enumerate() {
        if progress.is_interrupted() {
            break;
        }
        answered.push(answer_one(point, rules, &mut heard));
        progress.advance(index as u64 + 1, points.len() as u64);
    }
    let mut answer = Answer::without_points(scenario, "model");
    // Equations know no chance.
    answer.replications = 1;
    let finished = answered.len();
    answer.points = answered;
    answer.warnings.extend(heard.warnings(points.len()));
    let finished: Vec<_> = (0..points.len()).map(|point| usize::from(point < finished)).collect();
    answer.with_finished(&finished, 1)
}

/// What was said, and at which points.
#[derive(Debug, Default)]
struct Heard {
    /// Key and formula, then what limited the flow there.
    laws: BTreeMap<(String, &'static str), BTreeMap<String, Vec<String>>>,
    /// Key and message.
    notes: BTreeMap<(String, String), Vec<String>>,
}

impl Heard {
    fn warnings(self, points: usize) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for ((about, law), limits) in self.laws {
            let limits: Vec<_> = limits
                .iter()
                .map(|(limit, at)| format!("{limit} limits{}", places(at, points)))
                .collect();
            let message = format!("by {law}; {}", limits.join("; "));
            warnings.push(Warning { about, message });
        }
        for ((about, message), at) in self.notes {
            let message = message + &places(&at, points);
            warnings.push(Warning { about, message });
        }
        warnings.sort();
        warnings
    }
}

/// Where a thing is so, unless it is so everywhere.
fn places(at: &[String], points: usize) -> String {
    match at {
        _ if at.len() == points => String::new(),
        [one] => format!(" at {one}"),
        [first, ..] => format!(" at {} of {points} points, the first being {first}", at.len()),
        [] => String::new(),
    }
}

fn answer_one(point: &ScenarioPoint, rules: Rules, heard: &mut Heard) -> Point {
    let place = place(&point.parameters);
    let (mut flows, mut links) = (Vec::new(), Vec::new());
    match answer_point(&point.scenario, rules) {
        Ok(answer) => {
            for (about, law, limit) in answer.laws {
                let limits = heard.laws.entry((about, law)).or_default();
                limits.entry(limit).or_default().push(place.clone());
            }
            for note in answer.notes {
                heard.notes.entry(note).or_default().push(place.clone());
            }
            (flows, links) = (answer.flows, answer.links);
        }
        Err(keys) => {
            for key in keys {
                let message = format!("no answer, since {}", key.reason);
                heard.notes.entry((key.key, message)).or_default().push(place.clone());
            }
        }
    }
    let (parameters, labels) = (point.parameters.clone(), point.labels.clone());
    Point { parameters, labels, deterministic: true, flows, links, ..Point::default() }
}

/// The values of a point: the last part of each key is enough to tell them apart here.
fn place(parameters: &IndexMap<String, String>) -> String {
    let value = |(key, value): (&String, &String)| {
        let key = key.rsplit('.').next().unwrap_or(key);
        format!("{key} = {value}")
    };
    parameters.iter().map(value).collect::<Vec<_>>().join(", ")
}
