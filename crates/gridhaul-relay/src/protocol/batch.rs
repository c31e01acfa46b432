//! Batches: consecutive records of one shard with a checksum.
//!
//! | field | bytes |
//! |---|---|
//! | magic `GHRB` | 4 |
//! | version | 1 |
//! | flags, 0 | 1 |
//! | shard | 2 |
//! | epoch | 8 |
//! | sequence number of the first record | 8 |
//! | number of records | 4 |
//! | length of the records in bytes | 4 |
//! | CRC32C of the fields above and the records | 4 |
//!
//! In version 2, the records have the times of their reception: before the first one are the state
//! of the clock and a time in microseconds since 1970, and before each record is the difference to
//! the time before. Version 1 has no times.

use super::codec::{DecodeError, Decoder, put_varint};
use super::reception::{Reception, after, zigzag};
use super::record::Record;

/// Bytes of a batch header.
pub const BATCH_HEADER: usize = 36;

/// Largest length of the records of a batch.
pub const PAYLOAD_MAX: usize = 1 << 20;

const MAGIC: &[u8; 4] = b"GHRB";
/// Versions without and with times.
const WITHOUT_TIMES: u8 = 1;
const WITH_TIMES: u8 = 2;

/// A verified batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch<'a> {
    /// The stream of records to which the batch belongs.
    pub epoch: u64,
    /// Shard of the epoch; each shard has sequence numbers of its own.
    pub shard: u16,
    /// Sequence number of the first record.
    pub first: u64,
    /// Number of records.
    pub count: u32,
    /// The whole batch with its header.
    pub bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Reads the batch at the start of `bytes`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not a batch, or were changed.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, DecodeError> {
        let Some(header) = bytes.get(..BATCH_HEADER) else { return Ok(None) };
        let mut decoder = Decoder::new(header, "batch header");
        if decoder.take(4)? != MAGIC {
            return Err(DecodeError::Undefined("magic of a batch"));
        }
        if !matches!(decoder.u8()?, WITHOUT_TIMES | WITH_TIMES) {
            return Err(DecodeError::Undefined("version of a batch"));
        }
        if decoder.u8()? != 0 {
            return Err(DecodeError::Undefined("flags of a batch"));
        }
        let shard = decoder.u16()?;
        let epoch = decoder.u64()?;
        let first = decoder.u64()?;
        let count = decoder.u32()?;
        let length = decoder.u32()? as usize;
        if length > PAYLOAD_MAX || first.checked_add(u64::from(count)).is_none() {
            return Err(DecodeError::TooLong("batch"));
        }
        let Some(whole) = bytes.get(..BATCH_HEADER + length) else { return Ok(None) };
        if checksum(whole) != decoder.u32()? {
            return Err(DecodeError::Checksum);
        }
        Ok(Some(Self { epoch, shard, first, count, bytes: whole }))
    }

    /// Sequence number after the last record.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.first + self.count as u64
    }

    /// The records with their sequence numbers. Ends after an error.
    pub fn records(
        &self,
    ) -> impl Iterator<Item = Result<(u64, Record<'a>), DecodeError>> + use<'a> {
        self.timed_records().map(|read| read.map(|(sequence, _, record)| (sequence, record)))
    }

    /// The records with their sequence numbers and the times of their reception, if the batch has
    /// them. Ends after an error.
    pub fn timed_records(
        &self,
    ) -> impl Iterator<Item = Result<(u64, Option<Reception>, Record<'a>), DecodeError>> + use<'a>
    {
        let has_times = self.bytes[4] == WITH_TIMES;
        let mut time = None;
        let mut decoder = Decoder::new(&self.bytes[BATCH_HEADER..], "record");
        let (mut sequence, next) = (self.first, self.next());
        let mut has_failed = false;
        std::iter::from_fn(move || {
            if has_failed {
                return None;
            }
            let record = match (sequence < next, decoder.is_empty()) {
                (false, true) => return None,
                (true, false) => read_timed(&mut decoder, has_times, &mut time)
                    .map(|record| (sequence, time, record)),
                (true, true) => Err(DecodeError::Truncated("batch")),
                (false, false) => Err(DecodeError::Trailing("the records of a batch")),
            };
            has_failed = record.is_err();
            sequence += 1;
            Some(record)
        })
    }
}

/// A record, after its time.
fn read_timed<'a>(
    decoder: &mut Decoder<'a>,
    has_times: bool,
    time: &mut Option<Reception>,
) -> Result<Record<'a>, DecodeError> {
    if has_times {
        let before = match *time {
            Some(before) => before,
            None => Reception::read(decoder)?,
        };
        let utc_us = after(before.utc_us, decoder.varint()?);
        *time = Some(Reception { utc_us, ..before });
    }
    Record::read(decoder)
}

