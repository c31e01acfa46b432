//! Points of a sweep: one scenario for each combination of swept values.

mod axis;
mod choices;
mod numbers;
mod range;
mod setting;
mod sweep_points;

use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::Value as Json;

use super::error::{Diagnostic, ScenarioError};
use super::file::{self, explain};
use super::{Scenario, check, power_line};
use axis::{Axis, axes};
use setting::Setting;

pub use choices::{Choice, Choices};
pub use sweep_points::SweepPoints;

/// One combination of swept values, and the scenario that results.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioPoint {
    /// Swept keys and their values, as text; empty without a sweep.
    pub parameters: IndexMap<String, String>,
    /// Swept values as numbers, by `<key>_<unit>`.
    pub numbers: IndexMap<String, f64>,
    /// Swept keys and the labels of their values, for entries with `label`.
    pub labels: IndexMap<String, String>,
    /// The scenario with these values and without a sweep.
    pub scenario: Scenario,
}

/// Largest number of points of a sweep: larger numbers are probably typing errors.
const POINTS_MAX: usize = 10_000_000;

/// Largest number of points that are built at once, for a run whose results are in memory.
const POINTS_AT_ONCE: usize = 100_000;

/// Largest number of combinations that are checked when a file is read; the others are checked
/// later.
const CHECKED: usize = 1_000;

impl Scenario {
    /// Number of combinations of swept values; 1 without a sweep.
    ///
    /// # Errors
    /// A sweep that is not well formed or has more than 10,000,000 points.
    pub fn point_count(&self) -> Result<usize, ScenarioError> {
        let axes = axes(self).map_err(error_of)?;
        Ok(axes.iter().map(Axis::len).product())
    }

    /// All combinations of swept values; the last entry of the sweep varies fastest.
    ///
    /// # Errors
    /// A sweep that is not well formed or has more than 100,000 points, or a combination that is
    /// not a valid scenario.
    pub fn points(&self) -> Result<Vec<ScenarioPoint>, ScenarioError> {
        let points = self.sweep_points()?;
        if points.len() > POINTS_AT_ONCE {
            return Err(error_of(Diagnostic::new(
                "sweep",
                format!(
                    "the sweep has {} points; the limit of this command and backend is \
                     {POINTS_AT_ONCE}",
                    points.len()
                ),
                "`gridhaul sweep` with backend `sim` has results on disk and no such limit; else \
                 use fewer values",
            )));
        }
        points.iter().collect()
    }

    /// The points of the sweep, each built on request.
    ///
    /// # Errors
    /// A sweep that is not well formed.
    pub fn sweep_points(&self) -> Result<SweepPoints, ScenarioError> {
        self.validate()?;
        SweepPoints::new(self).map_err(error_of)
    }
}

impl Scenario {
    /// Path of the sweep entry that varies this key, if any: `sweep[0].vary."flow.up.count"`.
    #[must_use]
    pub fn swept_key(&self, key: &str) -> Option<String> {
        let entry = self.sweep.iter().position(|entry| entry.vary.contains_key(key))?;
        Some(name(entry, key))
    }

    /// The results of `find` for this scenario; in a sweep, those common to all points.
    pub(super) fn at_all_points(&self, find: impl Fn(&Self) -> Vec<String>) -> Vec<String> {
        // Only results of the file itself can be common to all points: without any, no point is
        // built.
        let mut found = find(self);
        if !found.is_empty() && !self.sweep.is_empty() {
            for point in self.points().unwrap_or_default() {
                let here = find(&point.scenario);
                found.retain(|result| here.contains(result));
            }
        }
        found
    }
}

/// Checks the sweep and the plan of an otherwise valid scenario. Each value is checked once, in
/// combination with the first values of the other entries.
pub(super) fn diagnostics(scenario: &Scenario) -> Vec<Diagnostic> {
    let swept = axes(scenario).map(|axes| first_error(scenario, &axes));
    let chosen = choices::axes(scenario).map(|axes| first_error(scenario, &axes));
    [swept, chosen]
        .into_iter()
        .flat_map(|found| found.unwrap_or_else(|diagnostic| vec![diagnostic]))
        .collect()
}

