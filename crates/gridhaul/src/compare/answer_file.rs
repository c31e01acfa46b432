//! Reading of stored answers.

use std::fs;
use std::path::Path;

use anyhow::{anyhow, bail};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::in_toml_terms;

use crate::error::Error;

/// The remedy for a file that is not an answer.
const EXPECTED: &str = "give a results folder, an answer.json or a scenario";

/// Reads `answer.json` of a results folder.
///
/// # Errors
/// A file that cannot be read, is not an answer, or has a different schema version.
pub fn read_answer(path: &Path) -> Result<Answer, Error> {
    read(path).map_err(Error::Input)
}

fn read(path: &Path) -> anyhow::Result<Answer> {
    let shown = path.display();
    let text = fs::read(path)
        .map_err(|error| anyhow!("cannot read {shown}: {error}\n  help: {EXPECTED}"))?;
    let answer: Answer = serde_json::from_slice(&text).map_err(|error| {
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
    if answer.schema != Answer::SCHEMA {
        bail!(
            "{shown}: unknown schema version {}; this version of gridhaul reads {}\n  \
             help: run the scenario again with this version",
            answer.schema,
            Answer::SCHEMA
        );
    }
    Ok(answer)
}
