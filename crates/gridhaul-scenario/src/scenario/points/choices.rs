//! The candidates of a plan: scenarios with some of the chosen keys set.

use serde_json::Value as Json;

use super::axis::{Axis, varied};
use super::setting::{self, Setting};
use super::{base, failed, with};
use crate::scenario::error::{Diagnostic, ScenarioError};
use crate::scenario::{PlanSpecification, Scenario};

/// Most candidates of a plan: what equations answer in some seconds.
const CANDIDATES_MAX: usize = 20_000;

/// What a plan may choose, ready to be set.
#[derive(Debug, Clone)]
pub struct Choices {
    base: Json,
    /// The same without collectors.
    bare: Json,
    choices: Vec<Choice>,
    /// For each key, where the file gives its values, and these as they are set.
    given: Vec<(String, Vec<Json>)>,
}

/// A key and the values that it may take.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// Path of the key, such as `node.collector.count`.
    pub key: String,
    /// Values as text, such as `2 Mbit/s`; each once.
    pub values: Vec<String>,
    /// Whether this belongs to collectors: without them it is not chosen.
    pub of_aggregators: bool,
}

impl Scenario {
    /// What the plan of this scenario may choose; nothing without a plan.
    ///
    /// # Errors
    /// A key that does not exist or a list without values (the key is named), or more than
    /// 20,000 candidates.
    pub fn choices(&self) -> Result<Choices, ScenarioError> {
        self.validate()?;
        let axes = axes(self).map_err(failed)?;
        let base = base(self);
        let mut given = Vec::new();
        let mut choices = Vec::new();
        for varied in axes.into_iter().flat_map(|axis| axis.keys) {
            choices.push(Choice {
                of_aggregators: self.of_aggregators(&varied.key),
                values: varied.values.iter().map(setting::text).collect(),
                key: varied.key,
            });
            given.push((varied.place, varied.values));
        }
        Ok(Choices { bare: bare(base.clone()), base, choices, given })
    }

    /// Whether a key does nothing where there are no collectors.
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

    /// The scenario with these values, given as text in the order of the keys, also
    /// others than the plan has; `None` leaves a key
    /// as the file has it. Neither plan nor sweep is in it.
    ///
    /// # Errors
    /// A value that cannot be read, or values that contradict each other.
    pub fn scenario(
        &self,
        values: &[Option<String>],
        collectors: bool,
    ) -> Result<Scenario, ScenarioError> {
        let values = values.iter().enumerate();
        let values: Vec<Option<Json>> =
            values.map(|(index, value)| Some(self.value(index, value.as_deref()?))).collect();
        let given = values.iter().zip(&self.choices).zip(&self.given);
        let settings = given.filter_map(|((value, choice), (place, _))| {
            Some(Setting { key: &choice.key, place, entry: None, value: value.as_ref()? })
        });
        let settings: Vec<_> = settings.collect();
        with(if collectors { &self.base } else { &self.bare }, &settings).map_err(failed)
    }

    /// A value from its text: as the file gives it, else a number or a text.
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
        // Whole numbers of a fine range repeat.
        let mut once: Vec<(Json, Option<usize>)> = Vec::new();
        for (value, entry) in varied.values.into_iter().zip(varied.entries) {
            if once.iter().all(|(known, _)| *known != value) {
                once.push((value, entry));
            }
        }
        (varied.values, varied.entries) = once.into_iter().unzip();
        axes.push(Axis { keys: vec![varied], labels: Vec::new() });
    }
    let count = axes.iter().map(Axis::len).fold(1_usize, usize::saturating_mul);
    if count > CANDIDATES_MAX {
        return Err(Diagnostic::new(
            "plan.choose",
            format!("the plan has {count} candidates, and at most {CANDIDATES_MAX} are tried"),
            "values are combined in every way; give fewer, or a range with fewer points",
        ));
    }
    Ok(axes)
}

/// The tree without any `aggregator`.
fn bare(mut tree: Json) -> Json {
    if let Some(nodes) = tree["node"].as_object_mut() {
        for node in nodes.values_mut().filter_map(Json::as_object_mut) {
            node.shift_remove("aggregator");
        }
    }
    tree
}
