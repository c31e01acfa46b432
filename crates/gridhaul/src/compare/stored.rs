//! Answers in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::in_toml_terms;

use crate::error::Error;

/// Reads `answer.json` of a results folder.
///
/// # Errors
/// A file that cannot be read, is no answer, or has another version of the schema.
pub fn read_answer(path: &Path) -> Result<Answer, Error> {
    read(path).map_err(Error::Input)
}

fn read(path: &Path) -> anyhow::Result<Answer> {
    let shown = path.display();
    let text = fs::read(path).with_context(|| {
        format!("cannot read {shown}\n  help: name a results folder, an answer.json or a scenario")
    })?;
    let answer: Answer = serde_json::from_slice(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // The reader's words without its own place.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
        let (reason, _) = in_toml_terms(message);
        anyhow!(
            "{shown}:{line}:{column}: this is not an answer of gridhaul: {reason}\n  \
             help: name a results folder, an answer.json or a scenario"
        )
    })?;
    if answer.schema != Answer::SCHEMA {
        bail!(
            "{shown}: schema {} is not known; this gridhaul reads {}",
            answer.schema,
            Answer::SCHEMA
        );
    }
    Ok(answer)
}
