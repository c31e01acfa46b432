//! Errors of protocols.

use std::io;
use std::net::SocketAddr;

use gridhaul_scenario::backend::RunError;
use thiserror::Error;

/// Why a protocol cannot connect or receive.
#[derive(Debug, Error)]
pub enum ProtocolError {
    /// The socket of an end cannot be opened, or failed.
    #[error("{operation} failed: {source}")]
    Socket {
        /// Operation that failed.
        operation: String,
        /// Cause.
        source: io::Error,
    },
    /// The end that listens cannot do so.
    #[error(
        "cannot listen at {address}: {source}\n  help: choose another --port, or 0 for a free one"
    )]
    Listen {
        /// Address.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The broker or the other end does not answer, or refuses the client.
    #[error(
        "cannot connect by {protocol} to {address}: {reason}\n  help: expected a program at this \
         address that speaks {protocol} and accepts \
         the client; start it, permit its port in firewalls, and check address and credentials"
    )]
    Connect {
        /// Name of the protocol.
        protocol: &'static str,
        /// Address of the broker or the other end.
        address: SocketAddr,
        /// Cause.
        reason: String,
    },
    /// The emulated network failed.
    #[error("the emulated network: {0}")]
    Network(#[from] RunError),
    /// The other end of an internal channel has gone.
    #[error("the connection was closed")]
    Closed,
}

impl ProtocolError {
    /// Adds the operation to an error of a socket.
    pub(crate) fn socket(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Socket { operation: operation.into(), source }
    }
}

/// Why a protocol did not accept a message.
#[derive(Debug, Error)]
pub enum Refused {
    /// There is no connection.
    #[error("no connection")]
    NotConnected,
    /// The queue of the client is full.
    #[error("the queue of the client is full")]
    QueueFull,
    /// The protocol cannot carry a message of this length.
    #[error("the protocol carries at most {0} B in a message")]
    TooLong(usize),
    /// The socket reports an error.
    #[error("{0}")]
    Socket(#[from] io::Error),
}
