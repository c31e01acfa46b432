//! Messages that end with a delimiter.

use std::num::NonZeroU32;

use super::{Framing, FramingError};

/// Messages that end with one byte, for example a newline. The delimiter belongs to its message.
#[derive(Debug, Clone, Copy)]
pub struct Delimiter {
    delimiter: u8,
    maximum: NonZeroU32,
    /// Bytes of the current message that have arrived, below `maximum`.
    arrived: u32,
}

impl Delimiter {
    /// Messages of at most `maximum` bytes, of which the last is `delimiter` and no other is.
    #[must_use]
    pub const fn new(delimiter: u8, maximum: NonZeroU32) -> Self {
        Self { delimiter, maximum, arrived: 0 }
    }

    /// Bytes of the current message that have arrived.
    pub(super) const fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Continues within a message of which so many bytes have arrived; `None` if the message would
    /// be too long.
    pub(super) const fn resumed(self, arrived: u32) -> Option<Self> {
        if arrived < self.maximum.get() { Some(Self { arrived, ..self }) } else { None }
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let missing = (self.maximum.get() - self.arrived) as usize;
        let candidates = &bytes[..bytes.len().min(missing)];
        if let Some(index) = candidates.iter().position(|&byte| byte == self.delimiter) {
            self.arrived = 0;
            return Ok(Framing::End(index + 1));
        }
        if candidates.len() == missing {
            return Err(FramingError::DelimiterMissing {
                delimiter: self.delimiter,
                maximum: u64::from(self.maximum.get()),
            });
        }
        self.arrived += candidates.len() as u32;
        Ok(Framing::Incomplete)
    }
}
