//! Lists in the place of tables. serde reads a list as the values of a struct without their keys,
//! so that `both = ["1 Mbit/s", "10 ms"]` would set the first two keys of the type, whichever these
//! are.

use serde::Serialize;
use toml::Value;
use toml::de::DeValue;

use super::locate::{Document, push_key};
use crate::scenario::error::{COLLECTED, Diagnostic};

/// A diagnostic for each list of a document that was read as a table; `read` is the result.
pub(super) fn diagnostics<T: Serialize>(document: &Document<'_>, read: &T) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    // A value that cannot be written as TOML has other errors, which the checks of its type report.
    if let Ok(read) = Value::try_from(read) {
        compare(document.root(), &read, "", &mut found);
    }
    found
}

fn compare(written: &DeValue<'_>, read: &Value, path: &str, found: &mut Vec<Diagnostic>) {
    if found.len() >= COLLECTED {
        return;
    }
    match (written, read) {
        (DeValue::Array(_), Value::Table(keys)) => {
            let example = keys.keys().next().map_or("key", String::as_str);
            let remedy = format!("write keys and values in braces: {{ {example} = … }}");
            found.push(Diagnostic::new(path, "expected a table of keys, found a list", remedy));
        }
        (DeValue::Table(written), Value::Table(read)) => {
            for (key, value) in written {
                let Some(read) = read.get(key.get_ref().as_ref()) else { continue };
                let mut path = path.to_owned();
                push_key(&mut path, key.get_ref());
                compare(value.get_ref(), read, &path, found);
            }
        }
        (DeValue::Array(written), Value::Array(read)) => {
            for (index, (value, read)) in written.iter().zip(read).enumerate() {
                compare(value.get_ref(), read, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}
