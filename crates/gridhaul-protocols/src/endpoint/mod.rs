//! One end of a connection, as a machine without input or output.
//!
//! Each machine reads bytes of its peer, in pieces of any length, and writes bytes for it. Time is
//! an argument.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::nanomsg::{Pipeline, Role};
//! use gridhaul_scenario::units::Instant;
//!
//! let now = Instant::ZERO;
//! let (mut push, mut pull) = (Pipeline::new(Role::Push), Pipeline::new(Role::Pull));
//! push.open(now);
//! pull.open(now);
//! let mut bytes = Vec::new();
//! pull.poll_output(&mut bytes);
//! push.handle_input(&bytes, now)?;
//! push.publish(b"hello", now).expect("the greeting of the peer has arrived");
//! bytes.clear();
//! push.poll_output(&mut bytes);
//! pull.handle_input(&bytes, now)?;
//! assert_eq!(pull.poll_message().as_deref(), Some(&b"hello"[..]));
//! # Ok::<(), gridhaul_protocols::endpoint::EndpointError>(())
//! ```

mod queues;

use std::fmt;

use gridhaul_scenario::units::{Duration, Instant};
use thiserror::Error;

pub use queues::Queues;

/// One end of a connection.
pub trait Endpoint: Send + fmt::Debug {
    /// Starts a connection. State of an earlier one is dropped.
    fn open(&mut self, now: Instant);

    /// Handles bytes of the peer.
    ///
    /// # Errors
    /// The bytes violate the protocol; the connection must be closed.
    fn handle_input(&mut self, bytes: &[u8], now: Instant) -> Result<(), EndpointError>;

    /// Handles the time, at least every 100 ms.
    ///
    /// # Errors
    /// The peer does not answer in the time of the protocol; the connection must be closed.
    fn handle_time(&mut self, _now: Instant) -> Result<(), EndpointError> {
        Ok(())
    }

    /// Whether the handshake is over: messages can pass.
    fn is_ready(&self) -> bool;

    /// Writes a message to the output.
    ///
    /// # Errors
    /// The message cannot be sent now, or not at all.
    fn publish(&mut self, message: &[u8], now: Instant) -> Result<(), NotSent>;

    /// Ends the connection in an orderly way, if the protocol has one.
    fn close(&mut self) {}

    /// The bytes for the peer, and the messages of the peer.
    fn queues(&mut self) -> &mut Queues;

    /// Moves the bytes for the peer to the end of `output`.
    fn poll_output(&mut self, output: &mut Vec<u8>) {
        output.append(&mut self.queues().output);
    }

    /// A message of the peer.
    fn poll_message(&mut self) -> Option<Vec<u8>> {
        self.queues().messages.pop_front()
    }
}

/// Why a connection must be closed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EndpointError {
    /// The bytes are not of the protocol.
    #[error("{protocol}: {reason}")]
    Invalid {
        /// Name of the protocol.
        protocol: &'static str,
        /// Fault of the bytes.
        reason: String,
    },
    /// The peer has not answered in time.
    #[error("{protocol}: the peer did not answer within {within} (timer {timer})")]
    Timeout {
        /// Name of the protocol.
        protocol: &'static str,
        /// Name of the timer in the standard.
        timer: &'static str,
        /// Its value.
        within: Duration,
    },
}

/// Why a message is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum NotSent {
    /// The handshake is not over, or the peer has not requested messages.
    #[error("the peer is not ready")]
    NotReady,
    /// Too many messages await an acknowledgement.
    #[error("the window is full")]
    WindowFull,
    /// The message is longer than the protocol carries.
    #[error("longer than {0} B")]
    TooLong(usize),
}
