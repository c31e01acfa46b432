//! APDUs of IEC 60870-5-104 (section 5; APCI in figure 5): start byte 0x68, length of the rest (4
//! to 253), control field and ASDU.

use crate::iec104::{LENGTH_MAX, LENGTH_MIN, START};

use super::partial_header::PartialHeader;
use super::{Framing, FramingError, HeaderProgress, body};

/// Finds the ends of APDUs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Iec104 {
    header: PartialHeader<2>,
    /// Bytes of the APDU that are missing; `None` within its first two bytes.
    missing: Option<u8>,
}

impl Iec104 {
    pub(super) const fn progress(&self) -> HeaderProgress {
        self.header.progress(match self.missing {
            Some(missing) => Some(missing as u32),
            None => None,
        })
    }

    pub(super) fn resumed(progress: HeaderProgress) -> Option<Self> {
        let (header, missing) = PartialHeader::resumed(progress, LENGTH_MAX.into())?;
        Some(Self { header, missing: missing.map(|missing| missing as u8) })
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let mut read = 0;
        let mut missing = match self.missing {
            Some(missing) => u32::from(missing),
            None => {
                let (taken, header) = self.header.take(bytes);
                let Some([start, length]) = header else { return Ok(Framing::Incomplete) };
                read = taken;
                if start != START {
                    return Err(FramingError::Iec104Start { found: start });
                }
                if !(LENGTH_MIN..=LENGTH_MAX).contains(&length) {
                    return Err(FramingError::Iec104Length { found: length });
                }
                u32::from(length)
            }
        };
        let framing = body(&mut missing, bytes, read);
        self.missing = matches!(framing, Framing::Incomplete).then_some(missing as u8);
        Ok(framing)
    }
}
