//! Errors of the library.

use std::fmt;

use anyhow::anyhow;
use gridhaul_scenario::scenario::ScenarioError;

use crate::measurement::Measurement;

/// The reason for a missing result. The message states the error and the remedy.
#[derive(Debug)]
pub struct Error(anyhow::Error);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&message(&self.0))
    }
}

impl std::error::Error for Error {}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self(error)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self(anyhow!(error))
    }
}

impl Measurement {
    /// Checks the values. A measurement that was read from a file has already been checked.
    ///
    /// # Errors
    /// All diagnostics together, without locations.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let diagnostics = self.diagnostics();
        if diagnostics.is_empty() {
            return Ok(());
        }
        Err(ScenarioError { file: String::new(), diagnostics })
    }
}

/// The message of an error with its causes. A cause that the message before it contains is not
/// repeated.
#[must_use]
pub fn message(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    text
}
