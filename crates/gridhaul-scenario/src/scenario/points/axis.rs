//! The entries of a sweep and their values.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::{POINTS_MAX, Refusal, base, name, range, setting};
use crate::scenario::error::Diagnostic;
use crate::scenario::{Scenario, Sweep, Values, suggest};

/// One entry of a sweep: its keys, each with as many values as the others.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) keys: Vec<Varied>,
    /// A label for each of the values; empty where the entry gives none.
    pub(super) labels: Vec<String>,
}

/// A key that takes several values.
#[derive(Debug, Clone)]
pub(super) struct Varied {
    pub(super) key: String,
    /// Path in the file that says so.
    pub(super) place: String,
    pub(super) values: Vec<Json>,
    /// For each value, which of the list at `place` it is; `None` for one of a range.
    pub(super) entries: Vec<Option<usize>>,
}

impl Axis {
    pub(super) fn len(&self) -> usize {
        self.keys.first().map_or(1, |varied| varied.values.len())
    }
}

/// All entries of the sweep, checked against each other.
pub(super) fn axes(scenario: &Scenario) -> Result<Vec<Axis>, Diagnostic> {
    let base = base(scenario);
    let mut axes = Vec::new();
    let mut seen = BTreeSet::new();
    let mut count: usize = 1;
    for (entry, sweep) in scenario.sweep.iter().enumerate() {
        for key in sweep.vary.keys() {
            if !seen.insert(setting::steps(key).collect::<Vec<_>>()) {
                return Err(Diagnostic::new(
                    name(entry, key),
                    "this key is varied by an earlier entry already",
                    "keep one of the two",
                ));
            }
        }
        let axis = axis(entry, sweep, &base)?;
        count = count.saturating_mul(axis.len());
        if count > POINTS_MAX {
            return Err(Diagnostic::new(
                format!("sweep[{entry}]"),
                format!("the sweep has more than {POINTS_MAX} points"),
                "entries are combined in every way; take fewer values, or vary keys together in \
                 one entry",
            ));
        }
        axes.push(axis);
    }
    Ok(axes)
}

fn axis(entry: usize, sweep: &Sweep, base: &Json) -> Result<Axis, Diagnostic> {
    let mut keys: Vec<Varied> = Vec::new();
    if sweep.vary.is_empty() {
        return Err(Diagnostic::new(
            format!("sweep[{entry}].vary"),
            "no key is varied",
            "name one: vary.\"link.uplink.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]",
        ));
    }
    for (key, values) in &sweep.vary {
        let varied = varied(key, name(entry, key), values, base)?;
        if let Some(first) = keys.first()
            && first.values.len() != varied.values.len()
        {
            return Err(Diagnostic::new(
                varied.place,
                format!(
                    "{} values, but {:?} has {}",
                    varied.values.len(),
                    first.key,
                    first.values.len()
                ),
                "keys of one entry vary together: give them equally many values, or put them \
                 into entries of their own",
            ));
        }
        keys.push(varied);
    }
    let labels = labels(entry, sweep, keys.first().map_or(0, |varied| varied.values.len()))?;
    Ok(Axis { keys, labels })
}

/// The labels of an entry with so many values.
fn labels(entry: usize, sweep: &Sweep, values: usize) -> Result<Vec<String>, Diagnostic> {
    let place = || format!("sweep[{entry}].label");
    let labels = sweep.label.clone().unwrap_or_default();
    if sweep.label.is_some() && labels.len() != values {
        return Err(Diagnostic::new(
            place(),
            format!(
                "expected a label for each of the {values} values, but there are {}",
                labels.len()
            ),
            "give as many labels as values, in the same order, or remove `label`",
        ));
    }
    let mut seen = BTreeSet::new();
    for label in &labels {
        if label.trim().is_empty() || !seen.insert(label.trim()) {
            return Err(Diagnostic::new(
                place(),
                format!("the label {label:?} is empty or given twice"),
                "give each value a label of its own",
            ));
        }
    }
    Ok(labels)
}

/// A key and its values; `place` is the path in the file that gives them.
pub(super) fn varied(
    key: &str,
    place: String,
    values: &Values,
    base: &Json,
) -> Result<Varied, Diagnostic> {
    let fail = |(message, remedy): Refusal| Diagnostic::new(place.as_str(), message, remedy);
    find(base, key).map_err(fail)?;
    let listed = matches!(values, Values::List(_));
    let values: Vec<Json> = match values {
        Values::List(list) => list.iter().map(setting::json).collect(),
        Values::Range(range) => range::values(range).map_err(|(end, (message, remedy))| {
            Diagnostic::new(format!("{place}{end}"), message, remedy)
        })?,
    };
    if values.is_empty() {
        return Err(fail(("the list is empty".into(), "give at least one value".into())));
    }
    let entries = (0..values.len()).map(|entry| listed.then_some(entry)).collect();
    Ok(Varied { key: key.to_owned(), place, values, entries })
}

/// Checks that a key leads somewhere. Its last step may be absent where it is optional; whether
/// it exists at all is known when it is set.
fn find(base: &Json, key: &str) -> Result<(), Refusal> {
    let steps: Vec<_> = setting::steps(key).collect();
    let mut tree = base;
    for (depth, step) in steps.iter().enumerate() {
        if depth == 0 && *step == "sweep" {
            return Err(("a sweep cannot vary itself".into(), "name a key outside it".into()));
        }
        if depth == 0 && *step == "plan" {
            return Err((
                "a plan is no part of the network".into(),
                "name a key outside it".into(),
            ));
        }
        if depth == 0 && *step == "stack" && base.get("stack").is_none() {
            return Err(("there are no stacks".into(), "add [stack.name] first".into()));
        }
        let next = match tree {
            Json::Object(table) => table.get(*step),
            Json::Array(list) => match step.parse().ok().and_then(|index: usize| list.get(index)) {
                None => {
                    return Err((
                        format!("{:?} has no entry {step}", steps[..depth].join(".")),
                        format!("entries are counted from 0; it has {}", list.len()),
                    ));
                }
                found => found,
            },
            _ => {
                return Err((
                    format!("{:?} is a value and has no keys below it", steps[..depth].join(".")),
                    "vary the whole value, or write it as a table first".into(),
                ));
            }
        };
        match (next, tree) {
            (Some(next), _) => tree = next,
            (None, Json::Object(table))
                if depth == 0 && *step != "description"
                    || NAMED.contains(&steps[0]) && depth == 1 =>
            {
                let known: Vec<_> = table.keys().map(String::as_str).collect();
                let what = if depth == 0 { "key" } else { steps[0] };
                return Err((
                    format!("there is no {what} {step:?}"),
                    suggest::remedy(step, &known),
                ));
            }
            (None, _) => return Ok(()),
        }
    }
    Ok(())
}

/// Tables whose keys are names that the file chooses.
const NAMED: [&str; 4] = ["node", "link", "stack", "flow"];
