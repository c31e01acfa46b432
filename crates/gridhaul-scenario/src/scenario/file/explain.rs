//! Error messages of the TOML parser, in terms of the scenario file.

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;

use super::locate::Document;
use super::misplaced;
use crate::scenario::error::{Diagnostic, SourceLocation};
use crate::scenario::{Load, Loss, suggest};

/// The diagnostic for a text that is not TOML.
pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Diagnostic {
    let message = error.message();
    let remedy = match message {
        _ if message.contains("duplicate key") => "keep one of the two",
        _ if message.contains("string values must be quoted") => {
            "write quantities and texts in quotes: \"25 ms\""
        }
        _ => "",
    };
    let mut diagnostic = Diagnostic::new("", format!("this is not TOML: {message}"), remedy);
    diagnostic.location = error.span().map(|span| SourceLocation::of(text, span));
    diagnostic
}

/// The diagnostic for TOML that is not a scenario.
pub(super) fn types(error: &toml::de::Error, document: &Document<'_>) -> Diagnostic {
    let span = error.span();
    // A missing key has no location: the diagnostic shows the table that lacks it.
    let missing = error.message().starts_with("missing field ");
    let key = match &span {
        Some(span) if missing => document.table_at(span),
        Some(span) => document.path_at(span),
        None => String::new(),
    };
    let (mut message, mut remedy) = in_toml_terms(error.message(), &key);
    let location = span.filter(|_| !key.is_empty()).map(|span| document.location_of(span));
    let written = location.as_ref().map_or("", SourceLocation::marked);
    if let Some(better) = misplaced::remedy(error.message(), &key, written) {
        remedy = better;
    }
    if key.ends_with(".count") {
        message = message.replace("number from 0 to", "number from 1 to");
    }
    Diagnostic { key, message, remedy, location }
}

/// A message of serde without names of Rust types, and the remedy.
pub(in crate::scenario) fn in_toml_terms(message: &str, key: &str) -> (String, String) {
    let message = message.trim_end();
    if let Some((name, known)) = unknown(message, "unknown field ") {
        return (format!("there is no key `{name}` here"), suggest::remedy(name, &known));
    }
    if let Some((name, known)) = unknown(message, "unknown variant ") {
        return (format!("unknown value `{name}`"), suggest::remedy(name, &known));
    }
    if let Some(name) = message.strip_prefix("missing field ") {
        let table = if key.is_empty() { "the file" } else { "this table" };
        return (format!("{table} lacks the required key {name}"), added(name));
    }
    if message.starts_with("wanted exactly 1 element") || message == "wanted string or table" {
        return enum_value(message, key);
    }
    if message.starts_with("invalid type: unit variant") {
        return (
            "this value needs a table of keys, not only its name".into(),
            enum_value(message, key).1,
        );
    }
    // serde accepts a list as the values of a struct without their keys.
    if message.starts_with("invalid length ") && message.contains(", expected struct ") {
        return ("expected a table of keys, found a list".into(), String::new());
    }
    if let Some((found, wanted)) = message
        .strip_prefix("invalid length ")
        .and_then(|lengths| lengths.split_once(", expected an array of length "))
    {
        return (format!("expected {wanted} values, found {found}"), String::new());
    }
    let kinds = ["invalid type: ", "invalid value: "];
    let description = kinds.iter().find_map(|kind| message.strip_prefix(kind));
    if let Some((found, expected)) = description.and_then(|text| text.rsplit_once(", expected ")) {
        let remedy = match found.starts_with("integer") || found.starts_with("floating") {
            true if is_quantity(expected) => "write the unit, and quotes around both",
            false if found.starts_with("string") && is_number(plain(expected)) => {
                "write the number without quotes"
            }
            _ => "",
        };
        let expected = plain(expected);
        return (format!("expected {expected}, found {}", self::found(found)), remedy.into());
    }
    (message.to_owned(), String::new())
}

/// Whether the first example of an expected value, in quotes, is a number with its unit. A range of
/// ports is in quotes as well.
fn is_quantity(expected: &str) -> bool {
    let example = expected.split_once(" such as ").and_then(|(_, text)| text.strip_prefix('"'));
    example.is_some_and(|text| text.split('"').next().is_some_and(|text| text.contains(' ')))
}

