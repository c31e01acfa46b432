//! Errors of commands, and the exit code of each.

use std::io::{self, ErrorKind};

use crate::{Error, UnsupportedKeys};
use gridhaul_cli::{exit_code, say};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::ScenarioError;

/// Error of a command. Each kind has its own exit code.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The command completed, and a check failed: exit code 1.
    Check(String),
    /// Invalid input or usage, or a missing feature of the machine: exit code 2. A full disk: exit
    /// code 4.
    Input(anyhow::Error),
    /// A defect of gridhaul: exit code 3.
    Internal(anyhow::Error),
    /// Interrupted by the user: exit code 130. The text names the results that were kept.
    Interrupted(String),
}

impl CommandError {
    /// Prints the error and returns its exit code.
    pub(crate) fn report(&self) -> u8 {
        match self {
            Self::Check(message) | Self::Interrupted(message) => say(format_args!("{message}")),
            Self::Input(error) => {
                say(format_args!("error: {error:#}"));
                let unsupported = error.downcast_ref::<UnsupportedKeys>();
                if let Some(other) = unsupported.and_then(|error| error.supported_by.first()) {
                    say(format_args!("  help: '--on {other}' supports every key of this scenario"));
                }
            }
            Self::Internal(error) => {
                say(format_args!("internal error, please report it as a bug: {error:#}"));
            }
        }
        self.code()
    }

    fn code(&self) -> u8 {
        match self {
            Self::Check(_) => exit_code::CHECK_FAILED,
            Self::Input(error) if has_no_space(error) => exit_code::DISK_FULL,
            Self::Input(_) => exit_code::INVALID_INPUT,
            Self::Internal(_) => exit_code::INTERNAL_ERROR,
            Self::Interrupted(_) => exit_code::INTERRUPTED,
        }
    }
}

/// Whether an error is that of a full disk, or of a used-up quota.
fn has_no_space(error: &anyhow::Error) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge];
    let errors = error.chain().filter_map(|error| error.downcast_ref::<io::Error>());
    errors.into_iter().any(|error| full.contains(&error.kind()))
}

impl From<anyhow::Error> for CommandError {
    fn from(error: anyhow::Error) -> Self {
        Self::Input(error)
    }
}

impl From<ScenarioError> for CommandError {
    fn from(error: ScenarioError) -> Self {
        Self::Input(error.into())
    }
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        match error {
            Error::Input(error) => Self::Input(error),
            Error::Internal(error) => Self::Internal(error),
            Error::Interrupted(message) => Self::Interrupted(message),
        }
    }
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> Self {
        Error::from(error).into()
    }
}
