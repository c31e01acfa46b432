//! Reading of stored answers.

use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::in_toml_terms;

use crate::error::Error;

/// The remedy for a file that is not an answer.
const EXPECTED: &str = "give a results folder, an answer.json or a scenario";

/// Reads a stored answer: `answer.json` of a results folder, or a file with a list of the answers
/// of several backends, as Python saves them.
///
/// # Errors
/// A file that cannot be read, is not an answer, or has a different schema version.
pub fn read_answers(path: &Path) -> Result<Vec<Answer>, Error> {
    read(path).map_err(Error::Input)
}

fn read(path: &Path) -> anyhow::Result<Vec<Answer>> {
    let shown = path.display();
    let text = fs::read(path)
        .map_err(|error| anyhow!("cannot read {shown}: {error}\n  help: {EXPECTED}"))?;
    let is_list = text.trim_ascii_start().starts_with(b"[");
    let answers = match is_list {
        true => serde_json::from_slice(&text),
        false => serde_json::from_slice(&text).map(|answer| vec![answer]),
    };
    let answers: Vec<Answer> = answers.map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // serde_json appends the position, which the message names already.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        let (reason, _) = in_toml_terms(message);
        anyhow!(
            "{shown}:{line}:{column}: this is not an answer of gridhaul: {reason}\n  \
             help: {EXPECTED}"
        )
    })?;
    if answers.is_empty() {
        bail!(
            "{shown}:1:1: this is not an answer of gridhaul: the list is empty\n  help: {EXPECTED}"
        );
    }
    if let Some(other) = answers.iter().find(|answer| answer.schema != Answer::SCHEMA) {
        bail!(
            "{shown}: unknown schema version {}; this version of gridhaul reads {}\n  \
             help: run the scenario again with this version",
            other.schema,
            Answer::SCHEMA
        );
    }
    Ok(answers)
}