/// Parses "unknown field `a`, expected one of `b`, `c`".
pub(super) fn unknown<'m>(message: &'m str, what: &str) -> Option<(&'m str, Vec<&'m str>)> {
    // The unknown name may contain any text; the known names come last and are plain.
    let rest = message.strip_prefix(what)?.strip_prefix('`')?;
    let (name, known) = rest.rsplit_once("`, expected ").or(rest.rsplit_once("`, there are no"))?;
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

/// The remedy for a missing key.
fn added(name: &str) -> String {
    let example = match name.trim_matches('`') {
        "title" => "title = \"Meters behind one concentrator\"",
        "duration" => "duration = \"60 s\"",
        "node" => "[node.meter]",
        "link" => "[link.feeder] with from, to and both",
        "flow" => "[flow.readings] with from, to and load",
        "from" => "from = \"meter\"",
        "to" => "to = \"head\"",
        "rate" => "rate = \"3 Mbit/s\"",
        "load" => "load = \"bulk\"",
        "size" => "size = \"240 B\"",
        "every" => "every = \"15 min\"",
        "until" => "until = \"5 %\"",
        "max" => "max = 100",
        name => return format!("add `{name}`"),
    };
    format!("add {example}")
}

/// The message for an enum value without exactly one name, and the remedy.
fn enum_value(message: &str, key: &str) -> (String, String) {
    let found = match message {
        "wanted string or table" => "expected a name, or a table with one key",
        _ if message.contains("more than 1") => "expected a table with one key, found several keys",
        _ => "expected a table with one key, found none",
    };
    let remedy = match key.rsplit(['.', '"']).next() {
        Some("load") => format!(
            "write one of {}: load = \"bulk\", or load.periodic = {{ size = \"240 B\", every = \
             \"15 min\" }}",
            variants::<Load>()
        ),
        Some("loss") => {
            format!("write one of {}: loss.bernoulli = \"1 %\"", variants::<Loss>())
        }
        _ => String::new(),
    };
    (found.to_owned(), remedy)
}

/// The names of all values of an enum. The message for an unknown one has them, so that a new value
/// is not missing here.
fn variants<'de, T: Deserialize<'de>>() -> String {
    let unnamed: StrDeserializer<'de, serde::de::value::Error> = "".into_deserializer();
    let message = T::deserialize(unnamed).err().map_or_else(String::new, |error| error.to_string());
    let (_, names) = unknown(&message, "unknown variant ").unwrap_or_default();
    match names.split_last() {
        Some((last, [])) => format!("`{last}`"),
        Some((last, others)) => format!("{} and `{last}`", suggest::list("", others)),
        None => String::new(),
    }
}

/// Description of a Rust type in terms of TOML.
fn plain(expected: &str) -> &str {
    match expected {
        "a string" => "a text in quotes",
        "a map" => "a table",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" => "a whole number, not negative",
        "f64" => "a number",
        _ if expected.starts_with("struct ") => "a table of keys",
        _ => expected,
    }
}

/// Whether an expected value is a number.
fn is_number(expected: &str) -> bool {
    expected == "a number" || expected.starts_with("a whole number")
}

/// Description of a TOML value.
fn found(found: &str) -> String {
    // serde names the type of a number that is too large for 64 bits.
    let found = found.trim_end_matches(" as i128").trim_end_matches(" as u128");
    match found.split_once(' ') {
        Some(("integer" | "boolean", value)) => value.to_owned(),
        Some(("floating", value)) => value.trim_start_matches("point ").to_owned(),
        Some(("string", value)) => format!("the text {value}"),
        None if found == "map" => "a table".to_owned(),
        None if found == "sequence" => "a list".to_owned(),
        _ => found.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_for_a_load_names_every_load() {
        let names = variants::<Load>();
        // The schema has the loads as well.
        let schema = serde_json::to_value(schemars::schema_for!(Load)).unwrap();
        let mut count = 0;
        for choice in schema["oneOf"].as_array().unwrap() {
            let tables = choice["properties"].as_object().into_iter().flat_map(|keys| keys.keys());
            let words = choice["const"].as_str().into_iter();
            let words = words.chain(
                choice["enum"].as_array().into_iter().flatten().filter_map(|name| name.as_str()),
            );
            for name in tables.map(String::as_str).chain(words) {
                assert!(names.contains(&format!("`{name}`")), "{name}: {names}");
                count += 1;
            }
        }
        assert_eq!(names.split(['`']).count() / 2, count, "{names}");
    }
}
