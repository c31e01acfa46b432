//! A length field at an offset in the header of each message. IEEE C37.118.2, Modbus/TCP and TPKT
//! (RFC 1006, section 6), which carries IEC 61850-8-1, have such a header.

use super::{ByteOrder, Framing, FramingError, body};

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
}

impl LengthField {
    /// Messages of a layout whose field has 1 to 4 bytes.
    #[must_use]
    pub const fn new(layout: LengthFieldLayout) -> Self {
        Self { layout, arrived: 0, number: 0 }
    }

    /// Bytes up to the end of the length field that have arrived, and its value, or the bytes that
    /// are missing after it.
    pub(super) const fn progress(&self) -> (u16, u32) {
        (self.arrived, self.number)
    }

    /// Continues within a message; `None` if no message can have this state.
    pub(super) fn resumed(self, arrived: u16, number: u32) -> Option<Self> {
        let is_in_body = arrived == self.layout.header();
        let is_possible =
            arrived <= self.layout.header() && (!is_in_body || number <= self.layout.maximum);
        is_possible.then_some(Self { arrived, number, ..self })
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let layout = self.layout;
        let mut read = 0;
        if self.arrived < layout.header() {
            read = usize::from(layout.offset.saturating_sub(self.arrived)).min(bytes.len());
            self.arrived += read as u16;
            while self.arrived < layout.header() {
                let Some(byte) = bytes.get(read) else { return Ok(Framing::Incomplete) };
                let index = self.arrived - layout.offset;
                self.number = layout.order.with_byte(self.number, index, *byte);
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
    fn missing(&self) -> Result<u32, FramingError> {
        let (header, maximum) = (u64::from(self.layout.header()), u64::from(self.layout.maximum));
        let length = u64::from(self.number) + u64::from(self.layout.adds);
        if length > maximum {
            return Err(FramingError::LengthExceedsMaximum { length, maximum });
        }
        match length.checked_sub(header) {
            Some(missing) => Ok(missing as u32),
            None => Err(FramingError::LengthBelowHeader { length, header }),
        }
    }
}
