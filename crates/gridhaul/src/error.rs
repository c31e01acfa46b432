//! Errors of the library.

use gridhaul_scenario::backend::{RunError, Unsupported};
use gridhaul_scenario::scenario::ScenarioError;
use thiserror::Error as ThisError;

use crate::engine::BackendName;

/// The reason for a missing result. The message states the error, its position and the remedy.
#[derive(Debug, ThisError)]
pub enum Error {
    /// Invalid input, or a missing feature of the machine.
    #[error("{0:#}")]
    Input(anyhow::Error),
    /// A defect of gridhaul.
    #[error("{0:#}")]
    Internal(anyhow::Error),
    /// The observer has interrupted the work before anything was finished.
    #[error("{0}")]
    Interrupted(String),
}

/// Keys of a scenario that a backend does not support.
#[derive(Debug, ThisError)]
#[error("backend `{backend}` does not support every key:\n{}", RunError::Unsupported(keys.clone()))]
pub struct UnsupportedKeys {
    /// Name of the backend.
    pub backend: &'static str,
    /// Each key, with the reason.
    pub keys: Vec<Unsupported>,
    /// Other backends that support every key of the scenario.
    pub supported_by: Vec<BackendName>,
}

impl From<anyhow::Error> for Error {
    fn from(error: anyhow::Error) -> Self {
        Self::Input(error)
    }
}

impl From<ScenarioError> for Error {
    fn from(error: ScenarioError) -> Self {
        Self::Input(error.into())
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Unsupported(_)
            | RunError::Invalid(_)
            | RunError::Machine(_)
            | RunError::Storage(_) => Self::Input(error.into()),
            RunError::Audit(_) => Self::Internal(error.into()),
            RunError::Interrupted => Self::Interrupted(error.to_string()),
        }
    }
}
