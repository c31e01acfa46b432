//! Markdown sections from a JSON Schema: one for each table or choice.

use std::collections::VecDeque;

use indexmap::IndexMap;
use serde_json::Value;

/// Types that the page describes in the section on units or in the list of columns.
const QUANTITIES: [(&str, &str); 9] = [
    ("Duration", "[time](#units)"),
    ("BitRate", "[rate](#units)"),
    ("Bytes", "[size](#units)"),
    ("Distance", "[distance](#units)"),
    ("Decibel", "[ratio of powers](#units)"),
    ("Probability", "[probability](#units)"),
    ("QueueLimit", "[queue limit](#units)"),
    ("WindowSize", "[window](#units)"),
    ("Metric", "[column](#columns-of-a-flow)"),
];

/// Largest number of paths shown for a table.
const PATHS_SHOWN: usize = 4;

/// Writes a section for the root and for each type below it, in the order of their first use.
pub(super) fn write_all(page: &mut String, root: &Value, heading: &str) {
    *page += &format!("\n## {heading}\n\n{}\n", text(root));
    body(page, root);
    for (name, paths) in types_with_paths(root) {
        let schema = &root["$defs"][&name];
        *page += &format!("\n## {}\n\n{}\n", type_title(&name), text(schema));
        let shown: Vec<_> =
            paths.iter().take(PATHS_SHOWN).map(|path| format!("`{path}`")).collect();
        let more = if paths.len() > PATHS_SHOWN { " and elsewhere" } else { "" };
        *page += &format!("\nUsed at {}{more}.\n", shown.join(", "));
        body(page, schema);
    }
}

/// Types with their own sections, and the paths at which they are used, breadth first.
fn types_with_paths(root: &Value) -> IndexMap<String, Vec<String>> {
    let mut types: IndexMap<String, Vec<String>> = IndexMap::new();
    // The search ends, because no type of a file contains itself.
    let mut waiting = VecDeque::from([(String::new(), root)]);
    while let Some((path, schema)) = waiting.pop_front() {
        for (path, name) in references(&path, schema) {
            if QUANTITIES.iter().any(|(quantity, _)| *quantity == name) {
                continue;
            }
            let known = types.entry(name.clone()).or_default();
            known.push(path.clone());
            waiting.push_back((path, &root["$defs"][&name]));
        }
    }
    types
}

/// Types that a schema refers to, each with its path.
fn references(path: &str, schema: &Value) -> Vec<(String, String)> {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let mut found = Vec::new();
    if let Some(name) = reference(schema) {
        found.push((path.to_owned(), name.to_owned()));
    }
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        found.extend(references(&below(key), property));
    }
    if schema["additionalProperties"].is_object() {
        found.extend(references(&below("<name>"), &schema["additionalProperties"]));
    }
    if schema["items"].is_object() {
        found.extend(references(&format!("{path}[]"), &schema["items"]));
    }
    for choice in choices(schema) {
        found.extend(references(path, choice));
    }
    found
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

fn choices(schema: &Value) -> impl Iterator<Item = &Value> {
    ["oneOf", "anyOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten()
}

/// The table of keys or of choices.
fn body(page: &mut String, schema: &Value) {
    if let Some(properties) = schema["properties"].as_object() {
        *page += "\n| key | type | default | meaning |\n|---|---|---|---|\n";
        for (key, property) in properties {
            let default = default(schema, key, property);
            *page +=
                &format!("| `{key}` | {} | {default} | {} |\n", kind(property), text(property));
        }
        return;
    }
    let listed: Vec<_> = choices(schema).collect();
    if listed.is_empty() {
        return;
    }
    *page += "\n| one of | type | meaning |\n|---|---|---|\n";
    for choice in listed {
        if let Some(value) = choice["const"].as_str() {
            *page += &format!("| `\"{value}\"` | enum value | {} |\n", text(choice));
        } else if let Some((key, value)) =
            choice["properties"].as_object().and_then(|p| p.iter().next())
        {
            *page += &format!("| `{key}` | {} | {} |\n", kind(value), text(choice));
        } else {
            *page += &format!("| | {} | {} |\n", kind(choice), text(choice));
        }
    }
}

fn default(schema: &Value, key: &str, property: &Value) -> String {
    let required = schema["required"].as_array().is_some_and(|keys| keys.iter().any(|k| k == key));
    match &property["default"] {
        _ if required => "required".to_owned(),
        Value::Null => String::new(),
        Value::Object(table) if table.is_empty() => String::new(),
        value => format!("`{value}`"),
    }
}

/// The name of the type of a key, with a link to its section.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        let quantity = QUANTITIES.iter().find(|(quantity, _)| *quantity == name);
        return match quantity {
            Some((_, link)) => (*link).to_owned(),
            None => {
                let title = type_title(name).to_lowercase();
                format!("[{title}](#{})", title.replace(' ', "-"))
            }
        };
    }
    if let Some(numbers) = schema["enum"].as_array() {
        let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
        return numbers.join(" or ");
    }
    let of_type = |name: &str| match name {
        "integer" | "number" | "string" | "boolean" | "null" => name.to_owned(),
        // Of all arrays, only the ends of a range have a fixed length.
        "array" if schema["minItems"] == 2 => "first and last value".to_owned(),
        "array" => format!("list of {}", kind(&schema["items"])),
        "object" if schema["additionalProperties"].is_object() => {
            format!("by name: {}", kind(&schema["additionalProperties"]))
        }
        _ => "table".to_owned(),
    };
    let all: Vec<_> = match &schema["type"] {
        Value::String(name) => vec![of_type(name)],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(of_type).collect(),
        _ => choices(schema).map(kind).collect(),
    };
    if all.is_empty() { "values".to_owned() } else { all.join(" or ") }
}

/// The description, safe inside a cell.
fn text(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.replace("\n\n", " ").replace('|', "\\|")
}

/// `LoadLatency` as `Load latency`.
fn type_title(name: &str) -> String {
    let mut title = String::new();
    for (index, letter) in name.char_indices() {
        match letter.is_uppercase() && index > 0 {
            true => title.extend([' ', letter.to_ascii_lowercase()]),
            false => title.push(letter),
        }
    }
    title
}
