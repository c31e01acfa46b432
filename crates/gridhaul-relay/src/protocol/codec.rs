//! Numbers and texts in records and frames. Numbers are LEB128 (7 bits per byte, least significant
//! first) or little-endian.

use thiserror::Error;

/// Bytes that are not a record, batch or frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes end within a field.
    #[error("{0} is truncated")]
    Truncated(&'static str),
    /// A field has a value above its limit.
    #[error("{0} is too long")]
    TooLong(&'static str),
    /// A field has a value that is not defined.
    #[error("{0} has an undefined value")]
    Undefined(&'static str),
    /// The checksum differs.
    #[error("the checksum is wrong")]
    Checksum,
    /// Bytes follow the last field.
    #[error("bytes follow {0}")]
    Trailing(&'static str),
}

/// Reads fields from the start of a slice.
#[derive(Debug, Clone)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    /// Name of what is being read, for errors.
    subject: &'static str,
}

impl<'a> Decoder<'a> {
    pub(crate) const fn new(bytes: &'a [u8], subject: &'static str) -> Self {
        Self { bytes, subject }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes that were not read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) =
            self.bytes.split_at_checked(length).ok_or(DecodeError::Truncated(self.subject))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.take(2)?.try_into().expect("two bytes")))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into().expect("four bytes")))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("eight bytes")))
    }

    pub(crate) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::TooLong(self.subject))
    }

    /// A length, at most `max`, and so many bytes.
    pub(crate) fn bytes(&mut self, max: usize) -> Result<&'a [u8], DecodeError> {
        let length = self.varint()?;
        if length > max as u64 {
            return Err(DecodeError::TooLong(self.subject));
        }
        self.take(length as usize)
    }

    /// A text of at most `max` bytes.
    pub(crate) fn text(&mut self, max: usize) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes(max)?).map_err(|_| DecodeError::Undefined(self.subject))
    }

    /// Nothing must follow.
    pub(crate) const fn end(&self) -> Result<(), DecodeError> {
        if self.bytes.is_empty() { Ok(()) } else { Err(DecodeError::Trailing(self.subject)) }
    }
}

pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Appends the length of a slice, and the slice.
pub(crate) fn put_bytes(bytes: &mut Vec<u8>, value: &[u8]) {
    put_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Appends a text, cut at a character boundary to at most `max` bytes.
pub(crate) fn put_text(bytes: &mut Vec<u8>, value: &str, max: usize) {
    let boundary = (0..=max.min(value.len())).rev().find(|&at| value.is_char_boundary(at));
    put_bytes(bytes, &value.as_bytes()[..boundary.unwrap_or(0)]);
}
