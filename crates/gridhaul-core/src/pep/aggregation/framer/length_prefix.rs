//! Messages that begin with their length.

use super::{Framer, Framing, FramingError};

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

/// Order of the bytes of a length field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteOrder {
    /// The most significant byte first (network byte order).
    BigEndian,
    /// The least significant byte first.
    LittleEndian,
}

/// State of a [`LengthPrefix`] within a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrefixProgress {
    /// In the length field.
    Prefix {
        /// Value of the field so far.
        value: u32,
        /// Bytes of the field so far.
        arrived: u8,
    },
    /// After the length field.
    Body {
        /// Bytes of the message that have not arrived.
        missing: u32,
    },
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
    #[must_use]
    pub const fn progress(&self) -> PrefixProgress {
        self.state
    }

    /// Continues within a message; `None` if no message can have this state.
    #[must_use]
    pub const fn resumed(self, state: PrefixProgress) -> Option<Self> {
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

    /// The value of a length field with one more byte.
    fn with_byte(&self, value: u32, arrived: u8, byte: u8) -> u32 {
        match self.order {
            ByteOrder::BigEndian => value << 8 | u32::from(byte),
            ByteOrder::LittleEndian => value | u32::from(byte) << (8 * arrived),
        }
    }
}

impl Framer for LengthPrefix {
    fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
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
            let value = self.with_byte(value, arrived, byte);
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

    fn largest_message(&self) -> u64 {
        let field = match self.width {
            LengthWidth::TwoBytes => self.maximum.min(u32::from(u16::MAX)),
            LengthWidth::FourBytes => self.maximum,
        };
        u64::from(self.prefix_bytes()) + u64::from(field)
    }
}
