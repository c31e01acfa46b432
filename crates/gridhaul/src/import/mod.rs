//! Scenarios from files of other programs: captures, logs of iperf3 and ping, tables of meters, and
//! topologies. Each number of a scenario has its source in a comment.

pub mod capture;
pub mod iperf;
pub mod meters;
pub mod ping;
pub mod topology;

mod link_scenario;
mod measured_direction;

pub(crate) use link_scenario::TAP;

use thiserror::Error;

/// A file: its name in errors, and its text.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    /// Name, as in errors.
    pub name: &'a str,
    /// Contents.
    pub text: &'a str,
}

/// An error in a file.
#[derive(Debug, Error)]
#[error("{file}: {key}: {message}\n  help: {help}")]
pub struct ImportError {
    /// Name of the file.
    pub file: String,
    /// Path of the key, or the line.
    pub key: String,
    /// The error, and the expected value.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl File<'_> {
    /// An error in this file.
    fn error(&self, key: &str, message: impl Into<String>, help: &str) -> ImportError {
        ImportError {
            file: self.name.to_owned(),
            key: key.to_owned(),
            message: message.into(),
            help: help.to_owned(),
        }
    }
}
