//! Errors of brokers.

use std::io;
use std::net::SocketAddr;

use gridhaul_scenario::backend::RunError;
use thiserror::Error;

/// Why a broker cannot be started.
#[derive(Debug, Error)]
pub enum BrokerError {
    /// The program is not installed.
    #[error(
        "the broker {name} is not installed\n  help: install the Debian package {package}, or \
         name a running broker with \
         --broker"
    )]
    NotInstalled {
        /// The broker.
        name: &'static str,
        /// Its package.
        package: &'static str,
    },
    /// The broker ended, or does not accept connections.
    #[error("the broker {name} does not accept connections at {address}; its log:\n{log}")]
    NotReady {
        /// The broker.
        name: &'static str,
        /// Address at which it should listen.
        address: SocketAddr,
        /// Its log.
        log: String,
    },
    /// Files or processes of the broker.
    #[error("starting the broker failed: {0}")]
    Io(#[from] io::Error),
    /// No certificate can be made.
    #[error("making a certificate for a broker failed: {0}")]
    Certificate(String),
    /// The emulated network failed.
    #[error("the emulated network: {0}")]
    Network(#[from] RunError),
}
