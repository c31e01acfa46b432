//! Errors of commands, and the exit code of each.

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use gridhaul::Error;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::ScenarioError;

use crate::interrupt::EXIT_CODE;
use crate::terminal::say;

/// Why a command did not succeed. Each kind has its own exit code.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The command did its work, and what it checked does not hold: exit code 1.
    Check(String),
    /// The input, the usage or the machine is at fault: exit code 2.
    Input(anyhow::Error),
    /// A defect of gridhaul: exit code 3.
    Internal(anyhow::Error),
    /// The user has interrupted: exit code 130. The text says what was kept.
    Interrupted(String),
}

/// The exit codes, for `--help`.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  everything went well
  1  a check did not hold: a cell of a paper, answers that had to agree, limits of a plan
  2  bad input or usage: the message names the file, the key and the remedy
  3  a fault of gridhaul: please report it
130  interrupted (Ctrl-C, SIGTERM): 'run' and 'sweep' keep what is finished";

impl CommandError {
    /// Prints the error and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::Check(message) | Self::Interrupted(message) => say(format_args!("{message}")),
            Self::Input(error) => say(format_args!("error: {error:#}")),
            Self::Internal(error) => {
                say(format_args!("fault of gridhaul, please report it: {error:#}"));
            }
        }
        ExitCode::from(self.code())
    }

    fn code(&self) -> u8 {
        match self {
            Self::Check(_) => 1,
            Self::Input(_) => 2,
            Self::Internal(_) => 3,
            Self::Interrupted(_) => EXIT_CODE,
        }
    }
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

/// A panic is a fault of gridhaul: one line instead of a backtrace, and exit code 3.
pub(crate) fn on_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let text = info.payload().downcast_ref::<&str>().copied();
    let owned = info.payload().downcast_ref::<String>().map(String::as_str);
    let message = text.or(owned).unwrap_or("no message");
    say(format_args!("fault of gridhaul, please report it: {message}{place}"));
    std::process::exit(3);
}
