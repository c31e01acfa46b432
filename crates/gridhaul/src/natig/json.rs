//! Objects of JSON whose errors name file and key. NATIG writes numbers as numbers or as texts.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::{File, ImportError};

/// An object, and where it is.
#[derive(Debug, Clone)]
pub(super) struct Object {
    file: String,
    path: String,
    keys: Map<String, Value>,
}

impl Object {
    pub(super) fn parse(file: File<'_>) -> Result<Self, ImportError> {
        let root = Self { file: file.name.to_owned(), path: String::new(), keys: Map::new() };
        match serde_json::from_str(file.text) {
            Ok(Value::Object(keys)) => Ok(Self { keys, ..root }),
            Ok(_) => Err(root.error("the file", "expected an object", "give a file of NATIG")),
            Err(error) => Err(root.error(
                &format!("line {}, column {}", error.line(), error.column()),
                &format!("expected JSON: {error}"),
                "repair the file, or give the topology.json of NATIG",
            )),
        }
    }

    pub(super) fn error(&self, key: &str, message: &str, help: &str) -> ImportError {
        let key =
            if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        let (message, help) = (message.to_owned(), help.to_owned());
        ImportError { file: self.file.clone(), key, message, help }
    }

    /// The objects of a list.
    pub(super) fn list(&self, key: &str) -> Result<Vec<Self>, ImportError> {
        let found = self.keys.get(key).and_then(Value::as_array);
        let items = found.ok_or_else(|| {
            self.error(key, "expected a list of objects", "give the file as NATIG reads it")
        })?;
        let objects = items.iter().enumerate().map(|(index, item)| {
            let path = format!("{key}[{index}]");
            match item {
                Value::Object(keys) => {
                    Ok(Self { file: self.file.clone(), path, keys: keys.clone() })
                }
                _ => Err(self.error(&path, "expected an object", "see the examples of NATIG")),
            }
        });
        objects.collect()
    }

    /// The only object of a list, as most tables of NATIG are.
    pub(super) fn first(&self, key: &str) -> Result<Self, ImportError> {
        self.list(key)?.into_iter().next().ok_or_else(|| {
            self.error(key, "the list is empty", "add an object with the keys of NATIG")
        })
    }

    /// A text or number.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.keys.get(key)? {
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A value, or the default if the key is absent.
    pub(super) fn value<T: FromStr>(
        &self,
        key: &str,
        expected: &str,
        default: T,
    ) -> Result<T, ImportError> {
        if !self.keys.contains_key(key) {
            return Ok(default);
        }
        self.required(key, expected)
    }

    /// A value of a key that must exist.
    pub(super) fn required<T: FromStr>(&self, key: &str, expected: &str) -> Result<T, ImportError> {
        let text = self.text(key);
        text.as_deref().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let found = text.map_or_else(|| "nothing".to_owned(), |text| format!("{text:?}"));
            self.error(key, &format!("expected {expected}, found {found}"), "correct the value")
        })
    }

    /// The numbers of a list.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<usize>, ImportError> {
        let items = self.keys.get(key).and_then(Value::as_array);
        let number = |item: &Value| match item {
            Value::Number(number) => number.as_u64().map(|number| number as usize),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        items.and_then(|items| items.iter().map(number).collect::<Option<Vec<_>>>()).ok_or_else(
            || self.error(key, "expected a list of node numbers", "see the examples of NATIG"),
        )
    }

    /// Number of items of all lists of the object.
    pub(super) fn listed_items(&self) -> u64 {
        let lists = self.keys.values().filter_map(Value::as_array);
        lists.map(|items| items.len() as u64).sum()
    }
}
