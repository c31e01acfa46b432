//! Messages that begin with their length.

use super::{ByteOrder, Framing, FramingError, PrefixProgress};

/// Messages that begin with a length field. Its value counts the bytes after the field, and may be
/// 0.
#[derive(Debug, Clone, Copy)]
pub struct LengthPrefix {
    width: LengthWidth,
    order: ByteOrder,
    maximum: u32,
    state: PrefixProgress,
}

/// Size of a length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthWidth {
    /// An unsigned integer of 16 bits.
    TwoBytes,
    /// An unsigned integer of 32 bits.
    FourBytes,
}

impl PrefixProgress {
    const START: Self = Self::Prefix { value: 0, arrived: 0 };
}

impl LengthPrefix {
    /// Messages whose length field has at most the value `maximum`, in bytes.
    #[must_use]
    pub const fn new(width: LengthWidth, order: ByteOrder, maximum: u32) -> Self {
        Self { width, order, maximum, state: PrefixProgress::START }
    }

    /// The state within the current message.
    pub(super) const fn progress(&self) -> PrefixProgress {
        self.state
    }

    /// Continues within a message; `None` if no message can have this state.
    pub(super) const fn resumed(self, state: PrefixProgress) -> Option<Self> {
        let is_possible = match state {
            PrefixProgress::Prefix { arrived, .. } => arrived <= self.prefix_bytes(),
            PrefixProgress::Body { missing } => missing <= self.maximum,
        };
        if is_possible { Some(Self { state, ..self }) } else { None }
    }

    const fn prefix_bytes(&self) -> u8 {
        match self.width {
            LengthWidth::TwoBytes => 2,
            LengthWidth::FourBytes => 4,
        }
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let mut read = 0;
        while let PrefixProgress::Prefix { value, arrived } = self.state {
            if arrived == self.prefix_bytes() {
                if value > self.maximum {
                    let (length, maximum) = (u64::from(value), u64::from(self.maximum));
                    return Err(FramingError::LengthExceedsMaximum { length, maximum });
                }
                self.state = PrefixProgress::Body { missing: value };
                break;
            }
            let Some(&byte) = bytes.get(read) else { return Ok(Framing::Incomplete) };
            let value = self.order.with_byte(value, arrived.into(), byte);
            self.state = PrefixProgress::Prefix { value, arrived: arrived + 1 };
            read += 1;
        }
        let PrefixProgress::Body { missing } = self.state else { return Ok(Framing::Incomplete) };
        let rest = bytes.len() - read;
        if rest < missing as usize {
            self.state = PrefixProgress::Body { missing: missing - rest as u32 };
            return Ok(Framing::Incomplete);
        }
        self.state = PrefixProgress::START;
        Ok(Framing::End(read + missing as usize))
    }
}
