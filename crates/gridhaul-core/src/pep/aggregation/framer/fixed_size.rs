//! Messages of a fixed size.

use std::num::NonZeroU32;

use super::{Framer, Framing, FramingError};

/// Messages of the same number of bytes each.
#[derive(Debug, Clone, Copy)]
pub struct FixedSize {
    size: NonZeroU32,
    /// Bytes of the current message that have arrived, below `size`.
    arrived: u32,
}

impl FixedSize {
    /// Messages of `size` bytes.
    #[must_use]
    pub const fn new(size: NonZeroU32) -> Self {
        Self { size, arrived: 0 }
    }
}

impl Framer for FixedSize {
    fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let missing = (self.size.get() - self.arrived) as usize;
        if bytes.len() < missing {
            self.arrived += bytes.len() as u32;
            return Ok(Framing::Incomplete);
        }
        self.arrived = 0;
        Ok(Framing::End(missing))
    }

    fn largest_message(&self) -> u64 {
        u64::from(self.size.get())
    }
}
