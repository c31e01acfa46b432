//! Errors of reading and writing frames.

use gridhaul_core::wire::WireError;

/// Error in a frame of Sampled Values or GOOSE.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The Ethernet header cannot be parsed.
    #[error(transparent)]
    Ethernet(#[from] WireError),
    /// The frame belongs to another protocol.
    #[error("EtherType {0:#06x}: expected 0x88ba (Sampled Values) or 0x88b8 (GOOSE)")]
    EtherType(u16),
    /// The frame or an element ends before the stated length.
    #[error("{element}: truncated, expected {expected} bytes, found {found}")]
    Truncated {
        /// Name of the element in the standard.
        element: &'static str,
        /// Stated length in bytes.
        expected: usize,
        /// Remaining bytes.
        found: usize,
    },
    /// Another element than the expected one.
    #[error("{element}: expected tag {expected:#04x}, found {found:#04x}")]
    Tag {
        /// Name of the expected element.
        element: &'static str,
        /// Its tag.
        expected: u8,
        /// The tag in the frame.
        found: u8,
    },
    /// Bytes after the last element.
    #[error("{element}: {count} bytes after the last element")]
    Trailing {
        /// Name of the enclosing element.
        element: &'static str,
        /// Number of bytes.
        count: usize,
    },
    /// A length or value that the standard, or this codec, does not permit.
    #[error("{element}: {reason}")]
    Value {
        /// Name of the element.
        element: &'static str,
        /// Fault, and the expected value.
        reason: &'static str,
    },
}

impl FrameError {
    /// A value that is not permitted.
    pub(crate) const fn value(element: &'static str, reason: &'static str) -> Self {
        Self::Value { element, reason }
    }
}
