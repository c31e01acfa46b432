//! Setting a key of a scenario to a swept value.

use serde_json::Value as Json;

use crate::scenario::error::Problem;
use crate::scenario::file::explain;

/// One key and the value that it takes at a point.
pub(super) struct Setting<'a> {
    pub(super) key: &'a str,
    /// Path in the file that gives the value.
    pub(super) place: &'a str,
    pub(super) value: &'a Json,
}

impl Setting<'_> {
    pub(super) fn apply(&self, tree: &mut Json) -> Result<(), Problem> {
        let mut place = tree;
        for step in steps(self.key) {
            place = match place {
                Json::Object(table) => {
                    table.entry(step).or_insert_with(|| Json::Object(serde_json::Map::new()))
                }
                Json::Array(list) => match step.parse().ok().and_then(|i: usize| list.get_mut(i)) {
                    Some(entry) => entry,
                    None => return Err(self.refused("the key does not exist")),
                },
                _ => return Err(self.refused("the key is below a value that is not a table")),
            };
        }
        *place = self.value.clone();
        Ok(())
    }

    pub(super) fn refused(&self, reason: &str) -> Problem {
        Problem::new(self.place, format!("with the value {}: {reason}", self.value), "")
    }

    pub(super) fn unreadable(&self, error: &serde_json::Error) -> Problem {
        let (message, remedy) = explain::reworded(&error.to_string(), self.key);
        Problem { remedy, ..self.refused(&message) }
    }
}

/// The steps of a key. The number of a list's entry stands behind a dot or, as in errors, in brackets.
pub(super) fn steps(key: &str) -> impl Iterator<Item = &str> {
    key.split(['.', '[']).map(|step| step.trim_end_matches(']'))
}

/// A value as a person would write it on a command line.
pub(super) fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// A TOML value as JSON.
pub(super) fn json(value: &toml::Value) -> Json {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        // JSON has no NaN: as text it is refused, as null it would be ignored.
        toml::Value::Float(number) if !number.is_finite() => number.to_string().into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.iter().map(json).collect(),
        toml::Value::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), json(value))).collect()
        }
    }
}
