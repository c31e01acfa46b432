//! DLMS/COSEM Data-Notification APDU (IEC 62056-5-3, tag 15) without a date and time of its own,
//! whose body is this data type:
//!
//! ```text
//! structure {
//!   origin, received: null-data or structure { double-long-unsigned, double-long-unsigned },
//!   sequence: null-data or long64-unsigned, values: array of float64
//! }
//! ```
//!
//! The date-time of DLMS has a resolution of 10 ms; the body contains seconds and nanoseconds, so
//! that no time is rounded. The long-invoke-id is the lowest 24 bits of the sequence number. This
//! is the APDU alone: the wrapper of IEC 62056-47 (8 B) belongs to the transport.

use super::{Sample, Timestamp};
use crate::dlms::{DATA_NOTIFICATION, DlmsError, Reader, tag, write_length};

/// Bits of the long-invoke-id in the long-invoke-id-and-priority; the others are flags.
const INVOKE_ID: u32 = 0x00ff_ffff;

/// Elements of the body.
const ELEMENTS: usize = 4;

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

pub(super) fn decode(bytes: &[u8]) -> Result<Sample, DlmsError> {
    let mut reader = Reader::new(bytes);
    reader.expect(DATA_NOTIFICATION, "expected a Data-Notification APDU")?;
    let _long_invoke_id_and_priority: [u8; 4] = reader.take()?;
    reader.expect(0, "expected no date and time")?;
    reader.expect(tag::STRUCTURE, "expected a structure")?;
    if reader.length()? != ELEMENTS {
        return Err(DlmsError("expected a structure of four elements"));
    }
    let (origin, received) = (read_time(&mut reader)?, read_time(&mut reader)?);
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
    if !reader.is_empty() {
        return Err(DlmsError("bytes after the APDU"));
    }
    Ok(Sample { origin, received, sequence, values })
}

fn read_time(reader: &mut Reader<'_>) -> Result<Option<Timestamp>, DlmsError> {
    if !reader.optional(tag::STRUCTURE, "expected null-data or a structure")? {
        return Ok(None);
    }
    if reader.length()? != 2 {
        return Err(DlmsError("expected a structure of two elements"));
    }
    let (seconds, nanoseconds) = (read_number(reader)?, read_number(reader)?);
    Ok(Some(Timestamp { seconds, nanoseconds }))
}

fn read_number(reader: &mut Reader<'_>) -> Result<u32, DlmsError> {
    reader.expect(tag::DOUBLE_LONG_UNSIGNED, "expected double-long-unsigned")?;
    Ok(u32::from_be_bytes(reader.take()?))
}
