//! Errors of the daemon.

use std::path::PathBuf;

use thiserror::Error;

use super::tls::TlsError;
use crate::log::LogError;

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
    /// The destination of a head.
    #[error("{0}")]
    Destination(String),
    /// A listener.
    #[error(
        "{key}: cannot listen at {address}: {source}\n  help: choose another address, or stop the \
         program that uses it"
    )]
    Listen {
        /// Key of the configuration.
        key: String,
        /// The address.
        address: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// A network interface of a bridge.
    #[error(
        "bridge.interfaces: {interface}: {source}\n  help: was the interface removed? `ip link` \
         lists the interfaces"
    )]
    Interface {
        /// Name of the interface.
        interface: String,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The user of the configuration.
    #[error(
        "user: cannot continue as {user:?}: {source}\n  help: start the relay as root, or remove \
         `user` and let the service manager choose the user"
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
