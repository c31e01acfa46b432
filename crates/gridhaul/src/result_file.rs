//! Recognition of files that gridhaul has written.

use std::fmt;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::Path;

use serde::Deserializer;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

/// Whether a file is a JSON object with the key `gridhaul`.
pub(crate) fn is_marked(path: &Path) -> bool {
    value(path, "gridhaul").is_some()
}

/// The title of the scenario in a file of results, if it has one.
pub(crate) fn title(path: &Path) -> Option<String> {
    value(path, "title")?.as_str().map(str::to_owned)
}

/// Whether the scenario of results has a sweep; `None` if it cannot be read.
pub(crate) fn has_sweep(path: &Path) -> Option<bool> {
    let scenario: toml::Table = fs::read_to_string(path).ok()?.parse().ok()?;
    let entries = scenario.get("sweep").and_then(toml::Value::as_array);
    Some(entries.is_some_and(|entries| !entries.is_empty()))
}

/// The value of a key of a JSON object. The file is read up to this key only, because an answer may
/// have hundreds of megabytes; in our files these keys precede the points.
fn value(path: &Path, key: &str) -> Option<Value> {
    let file = File::open(path).ok()?;
    let mut found = None;
    let mut json = serde_json::Deserializer::from_reader(BufReader::new(file));
    // The parser reports an error after the key, since the visitor leaves the rest of the object
    // unread.
    let _ = json.deserialize_map(Search { key, found: &mut found });
    found
}

/// Stores the value of a key.
struct Search<'a> {
    key: &'a str,
    found: &'a mut Option<Value>,
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a results file of gridhaul")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == self.key {
                *self.found = Some(map.next_value()?);
                break;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_marked(text: &str) -> bool {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        super::is_marked(file.path())
    }

    #[test]
    fn the_mark_is_a_key_of_the_outer_object() {
        assert!(is_marked(r#"{"schema": 1, "gridhaul": "0.1.0", "points": []}"#));
        assert!(is_marked(r#"{"points": [{"a": 1}], "gridhaul": "0.1.0"}"#));
        for other in [r#"{"mine": {"gridhaul": 1}}"#, r#"["gridhaul"]"#, "gridhaul", "", "{"] {
            assert!(!is_marked(other), "{other}");
        }
        assert!(!super::is_marked(Path::new("/nonexistent")));
    }

    #[test]
    fn nothing_after_the_mark_is_read() {
        // Reading the rest would fail: it is not JSON.
        assert!(is_marked("{\"schema\": 1, \"gridhaul\": \"0.1.0\", \u{1}"));
    }
}
