//! The values of a swept key.

use serde_json::Value as Json;

use super::range::RangeValues;

/// The values of a key, in order.
#[derive(Debug, Clone)]
pub(super) enum KeyValues {
    /// Values that a list gives.
    List(Vec<ListedValue>),
    /// Values that are computed on request: a range may have millions.
    Range(Box<RangeValues>),
}

/// A value of a list.
#[derive(Debug, Clone)]
pub(super) struct ListedValue {
    pub(super) value: Json,
    /// Its index in the list of the file; `None` for a value of a range.
    pub(super) entry: Option<usize>,
}

impl KeyValues {
    /// The values of a list of the file.
    pub(super) fn of_list(values: impl Iterator<Item = Json>) -> Self {
        let listed = |(entry, value)| ListedValue { value, entry: Some(entry) };
        Self::List(values.enumerate().map(listed).collect())
    }

    pub(super) const fn len(&self) -> usize {
        match self {
            Self::List(values) => values.len(),
            Self::Range(values) => values.len(),
        }
    }

    pub(super) fn get(&self, index: usize) -> Json {
        match self {
            Self::List(values) => values[index].value.clone(),
            Self::Range(values) => values.get(index),
        }
    }

    /// The index of a value in the list of the file; `None` for a value of a range.
    pub(super) fn entry(&self, index: usize) -> Option<usize> {
        match self {
            Self::List(values) => values[index].entry,
            Self::Range(_) => None,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Json> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Values with all units that occur: those of a range have one.
    pub(super) fn of_all_units(&self) -> impl Iterator<Item = Json> {
        let count = match self {
            Self::List(values) => values.len(),
            Self::Range(_) => 1,
        };
        (0..count).map(|index| self.get(index))
    }
}
