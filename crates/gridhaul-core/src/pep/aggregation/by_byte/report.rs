//! Results and errors of an aggregator that admits bytes.

use std::fmt;

use gridhaul_scenario::units::{Duration, Instant};

use super::super::FramingError;
use super::ConnectionId;

/// Result of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Bytes from the beginning of the offer that were accepted. The others must be offered again.
    pub bytes: usize,
    /// Messages that these bytes completed.
    pub messages: u64,
    /// Bytes of the incomplete message at the end of the stream, of earlier offers too.
    pub incomplete: u64,
}

/// A complete message, taken for transmission on an upstream connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message {
    /// Number among the messages of the upstream connection, from 0 without gaps.
    pub number: u64,
    /// The connection that the message came from.
    pub connection: ConnectionId,
    /// Position of the first byte in the stream of that connection.
    pub start: u64,
    /// Size in bytes, with the prefix or delimiter.
    pub bytes: u64,
    /// Position after the last byte in the stream of the upstream connection, which counts the
    /// bytes of messages only.
    pub upstream_end: u64,
    /// When the last byte was accepted.
    pub completed: Instant,
}

/// A message that was delivered upstream and is no longer stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// Number among the messages of the upstream connection.
    pub number: u64,
    /// The connection that the message came from.
    pub connection: ConnectionId,
    /// Size in bytes.
    pub bytes: u64,
    /// Time between completion and delivery.
    pub waited: Duration,
    /// Whether this was the last message of a connection that has ended. The identifier of the
    /// connection is no longer valid.
    pub is_finished: bool,
}

/// Bytes of a connection that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Bytes of the incomplete message, which were accepted and are lost.
    pub discarded: u64,
    /// Bytes of complete messages that are still to be delivered.
    pub undelivered: u64,
}

impl Ended {
    /// Whether nothing is left to deliver. The identifier of the connection is no longer valid.
    #[must_use]
    pub const fn is_finished(&self) -> bool {
        self.undelivered == 0
    }
}

/// Why a connection was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// There is no upstream connection of this index.
    NoUpstream {
        /// The requested index.
        upstream: usize,
    },
    /// The framing permits messages that could never be completed within the limits.
    MessageTooLarge {
        /// Largest message of the framing in bytes.
        bytes: u64,
        /// Largest message of the limits in bytes.
        limit: u64,
    },
}

/// Why an offer was not accepted. Only the connection of the offer is affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferError {
    /// No connection has this identifier, or all its messages are delivered.
    UnknownConnection,
    /// The connection has ended.
    Ended,
    /// The stream does not follow its framing, and the connection has ended. The messages before
    /// the malformed one are accepted.
    Malformed {
        /// The framing error.
        error: FramingError,
        /// Bytes and messages of this offer that were accepted; nothing is incomplete.
        accepted: Accepted,
        /// Discarded and undelivered bytes of the connection.
        ended: Ended,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUpstream { upstream } => write!(f, "no upstream connection {upstream}"),
            Self::MessageTooLarge { bytes, limit } => {
                write!(
                    f,
                    "framing with messages of {bytes} bytes exceeds the limit of {limit} bytes"
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl fmt::Display for OfferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownConnection => write!(f, "unknown connection"),
            Self::Ended => write!(f, "the connection has ended"),
            Self::Malformed { error, .. } => write!(f, "malformed stream: {error}"),
        }
    }
}

impl std::error::Error for OfferError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Malformed { error, .. } => Some(error),
            _ => None,
        }
    }
}
