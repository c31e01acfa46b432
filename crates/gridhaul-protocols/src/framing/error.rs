//! Streams that do not follow their framing.

use thiserror::Error;

/// A stream that does not follow its framing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum FramingError {
    /// The length field of a message has a value above the maximum.
    #[error("message length of {length} bytes exceeds the maximum of {maximum} bytes")]
    LengthExceedsMaximum {
        /// Value of the length field in bytes.
        length: u64,
        /// Largest value that is permitted.
        maximum: u64,
    },
    /// A message has reached its maximum size without a delimiter.
    #[error("no delimiter 0x{delimiter:02x} within {maximum} bytes")]
    DelimiterMissing {
        /// The byte that ends a message.
        delimiter: u8,
        /// Largest size of a message in bytes, with its delimiter.
        maximum: u64,
    },
    /// The length of a message is less than that of its header.
    #[error(
        "message length of {length} bytes is less than the {header} bytes up to the end of the \
         length field"
    )]
    LengthBelowHeader {
        /// Length of the message.
        length: u64,
        /// Bytes up to the end of the length field.
        header: u64,
    },
    /// The version field of a DLMS wrapper is not 1.
    #[error("DLMS wrapper version {found}, expected 1")]
    DlmsVersion {
        /// Value of the field.
        found: u16,
    },
    /// An APDU of IEC 60870-5-104 does not begin with 0x68.
    #[error("APDU begins with 0x{found:02x}, expected 0x68")]
    Iec104Start {
        /// The first byte.
        found: u8,
    },
    /// The length of an APDU is not between 4 and 253.
    #[error("APDU length {found}, expected 4 to 253")]
    Iec104Length {
        /// Value of the field.
        found: u8,
    },
}
