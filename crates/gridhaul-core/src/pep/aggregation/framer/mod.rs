//! Framing: detection of message boundaries in a stream of bytes.

mod delimiter;
mod fixed_size;
mod length_prefix;
#[cfg(test)]
pub(super) mod tests;
mod whole_stream;

use std::fmt;

pub use delimiter::Delimiter;
pub use fixed_size::FixedSize;
pub use length_prefix::{ByteOrder, LengthPrefix, LengthWidth, PrefixProgress};
pub use whole_stream::WholeStream;

/// Finds the ends of messages in the byte stream of one connection.
///
/// A framer keeps its position in the current message, so that each byte is passed once and a
/// message may arrive in any number of pieces.
pub trait Framer: fmt::Debug + Send {
    /// Reads the next bytes of the stream, up to the end of the current message at most.
    ///
    /// `bytes` begins where the previous call stopped: after the end of a message that was
    /// reported as [`Framing::End`], or after all bytes of a call that returned
    /// [`Framing::Incomplete`]. The result does not depend on how the stream is divided into
    /// calls, except with [`WholeStream`].
    ///
    /// # Errors
    /// When the stream is malformed. No later message boundary can be found: the caller ends the
    /// connection and makes no further calls.
    fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError>;

    /// Size in bytes of the largest message, with its prefix or delimiter. At least 1.
    fn largest_message(&self) -> u64;
}

/// Result of one call of a framer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// The current message ends after this many of the bytes, at least 1. The rest was not read.
    End(usize),
    /// All bytes belong to the current message, which does not end in them.
    Incomplete,
}

/// A stream that does not follow its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FramingError {
    /// The length field of a message has a value above the maximum.
    LengthExceedsMaximum {
        /// Value of the length field in bytes.
        length: u64,
        /// Largest value that is permitted.
        maximum: u64,
    },
    /// A message has reached its maximum size without a delimiter.
    DelimiterMissing {
        /// The byte that ends a message.
        delimiter: u8,
        /// Largest size of a message in bytes, with its delimiter.
        maximum: u64,
    },
}

impl fmt::Display for FramingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LengthExceedsMaximum { length, maximum } => {
                write!(f, "message length of {length} bytes exceeds the maximum of {maximum} bytes")
            }
            Self::DelimiterMissing { delimiter, maximum } => {
                write!(f, "no delimiter 0x{delimiter:02x} within {maximum} bytes")
            }
        }
    }
}

impl std::error::Error for FramingError {}
