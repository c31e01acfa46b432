//! The errors of the TOML reader in the words of the scenario file.

use super::locate::Document;
use crate::scenario::error::{Place, Problem};

/// A text that is not TOML.
pub(super) fn syntax(error: &toml::de::Error, text: &str) -> Problem {
    let mut problem = Problem::new("", format!("this is not TOML: {}", error.message()), "");
    problem.place = error.span().map(|span| Place::of(text, span));
    problem
}

/// TOML that is not a scenario.
pub(super) fn types(error: &toml::de::Error, document: &Document<'_>) -> Problem {
    let span = error.span();
    let key = span.as_ref().map(|span| document.path_at(span)).unwrap_or_default();
    let mut problem = Problem::new(key, error.message(), "");
    problem.place = span.map(|span| document.place_of(span));
    problem
}
