//! Error messages use the terms of the scenario file: for any value at any key, no name of a
//! type of this program or of its libraries is shown.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::scenario::{Sweep, Values};
use gridhaul_scenario::schema;
use indexmap::IndexMap;
use serde_json::Value as Json;
use toml::{Table, Value};

/// A scenario in which each key of the schema can be set.
const VALID: &str = r#"
title = "One meter"
duration = "60 s"
node = { meter = {}, head = {} }
link.feeder = { from = "meter", to = "head", both = { rate = "3 Mbit/s" } }
stack.plain = {}
flow.reading = { from = "meter", to = "head", stack = "plain", load = "bulk" }
"#;

/// A value of each type of TOML, and values at the edges of their types.
const INVALID: &str = r#"
values = [
    7, -7, 4_000_000_000, 9223372036854775807, -9223372036854775808, 1.5, -0.0, 1e300, nan, inf, true, "x", "",
    "-1 s", "1e999 s", "7 7", 2026-11-22, 2026-11-22T18:00:00Z, 18:00:00,
    [], [1], ["x"], [[]], [{}], {}, { x = 1 }, { bulk = 1 }, { bulk = {}, burst = {} },
]
"#;

/// Terms of serde, toml and Rust that must not occur in messages.
const FOREIGN: &[&str] = &[
    "struct",
    "enum",
    "tuple",
    "newtype",
    "untagged",
    "serde",
    "did not match",
    "unit variant",
    "unknown variant",
    "unknown field",
    "identifier",
    "missing field",
    "invalid type",
    "invalid value",
    "invalid length",
    "duplicate field",
    "deserialize",
    "IndexMap",
    "Option<",
    "Vec<",
    "::",
    "a map",
    "a sequence",
    "a string",
    "a boolean",
    "wanted exactly",
    "wanted string",
    "wanted table",
    "wanted map",
    "wanted zero",
    "expected empty",
    "floating point",
    "at line",
];

/// Type names that must not occur as separate words.
const TYPES: &[&str] =
    &["u8", "u16", "u32", "u64", "i32", "i64", "i128", "u128", "usize", "f64", "bool", "str"];

/// The paths of all keys, with names that [`VALID`] has.
fn paths() -> Vec<String> {
    let root = serde_json::from_str(schema::SCENARIO).expect("JSON");
    let mut paths = Vec::new();
    walk(&root, &root, "", &mut paths);
    paths.sort();
    paths.dedup();
    paths
}

fn walk(root: &Json, schema: &Json, path: &str, paths: &mut Vec<String>) {
    if path.matches(['.', '[']).count() > 9 {
        return;
    }
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.strip_prefix("#/$defs/")) {
        walk(root, &root["$defs"][name], path, paths);
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        paths.push(below(key));
        walk(root, property, &below(key), paths);
    }
    let named = &schema["additionalProperties"];
    if named.is_object() {
        let name = match path.split('.').next_back() {
            Some("node") => "meter",
            Some("link") => "feeder",
            Some("stack") => "plain",
            Some("vary" | "choose" | "cost") => return,
            _ => "reading",
        };
        paths.push(below(name));
        walk(root, named, &below(name), paths);
    }
    if schema["items"].is_object() {
        paths.push(format!("{path}[0]"));
        walk(root, &schema["items"], &format!("{path}[0]"), paths);
    }
    for kind in ["oneOf", "anyOf"] {
        for choice in schema[kind].as_array().into_iter().flatten() {
            walk(root, choice, path, paths);
        }
    }
}

/// Sets the value at a path; other values on the path are replaced by tables or lists.
fn put(tree: &mut Value, path: &str, value: &Value) {
    let (step, rest) = match path.find(['.', '[']) {
        Some(0) => {
            let (index, rest) = path.split_once(']').unwrap();
            assert_eq!(index, "[0");
            if tree.as_array().is_none_or(|list| list.len() != 1) {
                *tree = Value::Array(vec![Value::Table(Table::new())]);
            }
            let entry = &mut tree.as_array_mut().unwrap()[0];
            return put(entry, rest.trim_start_matches('.'), value);
        }
        Some(at) => path.split_at(at),
        None => (path, ""),
    };
    if step.is_empty() {
        *tree = value.clone();
        return;
    }
    if !tree.is_table() {
        *tree = Value::Table(Table::new());
    }
    let entry = tree.as_table_mut().unwrap().entry(step).or_insert(Value::Table(Table::new()));
    put(entry, rest.trim_start_matches('.'), value);
}

/// The terms of serde, toml and Rust in a message, except in quotes, which may contain text of the
/// user.
fn foreign(message: &str) -> Vec<&'static str> {
    let own: String = message.split('"').step_by(2).collect();
    let own: String = own.split('`').step_by(2).collect();
    // The lines of the file.
    let own = own.lines().filter(|line| !line.contains(" | ")).collect::<Vec<_>>().join("\n");
    let words: Vec<_> = own.split(|c: char| !c.is_alphanumeric()).collect();
    let phrases = FOREIGN.iter().filter(|phrase| own.contains(**phrase));
    phrases.chain(TYPES.iter().filter(|name| words.contains(name))).copied().collect()
}

fn invalid_values() -> Vec<Value> {
    INVALID.parse::<Table>().unwrap()["values"].as_array().unwrap().clone()
}

#[test]
fn no_value_at_any_key_shows_a_type_name() {
    let valid: Table = VALID.parse().unwrap();
    let paths = paths();
    assert!(paths.len() > 250, "only {} keys were found", paths.len());
    let mut refused = 0;
    let mut wrong = Vec::new();
    for path in &paths {
        for value in invalid_values() {
            let mut tree = Value::Table(valid.clone());
            put(&mut tree, path, &value);
            let Ok(text) = toml::to_string(&tree) else { continue };
            let Err(error) = Scenario::from_toml(&text, "invalid.toml") else { continue };
            refused += 1;
            let words = foreign(&error.to_string());
            if !words.is_empty() {
                wrong.push(format!("{path} = {value}: {words:?}\n{error}"));
            }
        }
    }
    assert!(refused > 5000, "only {refused} values were refused");
    assert!(
        wrong.is_empty(),
        "{} of {refused}:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(12)].join("\n\n")
    );
}

#[test]
fn no_swept_value_shows_a_type_name_and_each_message_names_its_key() {
    let valid = Scenario::from_toml(VALID, "valid.toml").unwrap();
    let mut wrong = Vec::new();
    for path in
        paths().iter().filter(|path| !path.starts_with("sweep") && !path.starts_with("plan"))
    {
        for value in invalid_values() {
            let vary = IndexMap::from([(path.clone(), Values::List(vec![value.clone()]))]);
            let scenario = Scenario { sweep: vec![Sweep { vary, label: None }], ..valid.clone() };
            let Err(error) = scenario.points() else { continue };
            let words = foreign(&error.to_string());
            if !words.is_empty() {
                wrong.push(format!("{path} = {value}: {words:?}\n{error}"));
            }
            let expected = format!("sweep[0].vary.{path:?}");
            let key = &error.diagnostics[0].key;
            if !key.starts_with(&expected) {
                wrong.push(format!("{path} = {value}: the message names {key}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(12)].join("\n\n"));
}