fn first_error(scenario: &Scenario, axes: &[Axis]) -> Vec<Diagnostic> {
    let base = base(scenario);
    // All combinations would be too many to check; a wrong value is wrong in any combination, apart
    // from values that contradict each other.
    let mut combinations = vec![vec![0; axes.len()]];
    for (entry, axis) in axes.iter().enumerate() {
        combinations.extend((1..axis.len()).take(CHECKED).map(|index| {
            let mut indices = vec![0; axes.len()];
            indices[entry] = index;
            indices
        }));
    }
    let combinations = combinations.iter().take(CHECKED);
    combinations.filter_map(|indices| point(&base, axes, indices).err()).take(1).collect()
}

fn error_of(diagnostic: Diagnostic) -> ScenarioError {
    ScenarioError::one("", diagnostic)
}

/// The scenario as a tree of keys, without its sweep and plan.
fn base(scenario: &Scenario) -> Json {
    let mut tree = serde_json::to_value(scenario).unwrap_or_default();
    if let Json::Object(tree) = &mut tree {
        tree.shift_remove("sweep");
        tree.shift_remove("plan");
    }
    tree
}

fn indices(axes: &[Axis], mut number: usize) -> Vec<usize> {
    let mut indices = vec![0; axes.len()];
    for (index, axis) in indices.iter_mut().zip(axes).rev() {
        *index = number % axis.len();
        number /= axis.len();
    }
    indices
}

fn point(base: &Json, axes: &[Axis], indices: &[usize]) -> Result<ScenarioPoint, Diagnostic> {
    let mut settings = Vec::new();
    let mut labels = IndexMap::new();
    for (axis, index) in axes.iter().zip(indices) {
        for varied in &axis.keys {
            if let Some(label) = axis.labels.get(*index) {
                labels.insert(varied.key.clone(), label.clone());
            }
            let (key, source, value) = (&varied.key, &varied.source, &varied.values[*index]);
            settings.push(Setting { key, source, entry: varied.entries[*index], value });
        }
    }
    let scenario = with(base, &settings)?;
    let parameters =
        settings.iter().map(|setting| (setting.key.to_owned(), setting::text(setting.value)));
    let numbers =
        settings.iter().filter_map(|setting| numbers::column(setting.key, setting.value)).collect();
    Ok(ScenarioPoint { parameters: parameters.collect(), numbers, labels, scenario })
}

/// The scenario with these settings.
fn with(base: &Json, settings: &[Setting<'_>]) -> Result<Scenario, Diagnostic> {
    let mut tree = base.clone();
    let is_set_below = |key: &str| {
        settings.iter().any(|set| set.key.strip_prefix(key).is_some_and(|s| s.starts_with('.')))
    };
    // Directions that a power line has set would otherwise hide the changed keys of the line.
    power_line::remove_derived(&mut tree, is_set_below);
    for setting in settings {
        setting.apply(&mut tree)?;
    }
    let scenario = Scenario::deserialize(&tree).map_err(|error| blame(base, settings, &error))?;
    let has_list = settings.iter().any(|setting| setting::has_list(setting.value));
    let list = if has_list { file::list_read_as_table(&tree, &scenario) } else { None };
    if let Some(diagnostic) = list.or_else(|| check::diagnostics(&scenario).into_iter().next()) {
        let named = settings.iter().find(|setting| diagnostic.key.starts_with(setting.key));
        return Err(match named.or(settings.first()) {
            Some(setting) => {
                let reason = format!("{}: {}", diagnostic.key, diagnostic.message);
                let refused = setting.refused(&diagnostic.key, &reason);
                Diagnostic { remedy: diagnostic.remedy, ..refused }
            }
            None => diagnostic,
        });
    }
    Ok(scenario)
}

/// Finds the setting that causes an error: the first one that does so alone.
fn blame(base: &Json, settings: &[Setting<'_>], error: &serde_json::Error) -> Diagnostic {
    for setting in settings {
        let mut tree = base.clone();
        if let Err(diagnostic) = setting.apply(&mut tree) {
            return diagnostic;
        }
        if let Err(error) = Scenario::deserialize(&tree) {
            return setting.unreadable(&tree, &error);
        }
    }
    // No setting fails alone: two of them contradict each other.
    match settings.first() {
        Some(setting) => {
            let (message, remedy) = explain::in_toml_terms(&error.to_string(), setting.key);
            Diagnostic { remedy, ..setting.refused("", &message) }
        }
        None => Diagnostic::new("sweep", explain::in_toml_terms(&error.to_string(), "").0, ""),
    }
}

/// Path of a swept key in the scenario file.
pub(super) fn name(entry: usize, key: &str) -> String {
    format!("sweep[{entry}].vary.{key:?}")
}

/// An error message and the remedy.
type Refusal = (String, String);
