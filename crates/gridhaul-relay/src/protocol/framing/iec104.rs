//! APDUs of IEC 60870-5-104 (section 5; APCI in figure 5): start byte 0x68, length of the rest (4 to 253), control
//! field and ASDU.

use gridhaul_core::pep::aggregation::Framing;

use super::super::codec::{DecodeError, Decoder};
use super::{MalformedStream, PartialHeader, body, read_header_progress, write_header_progress};

const START: u8 = 0x68;

/// Largest value of the length field.
const LENGTH_MAX: u8 = 253;

/// Finds the ends of APDUs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Iec104 {
    header: PartialHeader<2>,
    /// Bytes of the APDU that are missing; `None` within its first two bytes.
    missing: Option<u8>,
}

impl Iec104 {
    pub(super) fn write_progress(&self, bytes: &mut Vec<u8>) {
        write_header_progress(&self.header, self.missing.map(u32::from), bytes);
    }

    pub(super) fn resumed(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let (header, missing) = read_header_progress(decoder, LENGTH_MAX.into())?;
        Ok(Self { header, missing: missing.map(|it| it as u8) })
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, MalformedStream> {
        let mut read = 0;
        let mut missing = match self.missing {
            Some(missing) => u32::from(missing),
            None => {
                let (taken, header) = self.header.take(bytes);
                let Some([start, length]) = header else { return Ok(Framing::Incomplete) };
                read = taken;
                if start != START {
                    return Err(MalformedStream::Iec104Start { found: start });
                }
                if !(4..=LENGTH_MAX).contains(&length) {
                    return Err(MalformedStream::Iec104Length { found: length });
                }
                u32::from(length)
            }
        };
        let framing = body(&mut missing, bytes, read);
        self.missing = matches!(framing, Framing::Incomplete).then_some(missing as u8);
        Ok(framing)
    }
}
