//! The entries of a sweep and their values.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::values::KeyValues;
use super::{POINTS_MAX, Refusal, base, name, range, setting};
use crate::scenario::error::Diagnostic;
use crate::scenario::{Scenario, Sweep, Values, suggest};

/// One entry of a sweep: keys with equally many values.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) keys: Vec<VariedKey>,
    /// A label for each of the values; empty where the entry gives none.
    pub(super) labels: Vec<String>,
}

/// A key that takes several values.
#[derive(Debug, Clone)]
pub(super) struct VariedKey {
    pub(super) key: String,
    /// Path in the file that gives the values.
    pub(super) source: String,
    pub(super) values: KeyValues,
}

impl Axis {
    pub(super) fn len(&self) -> usize {
        self.keys.first().map_or(1, |varied| varied.values.len())
    }
}

/// All entries of the sweep, after a check for duplicate keys and the number of points.
pub(super) fn axes(scenario: &Scenario) -> Result<Vec<Axis>, Diagnostic> {
    let base = base(scenario);
    let mut axes = Vec::new();
    let mut seen = BTreeSet::new();
    let mut count: usize = 1;
    for (entry, sweep) in scenario.sweep.iter().enumerate() {
        for key in sweep.vary.keys() {
            // As steps, because a key can be written with quotes and without.
            if !seen.insert(setting::steps(key).collect::<Vec<_>>()) {
                return Err(Diagnostic::new(
                    name(entry, key),
                    "an earlier entry varies the same key",
                    "remove one of the two",
                ));
            }
        }
        let axis = axis(entry, sweep, &base)?;
        // Checked before any point is built: their number may exceed the memory.
        count = count.saturating_mul(axis.len());
        if count > POINTS_MAX {
            return Err(Diagnostic::new(
                format!("sweep[{entry}]"),
                format!("the sweep has more than {POINTS_MAX} points"),
                "all combinations of the entries are points; use fewer values, or vary keys \
                 together in one entry",
            ));
        }
        axes.push(axis);
    }
    Ok(axes)
}

fn axis(entry: usize, sweep: &Sweep, base: &Json) -> Result<Axis, Diagnostic> {
    let mut keys: Vec<VariedKey> = Vec::new();
    if sweep.vary.is_empty() {
        return Err(Diagnostic::new(
            format!("sweep[{entry}].vary"),
            "the entry varies no key",
            "add one: vary.\"link.uplink.both.rate\" = [\"1 Mbit/s\", \"2 Mbit/s\"]",
        ));
    }
    for (key, values) in &sweep.vary {
        let varied = varied(key, name(entry, key), values, base)?;
        if let Some(first) = keys.first()
            && first.values.len() != varied.values.len()
        {
            return Err(Diagnostic::new(
                varied.source,
                format!(
                    "{} values, but {:?} has {}",
                    varied.values.len(),
                    first.key,
                    first.values.len()
                ),
                "keys of one entry vary together: use equally many values, or separate entries",
            ));
        }
        keys.push(varied);
    }
    let labels = labels(entry, sweep, keys.first().map_or(0, |varied| varied.values.len()))?;
    check_unique(&keys)?;
    Ok(Axis { keys, labels })
}

/// Points are named by their values; equal points would have equal names and equal results. The
/// values of a range of whole numbers may be equal after rounding.
fn check_unique(keys: &[VariedKey]) -> Result<(), Diagnostic> {
    let is_listed = |varied: &VariedKey| matches!(varied.values, KeyValues::List(_));
    let Some(first) = keys.first().filter(|_| keys.iter().all(is_listed)) else { return Ok(()) };
    let mut seen = BTreeSet::new();
    for index in 0..first.values.len() {
        let values: Vec<_> =
            keys.iter().map(|varied| varied.values.get(index).to_string()).collect();
        let text = values.join(", ");
        if !seen.insert(values) {
            return Err(Diagnostic::new(
                first.source.as_str(),
                format!("the value {text} occurs twice"),
                "remove one of the two; for several runs of the same point, set `replications`",
            ));
        }
    }
    Ok(())
}

/// The labels of an entry with `values` values.
fn labels(entry: usize, sweep: &Sweep, values: usize) -> Result<Vec<String>, Diagnostic> {
    let key = || format!("sweep[{entry}].label");
    let labels = sweep.label.clone().unwrap_or_default();
    if sweep.label.is_some() && labels.len() != values {
        return Err(Diagnostic::new(
            key(),
            format!(
                "expected a label for each of the {values} values, but there are {}",
                labels.len()
            ),
            "write as many labels as values, in the same order, or remove `label`",
        ));
    }
    let mut seen = BTreeSet::new();
    for label in &labels {
        if label.trim().is_empty() || !seen.insert(label.trim()) {
            return Err(Diagnostic::new(
                key(),
                format!("the label {label:?} is empty or duplicate"),
                "use a different label for each value",
            ));
        }
    }
    Ok(labels)
}

/// A key and its values; `source` is the path in the file that gives them.
pub(super) fn varied(
    key: &str,
    source: String,
    values: &Values,
    base: &Json,
) -> Result<VariedKey, Diagnostic> {
    let fail = |(message, remedy): Refusal| Diagnostic::new(source.as_str(), message, remedy);
    find(base, key).map_err(fail)?;
    let values = match values {
        Values::List(list) => KeyValues::of_list(list.iter().map(setting::json)),
        Values::Range(range) => {
            let values = range::values(range).map_err(|(end, (message, remedy))| {
                Diagnostic::new(format!("{source}{end}"), message, remedy)
            });
            KeyValues::Range(Box::new(values?))
        }
    };
    if values.len() == 0 {
        return Err(fail(("the list is empty".into(), "add at least one value".into())));
    }
    Ok(VariedKey { key: key.to_owned(), source, values })
}

/// Checks that a key exists. Its last step may be absent, since it may be an optional key; setting
/// the key shows whether it is.
fn find(base: &Json, key: &str) -> Result<(), Refusal> {
    let steps: Vec<_> = setting::steps(key).collect();
    let mut tree = base;
    for (depth, step) in steps.iter().enumerate() {
        if depth == 0 && *step == "sweep" {
            return Err(("a sweep cannot vary itself".into(), "use a key outside `sweep`".into()));
        }
        if depth == 0 && *step == "plan" {
            return Err((
                "a sweep cannot vary the plan".into(),
                "use a key outside `sweep`".into(),
            ));
        }
        // Without stacks, the tree has no table of them; those of nodes, links and flows are
        // required.
        if depth == 0 && *step == "stack" && base.get("stack").is_none() {
            return Err(("there are no stacks".into(), "add [stack.name] first".into()));
        }
        let next = match tree {
            Json::Object(table) => table.get(*step),
            Json::Array(list) => match step.parse().ok().and_then(|index: usize| list.get(index)) {
                None => {
                    return Err((
                        format!("{:?} has no entry {step}", steps[..depth].join(".")),
                        format!(
                            "entries are counted from 0, and there are {}; to add one, give the \
                             whole list",
                            list.len()
                        ),
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
                // An empty description is not in the tree, but may be varied.
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

/// Tables whose keys are names defined in the file.
const NAMED: [&str; 4] = ["node", "link", "stack", "flow"];
