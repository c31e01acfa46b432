//! The schema and the reference page compared with the doc comments of the types. The generator of
//! both is the feature `schema`, for which the workspace would be built a second time; these tests
//! read the files of the types instead.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Descriptions by key, and the description of their type.
#[derive(Debug, Default, PartialEq, Eq)]
struct Type {
    description: String,
    keys: BTreeMap<String, String>,
}

/// The types of the files of this folder that the schema describes.
fn types() -> BTreeMap<String, Type> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/measurement");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found = BTreeMap::new();
    // This file has the attribute in a text.
    let is_source = |path: &PathBuf| path.is_file() && !path.ends_with("reference_tests.rs");
    for path in files.filter(is_source) {
        let source = fs::read_to_string(path).unwrap();
        for (begin, _) in source.match_indices("derive(schemars::JsonSchema)") {
            let before = source[..begin].rsplit("\n\n").next().unwrap_or_default();
            let (name, read) = read_type(before, &source[begin..]);
            found.insert(name, read);
        }
    }
    found
}

/// A type from its comment and attributes, and from the text after its first attribute.
fn read_type(before: &str, after: &str) -> (String, Type) {
    let mut lines = after.lines();
    let attributes: Vec<_> = lines.by_ref().take_while(|line| !line.starts_with("pub ")).collect();
    let head = after.lines().nth(attributes.len()).unwrap();
    let name = head.split([' ', '(', '<']).nth(2).unwrap().to_owned();
    let is_snake_case = attributes.iter().any(|line| line.contains("rename_all = \"snake_case\""));
    let mut read = Type { description: description(before), ..Type::default() };
    if !head.ends_with('{') {
        return (name, read);
    }
    let is_enum = head.contains("enum ");
    let (mut comment, mut renamed) = (String::new(), None);
    for line in lines.map(str::trim).take_while(|line| *line != "}") {
        if line.starts_with("///") {
            comment = format!("{comment}{line}\n");
        } else if let Some((_, rest)) = line.split_once("rename = \"") {
            renamed = rest.split('"').next().map(str::to_owned);
        } else if !line.starts_with('#') {
            let name = line.trim_start_matches("pub ").split([':', '(', ',']).next().unwrap();
            let own = if is_snake_case && is_enum { snake_case(name) } else { name.to_owned() };
            // A field that is not public is no key.
            if is_enum || line.starts_with("pub ") {
                read.keys.insert(renamed.take().unwrap_or(own), description(&comment));
            }
            comment.clear();
        }
    }
    (name, read)
}

fn description(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("///"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(character.to_lowercase());
    }
    text
}

/// A type of the schema.
fn schema_type(schema: &Value) -> Type {
    let text = |value: &Value| value["description"].as_str().unwrap_or_default().to_owned();
    let mut read = Type { description: text(schema), ..Type::default() };
    for (name, key) in schema["properties"].as_object().into_iter().flatten() {
        read.keys.insert(name.clone(), text(key));
    }
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        let constant = variant["const"].as_str().map(str::to_owned);
        let mut keys = variant["properties"].as_object().into_iter().flat_map(|keys| keys.keys());
        let name = constant.or_else(|| keys.next().cloned()).unwrap();
        read.keys.insert(name, text(variant));
    }
    read
}

fn document(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    fs::read_to_string(folder.join(name)).unwrap()
}

#[test]
fn the_schema_has_the_keys_and_comments_of_the_types() {
    let schema: Value = serde_json::from_str(&document("measurement.schema.json")).unwrap();
    let types = types();
    let definitions = schema["$defs"].as_object().unwrap();
    let mut documented: BTreeMap<String, Type> = definitions
        .iter()
        .filter(|(name, _)| types.contains_key(*name))
        .map(|(name, definition)| (name.clone(), schema_type(definition)))
        .collect();
    documented.insert("Measurement".into(), schema_type(&schema));
    for (name, own) in &types {
        let found = documented.get(name);
        assert_eq!(found, Some(own), "{name}: run `cargo xtask docs`");
    }
    assert!(types.len() > 30, "{}", types.len());
    // The others are units and enumerations of scenarios.
    let others = definitions.keys().filter(|name| !types.contains_key(*name));
    let others: BTreeSet<_> = others.map(String::as_str).collect();
    let known = ["BitRate", "CongestionControlAlgorithm", "Duration", "WindowSize"];
    assert_eq!(others, BTreeSet::from(known));
}

#[test]
fn the_reference_page_has_a_row_for_each_key() {
    let page = document("measurement.md");
    for (name, own) in types() {
        assert!(page.contains(&own.description), "{name}: run `cargo xtask docs`");
        for (key, description) in own.keys {
            let description = description.replace('|', "\\|");
            // A variant without a table is a text.
            let heads = [format!("| `{key}` |"), format!("| `\"{key}\"` |")];
            let has_row = page.lines().any(|line| {
                heads.iter().any(|head| line.starts_with(head))
                    && line.ends_with(&format!("{description} |"))
            });
            assert!(has_row, "{name}, {key}: run `cargo xtask docs`");
        }
    }
}
