//! DLMS/COSEM (IEC 62056-5-3): data types of an APDU in the encoding A-XDR (IEC 61334-6).
//!
//! The encoding DLMS of module `payload` is a Data-Notification of these types, and `DlmsWrapper`
//! of module `framing` finds the ends of APDUs over TCP.
//!
//! ```
//! use gridhaul_protocols::dlms::{Reader, tag, write_length};
//!
//! let mut apdu = vec![tag::ARRAY];
//! write_length(&mut apdu, 300);
//! let mut reader = Reader::new(&apdu);
//! reader.expect(tag::ARRAY, "expected an array")?;
//! assert_eq!(reader.length()?, 300);
//! # Ok::<(), gridhaul_protocols::dlms::DlmsError>(())
//! ```

use thiserror::Error;

/// Tag of the Data-Notification APDU.
pub const DATA_NOTIFICATION: u8 = 15;

/// Tags of data types (IEC 62056-6-2, table of common data types).
pub mod tag {
    /// No value.
    pub const NULL_DATA: u8 = 0;
    /// Elements of one type.
    pub const ARRAY: u8 = 1;
    /// Elements of any types.
    pub const STRUCTURE: u8 = 2;
    /// Unsigned integer of 32 bits.
    pub const DOUBLE_LONG_UNSIGNED: u8 = 6;
    /// Unsigned integer of 64 bits.
    pub const LONG64_UNSIGNED: u8 = 21;
    /// Floating-point number of 64 bits (IEEE 754).
    pub const FLOAT64: u8 = 24;
}

/// The flag of a length that is followed by its own bytes (A-XDR, IEC 61334-6).
const LONG_LENGTH: u8 = 0x80;

/// Bytes that are not of the expected data type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DlmsError(pub &'static str);

/// Appends the length of a structure or an array in A-XDR.
pub fn write_length(bytes: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < LONG_LENGTH => bytes.push(short),
        _ => {
            let length = length.to_be_bytes();
            let leading = length.iter().take_while(|byte| **byte == 0).count();
            bytes.push(LONG_LENGTH | (length.len() - leading) as u8);
            bytes.extend(&length[leading..]);
        }
    }
}

/// Reads data types from the start of an APDU.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader at the start of an APDU.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads `N` bytes.
    ///
    /// # Errors
    /// The APDU ends before.
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], DlmsError> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or(DlmsError("the APDU is truncated"))?;
        self.rest = rest;
        Ok(*taken)
    }

    /// Reads a byte that must be this one; `expected` is the text of the error.
    ///
    /// # Errors
    /// The byte is another one, or the APDU ends before.
    pub fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), DlmsError> {
        match self.take()? {
            [found] if found == byte => Ok(()),
            _ => Err(DlmsError(expected)),
        }
    }

    /// Reads a tag: whether it is this one, or that of null-data.
    ///
    /// # Errors
    /// The tag is another one, or the APDU ends before.
    pub fn optional(&mut self, tag: u8, expected: &'static str) -> Result<bool, DlmsError> {
        match self.take()? {
            [tag::NULL_DATA] => Ok(false),
            [found] if found == tag => Ok(true),
            _ => Err(DlmsError(expected)),
        }
    }

    /// Reads the length of a structure or an array.
    ///
    /// # Errors
    /// The length is too large for this machine, or the APDU ends before.
    pub fn length(&mut self) -> Result<usize, DlmsError> {
        let [first] = self.take()?;
        if first < LONG_LENGTH {
            return Ok(first.into());
        }
        let mut length = 0_usize;
        for _ in 0..first & !LONG_LENGTH {
            let [byte] = self.take()?;
            let longer = length.checked_mul(256).ok_or(DlmsError("a length is too large"));
            length = longer? | usize::from(byte);
        }
        Ok(length)
    }
}
