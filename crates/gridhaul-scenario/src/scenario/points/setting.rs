//! Setting keys of a scenario to swept values.

use serde_json::Value as Json;

use crate::scenario::error::Diagnostic;
use crate::scenario::file::{self, explain};

/// A key and its value at a point.
pub(super) struct Setting<'a> {
    pub(super) key: &'a str,
    /// Path in the file that gives the values of the key.
    pub(super) source: &'a str,
    /// Index of the value in the list at `source`; `None` for a value of a range.
    pub(super) entry: Option<usize>,
    pub(super) value: Json,
}

impl Setting<'_> {
    pub(super) fn apply(&self, tree: &mut Json) -> Result<(), Diagnostic> {
        let mut node = tree;
        for step in steps(self.key) {
            node = match node {
                Json::Object(table) => {
                    table.entry(step).or_insert_with(|| Json::Object(serde_json::Map::new()))
                }
                Json::Array(list) => match step.parse().ok().and_then(|i: usize| list.get_mut(i)) {
                    Some(entry) => entry,
                    None => return Err(self.refused_key("the key does not exist")),
                },
                _ => {
                    return Err(self.refused_key("the key is below a value that is not a table"));
                }
            };
        }
        *node = self.value.clone();
        Ok(())
    }

    /// A diagnostic for the value, or for the key at `path` in the scenario if that is below the
    /// value.
    pub(super) fn refused(&self, path: &str, reason: &str) -> Diagnostic {
        let entry = self.entry.map_or_else(String::new, |entry| format!("[{entry}]"));
        let below = below(path, self.key);
        let source = format!("{}{entry}{below}", self.source);
        let message = match &self.value {
            // A table is long, and the location already shows the key.
            Json::Object(_) | Json::Array(_) => reason.to_owned(),
            value => format!("with the value {value}: {reason}"),
        };
        Diagnostic::new(source, message, "")
    }

    /// A diagnostic for the key, independent of its value.
    fn refused_key(&self, reason: &str) -> Diagnostic {
        Diagnostic::new(self.source, reason, "")
    }

    /// The diagnostic for an entry of a list that the file does not have: `tree` has a table with
    /// the number of the entry in its place.
    fn entry_of_absent_list(&self, tree: &Json) -> Option<Diagnostic> {
        let steps: Vec<_> = steps(self.key).collect();
        let table_at = |depth: usize| {
            let path = format!("/{}", steps[..depth].join("/"));
            tree.pointer(&path).and_then(Json::as_object)
        };
        let has_only_entry = |depth: &usize| table_at(*depth).is_some_and(|table| table.len() == 1);
        let mut numbers = (1..steps.len()).filter(|&depth| steps[depth].parse::<usize>().is_ok());
        let depth = numbers.find(has_only_entry)?;
        let (list, entry) = (steps[..depth].join("."), steps[depth]);
        let reason = format!("{list:?} has no entry {entry}, since the file has no such list");
        let remedy = format!("give the whole list, with all keys of each entry: {list}=[{{…}}]");
        Some(Diagnostic { remedy, ..self.refused_key(&reason) })
    }

    /// The diagnostic for a tree that is not a scenario because of this setting.
    pub(super) fn unreadable(&self, tree: &Json, error: &serde_json::Error) -> Diagnostic {
        // The TOML parser reports the key of an error, which the JSON deserialiser does not.
        let Some(found) = file::why_unreadable(tree) else {
            let (message, remedy) = explain::in_toml_terms(&error.to_string(), self.key);
            return Diagnostic { remedy, ..self.refused("", &message) };
        };
        if found.message == "expected a list, found a table"
            && let Some(diagnostic) = self.entry_of_absent_list(tree)
        {
            return diagnostic;
        }
        let is_key = below(&found.key, self.key).is_empty();
        let refused = match found.message.strip_prefix("there is no key ") {
            Some(_) if is_key => self.refused_key(&found.message),
            _ => self.refused(&found.key, &found.message),
        };
        Diagnostic { remedy: found.remedy, ..refused }
    }
}

/// Whether a value is, or contains, a list.
pub(super) fn has_list(value: &Json) -> bool {
    match value {
        Json::Array(_) => true,
        Json::Object(table) => table.values().any(has_list),
        _ => false,
    }
}

/// The part of `path` after `key`, such as `.periodic.size`.
fn below(path: &str, key: &str) -> String {
    let own: Vec<_> = steps(key).collect();
    let path = file::path_steps(path);
    let plain = |step: &str| step.trim_matches(['[', ']']).to_owned();
    let same = path.len() > own.len() && path.iter().zip(&own).all(|(a, b)| plain(a) == *b);
    let rest = if same { &path[own.len()..] } else { &[] };
    let written =
        |step: &String| if step.starts_with('[') { step.clone() } else { format!(".{step}") };
    rest.iter().map(written).collect()
}

/// The steps of a key. The index of a list entry follows a dot or, as in errors, is in brackets.
pub(super) fn steps(key: &str) -> impl Iterator<Item = &str> {
    key.split(['.', '[']).map(|step| step.trim_end_matches(']'))
}

/// A value as on a command line.
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
        // JSON has no NaN: a text causes an error, whereas null would be ignored.
        toml::Value::Float(number) if !number.is_finite() => number.to_string().into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(value) => (*value).into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(list) => list.iter().map(json).collect(),
        toml::Value::Table(table) => {
            table.iter().map(|(key, value)| (key.clone(), json(value))).collect()
        }
    }
}
