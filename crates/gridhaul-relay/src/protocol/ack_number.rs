//! Sequence number that confirms records.

use super::codec::{DecodeError, Decoder};
use crate::log::Durable;

/// Sequence number of the first record that is not durable at the head: all records before it are
/// confirmed. It follows from the durable end of the head's log, or is read from the frame of a
/// head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckNumber(u64);

impl AckNumber {
    /// The sequence number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        decoder.varint().map(Self)
    }
}

impl From<Durable<u64>> for AckNumber {
    fn from(next: Durable<u64>) -> Self {
        Self(next.position())
    }
}