/// The batches in an entry of a log.
///
/// Ends after an error: the bytes are not a batch, or end within one.
pub fn batches(mut payload: &[u8]) -> impl Iterator<Item = Result<Batch<'_>, DecodeError>> {
    std::iter::from_fn(move || {
        if payload.is_empty() {
            return None;
        }
        let found = match Batch::read(payload) {
            Ok(Some(batch)) => {
                payload = &payload[batch.bytes.len()..];
                return Some(Ok(batch));
            }
            Ok(None) => DecodeError::Truncated("batch"),
            Err(error) => error,
        };
        payload = &[];
        Some(Err(found))
    })
}

/// Collects records into a batch.
#[derive(Debug)]
pub struct BatchBuilder {
    epoch: u64,
    shard: u16,
    first: u64,
    count: u32,
    bytes: Vec<u8>,
    /// Time of the last record of the batch.
    time: Option<Reception>,
}

impl BatchBuilder {
    /// An empty batch whose first record will have this sequence number.
    #[must_use]
    pub const fn new(epoch: u64, shard: u16, first: u64) -> Self {
        Self { epoch, shard, first, count: 0, bytes: Vec::new(), time: None }
    }

    /// Whether a record of this time can be part of the batch: all records have a time, and the
    /// same state of the clock, or none of them has a time.
    #[must_use]
    pub fn accepts(&self, time: Option<Reception>) -> bool {
        self.is_empty() || self.time.map(|time| time.clock) == time.map(|time| time.clock)
    }

    /// Appends a record without a time and returns its sequence number.
    pub fn push(&mut self, record: &Record<'_>) -> u64 {
        self.push_at(record, None)
    }

    /// Appends a record that was received at this time and returns its sequence number.
    ///
    /// # Panics
    /// When the batch does not [accept](Self::accepts) the time.
    pub fn push_at(&mut self, record: &Record<'_>, time: Option<Reception>) -> u64 {
        assert!(self.accepts(time), "the batch has another state of the clock");
        if self.bytes.is_empty() {
            self.bytes.resize(BATCH_HEADER, 0);
        }
        if let Some(time) = time {
            let before = self.time.unwrap_or_else(|| {
                time.write(&mut self.bytes);
                time
            });
            put_varint(&mut self.bytes, zigzag(before.utc_us, time.utc_us));
            self.time = Some(time);
        }
        record.write(&mut self.bytes);
        self.count += 1;
        self.next() - 1
    }

    /// Sequence number of the record after the last one.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.first + self.count as u64
    }

    /// Bytes of the batch so far, with its header.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends the batch to `bytes` and begins the next one. Without records, nothing is appended.
    pub fn finish(&mut self, bytes: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let start = bytes.len();
        let length = (self.bytes.len() - BATCH_HEADER) as u32;
        bytes.extend_from_slice(MAGIC);
        let version = if self.time.take().is_some() { WITH_TIMES } else { WITHOUT_TIMES };
        bytes.extend_from_slice(&[version, 0]);
        bytes.extend_from_slice(&self.shard.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&self.first.to_le_bytes());
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.bytes[BATCH_HEADER..]);
        let crc = checksum(&bytes[start..]);
        bytes[start + 32..start + BATCH_HEADER].copy_from_slice(&crc.to_le_bytes());
        self.first = self.next();
        self.count = 0;
        self.bytes.clear();
        // An idle shard holds no memory for a burst in the past.
        self.bytes.shrink_to(KEPT_CAPACITY);
    }
}

/// Capacity of a builder that is kept between batches.
const KEPT_CAPACITY: usize = 64 * 1024;

fn checksum(batch: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&batch[..32]), &batch[BATCH_HEADER..])
}
