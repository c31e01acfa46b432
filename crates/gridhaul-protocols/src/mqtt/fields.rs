//! Fields of packets: texts, binary data, lengths and properties.

/// Appends a text or binary data after its length of 16 bits (section 1.5.3). Bytes after the
/// 65,535th are cut.
pub(super) fn write_field(out: &mut Vec<u8>, field: &[u8]) {
    let field = &field[..field.len().min(usize::from(u16::MAX))];
    out.extend((field.len() as u16).to_be_bytes());
    out.extend(field);
}

/// Appends a length with 7 bits in each byte, the least significant first (section 2.2.3).
pub(super) fn write_length(out: &mut Vec<u8>, mut length: usize) {
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
}

/// Reads a length of at most four bytes. `Ok(None)` if the bytes end before it.
pub(super) fn read_length(bytes: &[u8]) -> Result<Option<(usize, &[u8])>, Malformed> {
    let mut length = 0;
    for (index, &byte) in bytes.iter().take(4).enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Ok(Some((length, &bytes[index + 1..])));
        }
    }
    if bytes.len() < 4 { Ok(None) } else { Err(Malformed) }
}

/// Bytes that are not a packet of the standard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Malformed;

/// Reads fields from the start of a slice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn u16(&mut self) -> Result<u16, Malformed> {
        let bytes = self.take(2)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    /// A packet identifier, which is not 0 (section 2.3.1).
    pub(super) fn identifier(&mut self) -> Result<u16, Malformed> {
        self.u16().and_then(|number| if number == 0 { Err(Malformed) } else { Ok(number) })
    }

    /// A text or binary data.
    pub(super) fn field(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.u16()?;
        self.take(length.into())
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        let (length, rest) = read_length(self.rest)?.ok_or(Malformed)?;
        self.rest = rest;
        Ok(length)
    }

    /// Reads a list of properties (MQTT 5.0, section 2.2.2) and returns the value of Receive
    /// Maximum, if it is there.
    pub(super) fn properties(&mut self) -> Result<Option<u16>, Malformed> {
        const RECEIVE_MAXIMUM: u8 = 0x21;
        let length = self.length()?;
        let mut list = Self { rest: self.take(length)? };
        let mut receive_maximum = None;
        while !list.rest.is_empty() {
            match list.u8()? {
                RECEIVE_MAXIMUM => receive_maximum = Some(list.u16()?),
                // The lengths of the others, by type (MQTT 5.0, table 2-4).
                0x01 | 0x17 | 0x19 | 0x24 | 0x25 | 0x28 | 0x29 | 0x2a => drop(list.u8()?),
                0x13 | 0x22 | 0x23 => drop(list.u16()?),
                0x02 | 0x11 | 0x18 | 0x27 => drop(list.take(4)?),
                0x0b => drop(list.length()?),
                0x03 | 0x08 | 0x09 | 0x12 | 0x15 | 0x16 | 0x1a | 0x1c | 0x1f => drop(list.field()?),
                0x26 => drop((list.field()?, list.field()?)),
                _ => return Err(Malformed),
            }
        }
        Ok(receive_maximum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_back() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 268_435_455] {
            let mut bytes = Vec::new();
            write_length(&mut bytes, length);
            assert_eq!(read_length(&bytes), Ok(Some((length, &[][..]))));
            assert_eq!(read_length(&bytes[..bytes.len() - 1]), Ok(None), "{length} is incomplete");
        }
        assert_eq!(read_length(&[0xff; 4]), Err(Malformed));
    }

    #[test]
    fn properties_of_every_type_are_skipped() {
        let list = b"\x1b\x01\x01\x13\0\x05\x21\0\x07\x27\0\0\0\x01\x0b\x81\x01\
            \x26\0\x01a\0\x01b\x1f\0\x01c!";
        let mut fields = Fields { rest: list };
        assert_eq!(fields.properties(), Ok(Some(7)));
        assert_eq!(fields.rest, b"!");
        assert_eq!(Fields { rest: b"\x01\x7f" }.properties(), Err(Malformed), "undefined");
        assert_eq!(Fields { rest: b"\x02\x21\x00" }.properties(), Err(Malformed), "truncated");
    }
}
