//! Reads a PROXY header in pieces. Fields that are not used are skipped, so that a header of the
//! largest length, for example with the certificate of a client, needs no more memory than a short
//! one.

use super::proxy_header::{
    FIXED, ProxyHeader, ProxyHeaderError, SIGNATURE, TLV_CRC32C, UNIQUE_ID_MAX, addresses,
    addresses_size, is_used_extension,
};

/// A header of which a part has arrived.
#[derive(Debug, Clone)]
pub struct ProxyHeaderReader {
    header: ProxyHeader,
    field: Field,
    /// Bytes of the present field that have arrived, unless the field is skipped.
    bytes: [u8; FIELD_MAX],
    arrived: usize,
    /// Bytes of the present field that are missing.
    missing: usize,
    /// Bytes of the header after the present field; unknown within the fixed part.
    rest: usize,
    /// CRC32C of all bytes so far, with zeros in the place of the checksum.
    computed: u32,
    stated: Option<u32>,
}

/// Largest field that is used: a unique identifier.
const FIELD_MAX: usize = UNIQUE_ID_MAX;

/// A part of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Signature, command, family and length.
    Fixed,
    /// Addresses of this family.
    Addresses(u8),
    /// Type and length of an extension.
    ExtensionStart,
    /// Value of an extension of this type.
    Extension(u8),
    /// Value of an extension, or addresses, that are not used.
    Skipped,
    /// All fields are complete.
    End,
}

impl Default for ProxyHeaderReader {
    fn default() -> Self {
        Self {
            header: ProxyHeader::default(),
            field: Field::Fixed,
            bytes: [0; FIELD_MAX],
            arrived: 0,
            missing: FIXED,
            rest: 0,
            computed: 0,
            stated: None,
        }
    }
}

impl ProxyHeaderReader {
    /// Number of further bytes that are certainly part of the header. 0: the header is complete.
    #[must_use]
    pub const fn wanted(&self) -> usize {
        self.missing + self.rest
    }

    /// Reads further bytes of the header, at most [`Self::wanted`].
    ///
    /// # Errors
    /// The bytes are not a header. The connection must be reset: without the header its source is
    /// unknown.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), ProxyHeaderError> {
        while !bytes.is_empty() {
            let (taken, after) = bytes.split_at(self.missing.min(bytes.len()));
            self.take(taken);
            let known = self.arrived.min(SIGNATURE.len());
            if self.field == Field::Fixed && self.bytes[..known] != SIGNATURE[..known] {
                return Err(ProxyHeaderError::Signature);
            }
            // A field may be empty.
            while self.missing == 0 && self.field != Field::End {
                self.complete_field()?;
            }
            bytes = after;
        }
        Ok(())
    }

    /// The header, when it is complete.
    #[must_use]
    pub fn header(self) -> ProxyHeader {
        self.header
    }

    fn take(&mut self, bytes: &[u8]) {
        self.missing -= bytes.len();
        if self.field == Field::Extension(TLV_CRC32C) {
            self.computed = crc32c::crc32c_append(self.computed, &[0; 4][..bytes.len()]);
        } else {
            self.computed = crc32c::crc32c_append(self.computed, bytes);
        }
        if self.field != Field::Skipped {
            self.bytes[self.arrived..self.arrived + bytes.len()].copy_from_slice(bytes);
            self.arrived += bytes.len();
        }
    }

    /// Uses the present field and begins the next one.
    fn complete_field(&mut self) -> Result<(), ProxyHeaderError> {
        let bytes = self.bytes;
        let value = &bytes[..std::mem::take(&mut self.arrived)];
        match self.field {
            Field::Fixed => {
                self.rest = usize::from(u16::from_be_bytes([value[14], value[15]]));
                return match (value[12], value[13]) {
                    // LOCAL, a connection of the proxy itself, such as a probe: the receiver
                    // discards family and addresses.
                    (0x20, _) => self.begin(Field::Skipped, self.rest),
                    (0x21, family @ (0x11 | 0x21)) => {
                        self.begin(Field::Addresses(family), addresses_size(family)?)
                    }
                    (0x21, family) => self.begin(Field::Skipped, addresses_size(family)?),
                    (command, _) => Err(ProxyHeaderError::Command(command)),
                };
            }
            Field::Addresses(family) => self.header.addresses = addresses(family, value),
            Field::ExtensionStart => {
                let length = usize::from(u16::from_be_bytes([value[1], value[2]]));
                let is_used = value[0] == TLV_CRC32C || is_used_extension(value[0], length);
                let field = if is_used { Field::Extension(value[0]) } else { Field::Skipped };
                if value[0] == TLV_CRC32C && (length != 4 || self.stated.is_some()) {
                    return Err(ProxyHeaderError::Inconsistent);
                }
                return self.begin(field, length);
            }
            Field::Extension(TLV_CRC32C) => {
                self.stated = Some(u32::from_be_bytes([value[0], value[1], value[2], value[3]]));
            }
            Field::Extension(kind) => self.header.read_extension(kind, value)?,
            Field::Skipped | Field::End => {}
        }
        if self.rest > 0 {
            return self.begin(Field::ExtensionStart, 3);
        }
        self.field = Field::End;
        match self.stated {
            Some(stated) if stated != self.computed => Err(ProxyHeaderError::Checksum),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, field: Field, size: usize) -> Result<(), ProxyHeaderError> {
        self.rest = self.rest.checked_sub(size).ok_or(ProxyHeaderError::Inconsistent)?;
        self.field = field;
        self.missing = size;
        Ok(())
    }
}
