//! DLMS/COSEM Data-Notification APDU (IEC 62056-5-3, tag 15) without a date and time of its own, whose body is this data type:
//!
//! ```text
//! structure { origin, received: null-data or structure { double-long-unsigned, double-long-unsigned },
//!             sequence: null-data or long64-unsigned, values: array of float64 }
//! ```
//!
//! The date-time of DLMS has a resolution of 10 ms; the body contains seconds and nanoseconds, so that no time is rounded. The
//! long-invoke-id is the lowest 24 bits of the sequence number. This is the APDU alone: the wrapper of IEC 62056-47 (8 B) belongs
//! to the transport.

use super::{PayloadError, Sample, Timestamp};

/// Tag of the Data-Notification APDU.
const DATA_NOTIFICATION: u8 = 15;

/// Bits of the long-invoke-id in the long-invoke-id-and-priority; the others are flags.
const INVOKE_ID: u32 = 0x00ff_ffff;

/// Tags of data types (IEC 62056-6-2, table of common data types).
mod tag {
    pub(super) const NULL_DATA: u8 = 0;
    pub(super) const ARRAY: u8 = 1;
    pub(super) const STRUCTURE: u8 = 2;
    pub(super) const DOUBLE_LONG_UNSIGNED: u8 = 6;
    pub(super) const LONG64_UNSIGNED: u8 = 21;
    pub(super) const FLOAT64: u8 = 24;
}

/// Elements of the body.
const ELEMENTS: usize = 4;

/// The flag of a length that is followed by its own bytes (A-XDR, IEC 61334-6).
const LONG_LENGTH: u8 = 0x80;

pub(super) fn encode(sample: &Sample) -> Vec<u8> {
    let sequence = sample.sequence.unwrap_or_default() as u32;
    let mut bytes = vec![DATA_NOTIFICATION];
    bytes.extend((sequence & INVOKE_ID).to_be_bytes());
    // No date and time: an octet string of length 0.
    bytes.push(0);
    bytes.push(tag::STRUCTURE);
    write_length(&mut bytes, ELEMENTS);
    for time in [sample.origin, sample.received] {
        match time {
            Some(Timestamp { seconds, nanoseconds }) => {
                bytes.push(tag::STRUCTURE);
                write_length(&mut bytes, 2);
                for number in [seconds, nanoseconds] {
                    bytes.push(tag::DOUBLE_LONG_UNSIGNED);
                    bytes.extend(number.to_be_bytes());
                }
            }
            None => bytes.push(tag::NULL_DATA),
        }
    }
    match sample.sequence {
        Some(sequence) => {
            bytes.push(tag::LONG64_UNSIGNED);
            bytes.extend(sequence.to_be_bytes());
        }
        None => bytes.push(tag::NULL_DATA),
    }
    bytes.push(tag::ARRAY);
    write_length(&mut bytes, sample.values.len());
    for value in &sample.values {
        bytes.push(tag::FLOAT64);
        bytes.extend(value.to_be_bytes());
    }
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Result<Sample, PayloadError> {
    let mut reader = Reader { rest: bytes };
    reader.expect(DATA_NOTIFICATION, "expected a Data-Notification APDU")?;
    let _long_invoke_id_and_priority: [u8; 4] = reader.take()?;
    reader.expect(0, "expected no date and time")?;
    reader.expect(tag::STRUCTURE, "expected a structure")?;
    if reader.length()? != ELEMENTS {
        return Err(PayloadError::Dlms("expected a structure of four elements"));
    }
    let (origin, received) = (reader.time()?, reader.time()?);
    let sequence = reader
        .optional(tag::LONG64_UNSIGNED, "expected null-data or long64-unsigned")?
        .then(|| reader.take().map(u64::from_be_bytes))
        .transpose()?;
    reader.expect(tag::ARRAY, "expected an array")?;
    let count = reader.length()?;
    // A value takes nine bytes, so that a wrong length reserves no memory.
    let mut values = Vec::with_capacity(count.min(bytes.len() / 9));
    for _ in 0..count {
        reader.expect(tag::FLOAT64, "expected float64")?;
        values.push(f64::from_be_bytes(reader.take()?));
    }
    if !reader.rest.is_empty() {
        return Err(PayloadError::Dlms("bytes after the APDU"));
    }
    Ok(Sample { origin, received, sequence, values })
}

/// Appends the length of a structure or an array in A-XDR.
fn write_length(bytes: &mut Vec<u8>, length: usize) {
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

/// The bytes that have not been read.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], PayloadError> {
        let (taken, rest) =
            self.rest.split_first_chunk().ok_or(PayloadError::Dlms("the APDU is truncated"))?;
        self.rest = rest;
        Ok(*taken)
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), PayloadError> {
        match self.take()? {
            [found] if found == byte => Ok(()),
            _ => Err(PayloadError::Dlms(expected)),
        }
    }

    /// Reads a tag: whether it is this one, or that of null-data.
    fn optional(&mut self, tag: u8, expected: &'static str) -> Result<bool, PayloadError> {
        match self.take()? {
            [tag::NULL_DATA] => Ok(false),
            [found] if found == tag => Ok(true),
            _ => Err(PayloadError::Dlms(expected)),
        }
    }

    fn length(&mut self) -> Result<usize, PayloadError> {
        let [first] = self.take()?;
        if first < LONG_LENGTH {
            return Ok(first.into());
        }
        let mut length = 0_usize;
        for _ in 0..first & !LONG_LENGTH {
            let [byte] = self.take()?;
            let longer = length.checked_mul(256).ok_or(PayloadError::Dlms("a length is too large"));
            length = longer? | usize::from(byte);
        }
        Ok(length)
    }

    fn time(&mut self) -> Result<Option<Timestamp>, PayloadError> {
        if !self.optional(tag::STRUCTURE, "expected null-data or a structure")? {
            return Ok(None);
        }
        if self.length()? != 2 {
            return Err(PayloadError::Dlms("expected a structure of two elements"));
        }
        let (seconds, nanoseconds) = (self.number()?, self.number()?);
        Ok(Some(Timestamp { seconds, nanoseconds }))
    }

    fn number(&mut self) -> Result<u32, PayloadError> {
        self.expect(tag::DOUBLE_LONG_UNSIGNED, "expected double-long-unsigned")?;
        Ok(u32::from_be_bytes(self.take()?))
    }
}
