//! The daemon: state machines on sockets, files and the monotonic clock.
//!
//! One thread runs all connections with epoll, one thread writes the record log (group commit), one serves the status
//! page. A sink has a thread of its own.

mod backoff;
mod certificate;
mod collector;
mod committer;
mod cursor;
mod destination;
mod head;
mod listener;
mod log_folder;
mod management;
mod meter_socket;
mod poll;
mod reports;
mod resolver;
mod servers;
mod signals;
mod sink;
mod split;
mod stream;
mod supervisor;
mod tls;
mod upstream;

use std::path::Path;

use gridhaul_scenario::RelayConfig;
use thiserror::Error;

use crate::log::LogError;

pub use management::{StatusError, query};
pub use tls::TlsError;

/// The daemon cannot start, or cannot continue.
#[derive(Debug, Error)]
pub enum RunError {
    /// The record log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A system call.
    #[error(transparent)]
    Linux(#[from] gridhaul_linux::Error),
    /// Certificates and keys.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The sink.
    #[error(transparent)]
    Sink(#[from] crate::head::SinkError),
    /// A listener.
    #[error(
        "{key}: cannot listen at {address}: {source}\n  help: choose another address, or stop the program that uses it"
    )]
    Listen {
        /// Key of the configuration.
        key: String,
        /// The address.
        address: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A key of the configuration that needs another program or version.
    #[error("{0}")]
    Unsupported(String),
}

/// Runs a relay until it is stopped by SIGTERM or SIGINT. Relative paths begin at `folder`. After SIGHUP, the relay
/// calls `read` for its configuration.
///
/// # Errors
/// The daemon cannot start, or the log has failed.
pub fn run(
    config: &RelayConfig,
    folder: &Path,
    read: &dyn Fn() -> Result<RelayConfig, String>,
) -> Result<(), RunError> {
    gridhaul_linux::raise_open_file_limit();
    match (&config.aggregate, &config.head, &config.split) {
        (Some(collector), _, _) => collector::run(config, collector, folder, read),
        (None, Some(head), _) => head::run(config, head, folder, read),
        (None, None, Some(split)) => split::run(config, split),
        (None, None, None) => Ok(()),
    }
}

/// Writes one line to the log of the daemon: standard error, which systemd stores with a time.
fn report(level: Level, message: &str) {
    let (priority, word) = match level {
        Level::Error => (3, "error: "),
        Level::Warning => (4, "warning: "),
        Level::Notice => (5, ""),
    };
    // The journal of systemd reads the priority from the start of a line (sd-daemon(3)).
    match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => eprintln!("<{priority}>{message}"),
        None => eprintln!("{word}{message}"),
    }
}

/// Importance of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Error,
    Warning,
    Notice,
}
