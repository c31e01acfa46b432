//! Limits of an aggregator that admits bytes, and the reserve that keeps it from a deadlock.
//!
//! The size of an incomplete message may be unknown, so that space cannot be reserved for all of
//! it. Without a further rule incomplete messages could fill the buffer and wait for each other's
//! space. Space for one message of the maximum size is therefore a reserve, which at most one
//! connection uses at a time: the bytes of all other incomplete messages never exceed the buffer without the reserve.
//! Complete messages leave the buffer in any case, so that the message in the reserve can always
//! be completed, and after it the next one.

use std::fmt;

use super::ConnectionId;

/// Limits of a [`ByteAggregator`](super::ByteAggregator), in bytes of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteLimits {
    total: u64,
    per_connection: u64,
    largest_message: u64,
}

impl ByteLimits {
    /// At most `total` bytes at risk, and `per_connection` of each connection, whose messages have
    /// at most `largest_message` bytes. Payload is counted, and not the memory that keeps track of
    /// it (about 32 bytes for each complete message).
    ///
    /// # Errors
    /// Unless 1 ≤ `largest_message` ≤ `per_connection` ≤ `total` and `per_connection` < 2³¹.
    pub const fn new(
        total: u64,
        per_connection: u64,
        largest_message: u64,
    ) -> Result<Self, LimitsError> {
        if largest_message == 0 {
            return Err(LimitsError::NoMessage);
        }
        if largest_message > per_connection {
            return Err(LimitsError::MessageExceedsConnection { largest_message, per_connection });
        }
        if per_connection > total {
            return Err(LimitsError::ConnectionExceedsTotal { per_connection, total });
        }
        if per_connection >= 1 << 31 {
            return Err(LimitsError::ConnectionTooLarge { per_connection });
        }
        Ok(Self { total, per_connection, largest_message })
    }

    /// Largest number of bytes at risk of all connections.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Largest number of bytes at risk of one connection.
    #[must_use]
    pub const fn per_connection(&self) -> u64 {
        self.per_connection
    }

    /// Size of the largest message, and of the reserve.
    #[must_use]
    pub const fn largest_message(&self) -> u64 {
        self.largest_message
    }
}

/// Inconsistent limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsError {
    /// The largest message has no bytes.
    NoMessage,
    /// A largest message does not fit into the limit of a connection.
    MessageExceedsConnection {
        /// Size of the largest message in bytes.
        largest_message: u64,
        /// Limit of a connection in bytes.
        per_connection: u64,
    },
    /// The limit of a connection exceeds the total limit.
    ConnectionExceedsTotal {
        /// Limit of a connection in bytes.
        per_connection: u64,
        /// Limit of all connections in bytes.
        total: u64,
    },
    /// The limit of a connection is 2³¹ bytes or more, too many for sequence numbers.
    ConnectionTooLarge {
        /// Limit of a connection in bytes.
        per_connection: u64,
    },
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMessage => write!(f, "the largest message must have at least 1 byte"),
            Self::MessageExceedsConnection { largest_message, per_connection } => write!(
                f,
                "messages of {largest_message} bytes do not fit into the connection's limit of \
                 {per_connection} bytes"
            ),
            Self::ConnectionExceedsTotal { per_connection, total } => write!(
                f,
                "the connection's limit of {per_connection} bytes exceeds the total of {total} bytes"
            ),
            Self::ConnectionTooLarge { per_connection } => {
                write!(f, "the connection's limit of {per_connection} bytes must be below 2^31")
            }
        }
    }
}

impl std::error::Error for LimitsError {}

/// The reserve, and the connection that uses it.
#[derive(Debug, Clone)]
pub(super) struct Reserve {
    limits: ByteLimits,
    /// Bytes of the incomplete messages of all connections.
    incomplete: u64,
    /// The connection that uses the reserve, and the bytes of its incomplete message.
    holder: Option<(ConnectionId, u64)>,
}

impl Reserve {
    pub(super) const fn new(limits: ByteLimits) -> Self {
        Self { limits, incomplete: 0, holder: None }
    }

    /// Number of bytes of this connection that fit into the buffer, of which `used` are occupied.
    pub(super) fn free(&self, id: ConnectionId, used: u64) -> u64 {
        let reserved = match self.holder {
            Some((holder, bytes)) if holder != id => self.limits.largest_message - bytes,
            _ => 0,
        };
        (self.limits.total - reserved).saturating_sub(used)
    }

    /// The incomplete message of a connection has grown or shrunk from `before` to `after` bytes.
    pub(super) fn update(&mut self, id: ConnectionId, before: u64, after: u64) {
        self.incomplete = self.incomplete - before + after;
        let is_used = self.incomplete > self.limits.total - self.limits.largest_message;
        self.holder = match self.holder {
            _ if !is_used => None,
            Some((holder, bytes)) if holder != id => Some((holder, bytes)),
            _ => Some((id, after)),
        };
    }

    pub(super) fn holder(&self) -> Option<ConnectionId> {
        self.holder.map(|(id, _)| id)
    }
}
