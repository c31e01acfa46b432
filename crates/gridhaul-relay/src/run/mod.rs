//! The daemon: state machines on sockets, files and the monotonic clock.
//!
//! One thread runs all connections with epoll, one thread writes the record log (group commit), one serves the status
//! page. A sink has a thread of its own.

mod ages;
mod backoff;
mod broker;
mod certificate;
mod collector;
mod committer;
mod connector;
mod credentials;
mod cursor;
mod destination;
mod event_loop;
mod handover;
mod head;
mod http;
mod invocation;
mod listener;
mod log_folder;
mod management;
mod meter_socket;
mod orders;
mod poll;
mod progress;
mod reports;
mod resolver;
mod servers;
mod signals;
mod sink;
mod sockets;
mod split;
mod stream;
mod supervisor;
mod tls;
mod unreachable;
mod upstream;
mod validate;
mod validity;
mod wall_clock;

use std::path::{Path, PathBuf};

use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::relay::{Deliver, ServerIdentity};
use thiserror::Error;

use crate::log::{Folder, LogError};
use handover::Handover;
use sockets::Sockets;

pub use invocation::Invocation;
pub use management::{StatusError, query};
pub use tls::TlsError;
pub use validate::validate;

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
    /// The user of the configuration.
    #[error(
        "user: cannot continue as {user:?}: {source}\n  help: start the relay as root, or remove `user` and let the service manager choose the user"
    )]
    User {
        /// Value of the key.
        user: String,
        /// Operation that the kernel has refused.
        source: std::io::Error,
    },
    /// The program of an upgrade.
    #[error("cannot start {}: {source}", program.display())]
    Upgrade {
        /// The program.
        program: PathBuf,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A key of the configuration that cannot be used on this machine.
    #[error("{0}")]
    Invalid(String),
    /// A key of the configuration that needs another program or version.
    #[error("{0}")]
    Unsupported(String),
}

/// How the event loop of a relay has ended.
enum End {
    /// By SIGTERM or SIGINT.
    Stopped,
    /// Another version of the program continues.
    Upgrade(Handover),
}

/// Runs a relay until it is stopped by SIGTERM or SIGINT. After SIGHUP, the relay reads its configuration again; after
/// SIGUSR2, it is replaced by the program that is in the file system then.
///
/// # Errors
/// The daemon cannot start, or the log has failed.
pub fn run(config: &RelayConfig, invocation: &Invocation) -> Result<(), RunError> {
    gridhaul_linux::raise_open_file_limit();
    report_faults(&validate(config, invocation.folder())?);
    let sockets = open_sockets(config).map_err(|error| {
        // A second process on the same log finds its addresses in use: the log is the better explanation.
        locked_log(config, invocation.folder()).map_or(error, RunError::Log)
    })?;
    give_up_rights(config)?;
    // From here on there may be several threads.
    invocation.observe_input();
    let end = match (&config.aggregate, &config.head, &config.split) {
        (Some(collector), _, _) => collector::run(config, collector, invocation, sockets),
        (None, Some(head), _) => head::run(config, head, invocation, sockets),
        (None, None, Some(split)) => split::run(config, split, invocation, sockets),
        (None, None, None) => Ok(End::Stopped),
    }?;
    match end {
        End::Stopped => Ok(()),
        End::Upgrade(handover) => Err(invocation.replace(&handover)),
    }
}

/// Opens all addresses at which the relay listens from the start.
fn open_sockets(config: &RelayConfig) -> Result<Sockets, RunError> {
    let mut sockets = Sockets::inherited()?;
    if let Some(collector) = &config.aggregate {
        collector::open_listeners(collector, &mut sockets)?;
    }
    if let Some(head) = &config.head {
        sockets.open(head::LISTENER, &head.address)?;
    }
    if let Some(split) = &config.split {
        split::open_listeners(split, &mut sockets)?;
    }
    if let Some(management) = &config.management {
        sockets.open(management::LISTENER, &management.address)?;
        if let Some(tls) = &management.tls {
            sockets.open(management::TLS_LISTENER, &tls.address)?;
        }
    }
    sockets.close_unused();
    Ok(sockets)
}

fn locked_log(config: &RelayConfig, folder: &Path) -> Option<LogError> {
    let path = folder.join(&config.log.as_ref()?.folder);
    Folder::is_locked(&path).then(|| LogError::Locked { folder: path.display().to_string() })
}

/// Continues as the user of the configuration, if there is one.
fn give_up_rights(config: &RelayConfig) -> Result<(), RunError> {
    let Some(user) = &config.user else { return Ok(()) };
    let is_transparent = config.split.iter().flat_map(|it| &it.listener).any(|it| it.1.transparent);
    let has_foreign_addresses = config.head.as_ref().is_some_and(|head| match &head.deliver {
        Deliver::Tcp(tcp) => tcp.identity == ServerIdentity::SourceAddress,
        Deliver::File(_) | Deliver::Mqtt(_) => false,
    });
    let keeps_net_admin = is_transparent || has_foreign_addresses;
    gridhaul_linux::become_user(user, config.group.as_deref(), keeps_net_admin)
        .map_err(|source| RunError::User { user: user.clone(), source })
}

/// Reports faults with which the relay runs, although peers will refuse it.
fn report_faults(faults: &[String]) {
    for fault in faults {
        report(Level::Error, fault);
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
