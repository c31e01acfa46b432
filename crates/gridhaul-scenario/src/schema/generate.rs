//! Generation of the schemas.

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::answer::Answer;
use crate::relay::RelayConfig;
use crate::scenario::Scenario;

/// JSON Schema (2020-12) of a scenario file.
#[must_use]
pub fn json_schema() -> Value {
    of_file::<Scenario>("gridhaul scenario")
}

/// JSON Schema (2020-12) of the configuration of a relay.
#[must_use]
pub fn relay_schema() -> Value {
    of_file::<RelayConfig>("gridhaul relay configuration")
}

/// JSON Schema (2020-12) of an answer in JSON.
#[must_use]
pub fn answer_schema() -> Value {
    schema::<Answer>("gridhaul answer")
}

/// JSON Schema (2020-12) of a TOML file.
#[must_use]
pub fn of_file<T: schemars::JsonSchema>(title: &str) -> Value {
    let mut schema = schema::<T>(title);
    without_null(&mut schema);
    schema
}

fn schema<T: schemars::JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    schema["title"] = title.into();
    join_lines(&mut schema);
    if let Some(types) = schema["$defs"].as_object_mut() {
        for (name, schema) in types {
            schema["title"] = name.as_str().into();
        }
    }
    schema
}

/// Removes null from the types of optional keys: TOML has no null, and editors should not offer it.
fn without_null(value: &mut Value) {
    let is_null = |value: &Value| value["type"] == "null" || value == "null";
    match value {
        Value::Object(table) => {
            if let Some(Value::Array(types)) = table.get_mut("type") {
                types.retain(|value| !is_null(value));
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    table.insert("type".into(), only);
                }
            }
            if let Some(Value::Array(values)) = table.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Array(choices)) = table.get("anyOf")
                && let [Value::Object(present), null] = choices.as_slice()
                && is_null(null)
            {
                let present = present.clone();
                table.shift_remove("anyOf");
                table.extend(present);
            }
            table.values_mut().for_each(without_null);
        }
        Value::Array(list) => list.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// Joins the lines of descriptions, since line breaks in comments have no meaning.
fn join_lines(value: &mut Value) {
    match value {
        Value::Object(table) => {
            for (key, value) in table {
                match value {
                    Value::String(text) if key == "description" => {
                        let paragraphs = text.split("\n\n").map(|part| part.replace('\n', " "));
                        *text = paragraphs.collect::<Vec<_>>().join("\n\n");
                    }
                    _ => join_lines(value),
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(join_lines),
        _ => {}
    }
}
