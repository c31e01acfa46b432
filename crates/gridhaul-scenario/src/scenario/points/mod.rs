//! Points of a sweep: one scenario for each combination of swept values.

mod axis;
mod choices;
mod numbers;
mod range;
mod setting;
mod sweep_points;
mod template;
mod values;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::Scenario;
use super::error::{Diagnostic, ScenarioError};
use axis::{Axis, VariedKey, axes};
use setting::Setting;
use template::Template;

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
    pub(super) fn at_all_points<T: PartialEq>(&self, find: impl Fn(&Self) -> Vec<T>) -> Vec<T> {
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
    let template = Template::new(base(scenario));
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
    combinations.filter_map(|indices| point(&template, axes, indices).err()).take(1).collect()
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

fn point(
    template: &Template,
    axes: &[Axis],
    indices: &[usize],
) -> Result<ScenarioPoint, Diagnostic> {
    let mut labels = IndexMap::new();
    for (axis, index) in axes.iter().zip(indices) {
        for varied in &axis.keys {
            if let Some(label) = axis.labels.get(*index) {
                labels.insert(varied.key.clone(), label.clone());
            }
        }
    }
    let settings = settings(axes, indices);
    let scenario = template.with(&settings)?;
    let parameters =
        settings.iter().map(|setting| (setting.key.to_owned(), setting::text(&setting.value)));
    let numbers = settings
        .iter()
        .filter_map(|setting| numbers::column(setting.key, &setting.value))
        .collect();
    Ok(ScenarioPoint { parameters: parameters.collect(), numbers, labels, scenario })
}

/// The swept keys with the values at these indices of the axes.
fn settings<'a>(axes: &'a [Axis], indices: &[usize]) -> Vec<Setting<'a>> {
    let of_axis = |(axis, &index): (&'a Axis, &usize)| {
        axis.keys.iter().map(move |varied| {
            let VariedKey { key, source, values } = varied;
            Setting { key, source, entry: values.entry(index), value: values.get(index) }
        })
    };
    axes.iter().zip(indices).flat_map(of_axis).collect()
}

/// Path of a swept key in the scenario file.
pub(super) fn name(entry: usize, key: &str) -> String {
    format!("sweep[{entry}].vary.{key:?}")
}

/// An error message and the remedy.
type Refusal = (String, String);
