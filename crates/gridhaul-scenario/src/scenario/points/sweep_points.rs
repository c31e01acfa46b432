//! The points of a sweep one at a time: a sweep may have more points than fit into memory.

use super::axis::{Axis, axes};
use super::template::Template;
use super::{ScenarioPoint, base, error_of, indices, numbers, point};
use crate::scenario::Scenario;
use crate::scenario::error::{Diagnostic, ScenarioError};

use indexmap::IndexSet;

/// All combinations of swept values; the last entry of the sweep varies fastest.
#[derive(Debug, Clone)]
pub struct SweepPoints {
    template: Template,
    pub(super) axes: Vec<Axis>,
    count: usize,
}

impl SweepPoints {
    pub(super) fn new(scenario: &Scenario) -> Result<Self, Diagnostic> {
        let axes = axes(scenario)?;
        let count = axes.iter().map(Axis::len).product();
        Ok(Self { template: Template::new(base(scenario)), axes, count })
    }

    /// Number of points; 1 without a sweep.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is at least one point")]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// The point at an index.
    ///
    /// # Errors
    /// The combination of values is not a valid scenario.
    ///
    /// # Panics
    /// There is no such point.
    pub fn get(&self, index: usize) -> Result<ScenarioPoint, ScenarioError> {
        assert!(index < self.count, "point {index} of {}", self.count);
        point(&self.template, &self.axes, &indices(&self.axes, index)).map_err(error_of)
    }

    /// The points in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<ScenarioPoint, ScenarioError>> {
        (0..self.count).map(|index| self.get(index))
    }

    /// The columns of numbers that any point has ([`ScenarioPoint::numbers`]), in their order.
    #[must_use]
    pub fn number_columns(&self) -> Vec<String> {
        let keys = self.axes.iter().flat_map(|axis| &axis.keys);
        let columns = keys.flat_map(|varied| {
            let values = varied.values.of_all_units();
            let columns = values.map(move |value| numbers::column(&varied.key, &value));
            columns.flatten().map(|(name, _)| name)
        });
        columns.collect::<IndexSet<String>>().into_iter().collect()
    }
}
