//! `docs/defaults.md`: each default of scenarios, relays and profiles, with its reason and source.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::data;
use crate::repository::Repository;

const INTRODUCTION: &str = "\
# Defaults

<!-- Generated from the schemas and docs/data/defaults.toml by `cargo xtask docs`. -->

Every key with a default, why it has this value, and where the value comes from. *Measured* names
the page or the test with the measurement.
";

/// Name of the table at the top level of a file.
const TOP: &str = "top";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    scenario: Tables,
    relay: Tables,
    profile: Reasons,
}

type Tables = BTreeMap<String, Reasons>;
/// Reason and source of each key, and its value if the schema does not state it.
type Reasons = BTreeMap<String, Vec<String>>;

/// A key with its default value.
struct Default {
    key: String,
    /// Null if only the data file states it.
    value: Option<String>,
}

/// The page and what is wrong with its data.
pub(crate) struct Defaults {
    pub(crate) page: String,
    pub(crate) errors: Vec<String>,
}

impl Defaults {
    pub(crate) fn generate(repository: &Repository) -> Self {
        let file: File = data(repository, "defaults");
        let mut errors = Vec::new();
        let mut page = INTRODUCTION.to_owned();
        for (name, title, tables) in
            [("scenario", "Scenario", &file.scenario), ("relay", "Relay", &file.relay)]
        {
            let schema = repository.read(&format!("docs/reference/{name}.schema.json"));
            let schema: Value = serde_json::from_str(&schema).expect("the schema is JSON");
            page += &format!("\n## {title}\n\n[Reference](reference/{name}.md)\n");
            let found = of_schema(&schema);
            let unknown =
                tables.keys().filter(|table| !found.iter().any(|(name, _)| name == *table));
            errors.extend(unknown.map(|table| format!("{name}.{table}: there is no such table")));
            for (table, defaults) in &found {
                let none = Reasons::new();
                let reasons = tables.get(table).unwrap_or(&none);
                page += &section(
                    &format!("{name}.{table}"),
                    &heading(table),
                    defaults,
                    reasons,
                    &mut errors,
                );
            }
        }
        page += "\n## TCP profiles\n\nValues of `rfc`, `linux` and `ns2` \
                 ([reference](reference/profiles.md)).\n";
        let profiles = of_profiles(&repository.read("docs/reference/profiles.md"));
        page += &section("profile", "Stack", &profiles, &file.profile, &mut errors);
        Self { page, errors }
    }
}

/// A table of the page.
fn section(
    place: &str,
    heading: &str,
    defaults: &[Default],
    reasons: &Reasons,
    errors: &mut Vec<String>,
) -> String {
    let mut text =
        format!("\n### {heading}\n\n| key | default | reason | source |\n|---|---|---|---|\n");
    for Default { key, value } in defaults {
        let reason = reasons.get(key).map(Vec::as_slice);
        let (reason, source, value) = match (reason, value) {
            (Some([reason, source]), Some(value)) => (reason, source, value),
            (Some([reason, source, value]), None) => (reason, source, &format!("`{value}`")),
            (Some(_), Some(_)) => {
                errors.push(format!("{place}.{key}: two texts are expected: reason and source"));
                continue;
            }
            (Some(_), None) => {
                errors
                    .push(format!("{place}.{key}: the schema does not state the value; state it"));
                continue;
            }
            (None, value) => {
                let value = value.as_deref().unwrap_or_default();
                errors.push(format!("{place}.{key}: the default {value} has no reason"));
                continue;
            }
        };
        if source.is_empty() && !reason.starts_with("Neutral: ") {
            errors.push(format!("{place}.{key}: the default {value} has no source"));
        }
        let reason = reason
            .strip_prefix("Neutral: ")
            .map_or(reason.clone(), |text| format!("neutral: {text}"));
        let source = if source.is_empty() { "–" } else { source };
        text += &format!("| `{key}` | {value} | {reason} | {source} |\n");
    }
    let known: BTreeSet<_> = defaults.iter().map(|default| &default.key).collect();
    let gone = reasons.keys().filter(|key| !known.contains(key));
    errors.extend(gone.map(|key| format!("{place}.{key}: there is no such default")));
    text
}

