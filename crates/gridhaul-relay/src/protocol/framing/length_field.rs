//! A length field at an offset in the header of each message. IEEE C37.118.2, Modbus/TCP and TPKT (RFC 1006, section 6), which
//! carries IEC 61850-8-1, have such a header.

use gridhaul_core::pep::aggregation::{ByteOrder, Framing, FramingError};

use super::super::codec::{DecodeError, Decoder, put_varint};
use super::{MalformedStream, body};

/// Finds the ends of messages with a length field.
#[derive(Debug, Clone, Copy)]
pub struct LengthField {
    layout: LengthFieldLayout,
    /// Bytes of the message up to the end of the length field that have arrived.
    arrived: u16,
    /// Value of the length field so far; after the field, bytes of the message that are missing.
    number: u32,
}

/// Where the length of a message is, and what it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthFieldLayout {
    /// Bytes of the message before the field.
    pub offset: u16,
    /// Bytes of the field, 1 to 4.
    pub size: u8,
    /// Order of the bytes of the field.
    pub order: ByteOrder,
    /// Bytes of the message that the value does not count.
    pub adds: u32,
    /// Largest message with its header.
    pub maximum: u32,
}

impl LengthFieldLayout {
    /// Bytes of a message up to the end of its length field.
    const fn header(self) -> u16 {
        self.offset.saturating_add(self.size as u16)
    }

    /// The value of the field with one more byte.
    fn with_byte(self, value: u32, index: u16, byte: u8) -> u32 {
        match self.order {
            ByteOrder::BigEndian => value << 8 | u32::from(byte),
            ByteOrder::LittleEndian => value | u32::from(byte) << (8 * index),
        }
    }
}

impl LengthField {
    /// Messages of a layout whose field has 1 to 4 bytes.
    #[must_use]
    pub const fn new(layout: LengthFieldLayout) -> Self {
        Self { layout, arrived: 0, number: 0 }
    }

    pub(super) fn write_progress(&self, bytes: &mut Vec<u8>) {
        put_varint(bytes, self.arrived.into());
        put_varint(bytes, self.number.into());
    }

    pub(super) fn resumed(self, decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (arrived, number) = (decoder.varint()?, decoder.varint()?);
        let too_long = |_| DecodeError::TooLong("message");
        let (arrived, number) =
            (u16::try_from(arrived).map_err(too_long)?, u32::try_from(number).map_err(too_long)?);
        let is_in_body = arrived == self.layout.header();
        if arrived > self.layout.header() || is_in_body && number > self.layout.maximum {
            return Err(DecodeError::Undefined("state of a message"));
        }
        Ok(Self { arrived, number, ..self })
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, MalformedStream> {
        let layout = self.layout;
        let mut read = 0;
        if self.arrived < layout.header() {
            read = usize::from(layout.offset.saturating_sub(self.arrived)).min(bytes.len());
            self.arrived += read as u16;
            while self.arrived < layout.header() {
                let Some(byte) = bytes.get(read) else { return Ok(Framing::Incomplete) };
                let index = self.arrived - layout.offset;
                self.number = layout.with_byte(self.number, index, *byte);
                (self.arrived, read) = (self.arrived + 1, read + 1);
            }
            self.number = self.missing()?;
        }
        let framing = body(&mut self.number, bytes, read);
        if matches!(framing, Framing::End(_)) {
            (self.arrived, self.number) = (0, 0);
        }
        Ok(framing)
    }

    /// Bytes of the message after its length field, which is complete.
    fn missing(&self) -> Result<u32, MalformedStream> {
        let (header, maximum) = (u64::from(self.layout.header()), u64::from(self.layout.maximum));
        let length = u64::from(self.number) + u64::from(self.layout.adds);
        if length > maximum {
            return Err(FramingError::LengthExceedsMaximum { length, maximum }.into());
        }
        match length.checked_sub(header) {
            Some(missing) => Ok(missing as u32),
            None => Err(MalformedStream::LengthBelowHeader { length, header }),
        }
    }
}
