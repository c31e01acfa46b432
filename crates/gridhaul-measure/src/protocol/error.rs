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
        /// What was attempted.
        operation: String,
        /// Cause.
        source: io::Error,
    },
    /// The broker does not answer, or refuses the client.
    #[error("cannot connect to the MQTT broker at {address}: {reason}")]
    Broker {
        /// Address of the broker.
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
    pub(super) fn socket(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
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
    /// The socket reports an error.
    #[error("{0}")]
    Socket(#[from] io::Error),
}
