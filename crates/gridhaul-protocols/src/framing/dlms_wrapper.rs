//! The wrapper of DLMS/COSEM over TCP (IEC 62056-4-7, section 5.3.3; registered port 4059):
//! version, source and destination wPort, length, each of 16 bits in network byte order, then the
//! APDU.

use super::partial_header::PartialHeader;
use super::{Framing, FramingError, HeaderProgress, body};

/// Finds the ends of wrapper protocol data units.
#[derive(Debug, Clone, Copy)]
pub struct DlmsWrapper {
    header: PartialHeader<8>,
    /// Bytes of the APDU that are missing; `None` within the header.
    missing: Option<u32>,
    maximum: u16,
}

impl DlmsWrapper {
    /// APDUs of at most `maximum` bytes.
    #[must_use]
    pub fn new(maximum: u16) -> Self {
        Self { header: PartialHeader::default(), missing: None, maximum }
    }

    pub(super) const fn progress(&self) -> HeaderProgress {
        self.header.progress(self.missing)
    }

    pub(super) fn resumed(self, progress: HeaderProgress) -> Option<Self> {
        let (header, missing) = PartialHeader::resumed(progress, self.maximum.into())?;
        Some(Self { header, missing, ..self })
    }

    pub(super) fn next_message_end(&mut self, bytes: &[u8]) -> Result<Framing, FramingError> {
        let mut read = 0;
        let mut missing = match self.missing {
            Some(missing) => missing,
            None => {
                let (taken, header) = self.header.take(bytes);
                let Some(header) = header else { return Ok(Framing::Incomplete) };
                read = taken;
                let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
                if field(0) != 1 {
                    return Err(FramingError::DlmsVersion { found: field(0) });
                }
                if field(6) > self.maximum {
                    let (length, maximum) = (u64::from(field(6)), u64::from(self.maximum));
                    return Err(FramingError::LengthExceedsMaximum { length, maximum });
                }
                u32::from(field(6))
            }
        };
        let framing = body(&mut missing, bytes, read);
        self.missing = matches!(framing, Framing::Incomplete).then_some(missing);
        Ok(framing)
    }
}