/// The defaults of each table of a schema that has any.
fn of_schema(schema: &Value) -> Vec<(String, Vec<Default>)> {
    let tables = schema["$defs"].as_object().into_iter().flatten();
    let tables = tables.map(|(name, table)| (name.clone(), table));
    let all = [(TOP.to_owned(), schema)].into_iter().chain(tables);
    let with_defaults = all.map(|(name, table)| (name, of_table(table)));
    with_defaults.filter(|(_, defaults)| !defaults.is_empty()).collect()
}

/// The defaults of a table, and of its alternatives. Those of a stack are in the table of profiles.
fn of_table(table: &Value) -> Vec<Default> {
    let required = table["required"].as_array().into_iter().flatten();
    let required: Vec<_> = required.filter_map(Value::as_str).collect();
    let is_stack = table["title"] == "Stack" || table["properties"].get("profile").is_some();
    let own = table["properties"].as_object().into_iter().flat_map(Map::iter);
    let mut defaults: Vec<_> = own
        .filter_map(|(key, property)| {
            let value = match property.get("default") {
                Some(Value::Object(map)) if map.is_empty() => Some("empty".to_owned()),
                Some(value) => Some(format!("`{value}`")),
                None => absent(property["description"].as_str().unwrap_or_default()),
            };
            let is_open = property["type"] == "boolean" && !required.contains(&key.as_str());
            (value.is_some() || is_open && !is_stack).then(|| Default { key: key.clone(), value })
        })
        .collect();
    for word in ["oneOf", "anyOf", "allOf"] {
        let alternatives = table[word].as_array().into_iter().flatten();
        defaults.extend(alternatives.flat_map(of_table));
    }
    defaults
}

/// The meaning of an absent key, which its description states.
fn absent(description: &str) -> Option<String> {
    let marks = ["Absent: ", "Absent (assumed): "];
    let (_, text) = marks.iter().find_map(|mark| description.split_once(mark))?;
    let end = text.find(['.', ';']).filter(|end| text[*end + 1..].starts_with(' '));
    let text = &text[..end.unwrap_or(text.len())];
    Some(text.trim_end_matches('.').to_owned())
}

/// The rows of the table of profiles.
fn of_profiles(page: &str) -> Vec<Default> {
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| {
        let cells: Vec<_> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        Default { key: cells[0].trim_matches('`').to_owned(), value: Some(cells[1..].join("; ")) }
    })
    .collect()
}

/// The name of a type as a heading: `MeterListener` as "Meter listener".
fn heading(table: &str) -> String {
    if table == TOP {
        return "Top level".to_owned();
    }
    let mut text = String::new();
    for c in table.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
            text.push(c.to_ascii_lowercase());
        } else {
            text.push(c);
        }
    }
    text
}

#[test]
fn a_default_without_a_reason_is_an_error() {
    let schema = serde_json::json!({"$defs": {"MeterListener": {"properties": {
        "first": {"default": 1},
        "second": {"description": "A limit. Absent: no limit. Text."},
        "third": {"description": "Required."},
    }}}});
    let found = of_schema(&schema);
    let reasons = [
        ("first".to_owned(), vec!["Because".to_owned(), String::new()]),
        ("fourth".to_owned(), vec!["Neutral: no".to_owned(), String::new()]),
    ];
    let mut errors = Vec::new();
    let text = section("relay", &heading(&found[0].0), &found[0].1, &reasons.into(), &mut errors);
    assert!(text.starts_with("\n### Meter listener\n") && text.contains("| `first` | `1` |"));
    let expected = [
        "relay.first: the default `1` has no source",
        "relay.second: the default no limit has no reason",
        "relay.fourth: there is no such default",
    ];
    assert_eq!(errors, expected);
}
