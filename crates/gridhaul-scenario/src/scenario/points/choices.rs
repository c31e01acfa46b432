//! The candidates of a plan: scenarios with values for the chosen keys.

use serde_json::Value as Json;

use super::axis::{Axis, varied};
use super::setting::{self, Setting};
use super::template::Template;
use super::values::{KeyValues, ListedValue};
use super::{base, error_of};
use crate::scenario::error::{Diagnostic, ScenarioError};
use crate::scenario::{PlanSpecification, Scenario};

/// Largest number of candidates of a plan, which the analytical model answers in a few seconds.
const CANDIDATES_MAX: usize = 20_000;

/// The keys that a plan may choose, with their values.
#[derive(Debug, Clone)]
pub struct Choices {
    template: Template,
    /// The same without aggregators.
    without_aggregators: Template,
    choices: Vec<Choice>,
    /// For each key, its path in the file and its values.
    given: Vec<(String, Vec<Json>)>,
}

/// A key and its possible values.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Path of the key, such as `node.concentrator.count`.
    pub key: String,
    /// Distinct values as text, such as `2 Mbit/s`.
    pub values: Vec<String>,
    /// Whether the key concerns only aggregators, so that it is not chosen without them.
    pub of_aggregators: bool,
}

impl Scenario {
    /// The choices of the plan of this scenario; empty without a plan.
    ///
    /// # Errors
    /// A key that does not exist, a list without values, or more than 20,000 candidates.
    pub fn choices(&self) -> Result<Choices, ScenarioError> {
        self.validate()?;
        let axes = axes(self).map_err(error_of)?;
        let base = base(self);
        let mut given = Vec::new();
        let mut choices = Vec::new();
        for varied in axes.into_iter().flat_map(|axis| axis.keys) {
            let values: Vec<Json> = varied.values.iter().collect();
            choices.push(Choice {
                of_aggregators: self.of_aggregators(&varied.key),
                values: values.iter().map(setting::text).collect(),
                key: varied.key,
            });
            given.push((varied.source, values));
        }
        let without_aggregators = Template::new(without_aggregators(base.clone()));
        Ok(Choices { template: Template::new(base), without_aggregators, choices, given })
    }

    /// Whether a key has no effect without aggregators.
    fn of_aggregators(&self, key: &str) -> bool {
        let steps: Vec<_> = key.split('.').collect();
        match steps[..] {
            ["node", name, ..] => self.node.get(name).is_some_and(|node| node.aggregator.is_some()),
            ["stack", name, ..] => {
                let used = |stack: &Option<String>| stack.as_deref() == Some(name);
                !self.flow.values().any(|flow| used(&flow.stack) || used(&flow.to_stack))
            }
            _ => false,
        }
    }
}

impl Choices {
    /// The keys, in the order of the file.
    #[must_use]
    pub fn keys(&self) -> &[Choice] {
        &self.choices
    }

    /// The scenario with these values, as text in the order of the keys; values outside the lists
    /// of the plan are possible, and `None` keeps the value of the file. The scenario has neither
    /// plan nor sweep.
    ///
    /// # Errors
    /// A value that cannot be read, or values that contradict each other.
    pub fn scenario(
        &self,
        values: &[Option<String>],
        with_aggregators: bool,
    ) -> Result<Scenario, ScenarioError> {
        let values = values.iter().enumerate();
        let values: Vec<Option<Json>> =
            values.map(|(index, value)| Some(self.value(index, value.as_deref()?))).collect();
        let given = values.iter().zip(&self.choices).zip(&self.given);
        let settings = given.filter_map(|((value, choice), (source, _))| {
            Some(Setting { key: &choice.key, source, entry: None, value: value.clone()? })
        });
        let settings: Vec<_> = settings.collect();
        let template = if with_aggregators { &self.template } else { &self.without_aggregators };
        template.with(&settings).map_err(error_of)
    }

    /// A value from its text: the value of the file, or else a number or a text.
    fn value(&self, choice: usize, text: &str) -> Json {
        let known = self.choices[choice].values.iter().position(|value| value == text);
        match known {
            Some(index) => self.given[choice].1[index].clone(),
            None => {
                text.parse::<i64>().map(Json::from).unwrap_or_else(|_| match text.parse::<f64>() {
                    Ok(number) => number.into(),
                    Err(_) => text.into(),
                })
            }
        }
    }
}

/// The axes of a plan, each of one key.
pub(super) fn axes(scenario: &Scenario) -> Result<Vec<Axis>, Diagnostic> {
    let Some(PlanSpecification { choose, .. }) = &scenario.plan else { return Ok(Vec::new()) };
    let base = base(scenario);
    let mut axes = Vec::new();
    for (key, values) in choose {
        let mut varied = varied(key, format!("plan.choose.{key:?}"), values, &base)?;
        // A fine range of whole numbers contains duplicates.
        let mut distinct: Vec<ListedValue> = Vec::new();
        for (index, value) in varied.values.iter().enumerate() {
            if distinct.iter().all(|known| known.value != value) {
                distinct.push(ListedValue { value, entry: varied.values.entry(index) });
            }
        }
        varied.values = KeyValues::List(distinct);
        axes.push(Axis { keys: vec![varied], labels: Vec::new() });
    }
    let count = axes.iter().map(Axis::len).fold(1_usize, usize::saturating_mul);
    if count > CANDIDATES_MAX {
        return Err(Diagnostic::new(
            "plan.choose",
            format!("the plan has {count} candidates; the limit is {CANDIDATES_MAX}"),
            "all combinations of the values are candidates; use fewer values, or ranges with \
             fewer points",
        ));
    }
    Ok(axes)
}

/// The tree without any `aggregator`.
fn without_aggregators(mut tree: Json) -> Json {
    if let Some(nodes) = tree["node"].as_object_mut() {
        for node in nodes.values_mut().filter_map(Json::as_object_mut) {
            node.shift_remove("aggregator");
        }
    }
    tree
}
