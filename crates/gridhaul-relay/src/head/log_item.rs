//! Content of the head's log: batches as they were received, and what the head has decided.

use crate::protocol::{Batch, DecodeError, Decoder, put_bytes, put_text, put_varint};

/// Part of an entry of the head's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A collector has begun an epoch.
    Source {
        /// Number of the epoch.
        epoch: u64,
        /// Name of the collector.
        collector: &'a str,
    },
    /// An epoch is superseded by a newer one of the same collector: its meters are reset.
    End {
        /// Number of the epoch.
        epoch: u64,
    },
    /// Records of a shard continue with another sequence number.
    Jump {
        /// Number of the epoch.
        epoch: u64,
        /// Number of the shard.
        shard: u16,
        /// Sequence number of the next record.
        next: u64,
    },
    /// Records.
    Batch(Batch<'a>),
}

const SOURCE: u8 = 1;
const END: u8 = 2;
const JUMP: u8 = 3;
const BATCH: u8 = 4;

/// Largest length of the name of a collector.
pub(super) const NAME_MAX: usize = 255;

impl<'a> Item<'a> {
    /// Appends the item.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        match *self {
            Self::Source { epoch, collector } => {
                bytes.push(SOURCE);
                bytes.extend_from_slice(&epoch.to_le_bytes());
                put_text(bytes, collector, NAME_MAX);
            }
            Self::End { epoch } => {
                bytes.push(END);
                bytes.extend_from_slice(&epoch.to_le_bytes());
            }
            Self::Jump { epoch, shard, next } => {
                bytes.push(JUMP);
                bytes.extend_from_slice(&epoch.to_le_bytes());
                bytes.extend_from_slice(&shard.to_le_bytes());
                put_varint(bytes, next);
            }
            Self::Batch(batch) => {
                bytes.push(BATCH);
                put_bytes(bytes, batch.bytes);
            }
        }
    }

    fn read(decoder: &mut Decoder<'a>) -> Result<Self, DecodeError> {
        Ok(match decoder.u8()? {
            SOURCE => Self::Source { epoch: decoder.u64()?, collector: decoder.text(NAME_MAX)? },
            END => Self::End { epoch: decoder.u64()? },
            JUMP => {
                let (epoch, shard) = (decoder.u64()?, decoder.u16()?);
                Self::Jump { epoch, shard, next: decoder.varint()? }
            }
            BATCH => {
                let bytes = decoder.bytes(crate::protocol::FRAME_MAX)?;
                Self::Batch(Batch::read(bytes)?.ok_or(DecodeError::Truncated("batch"))?)
            }
            _ => return Err(DecodeError::Undefined("kind of an item")),
        })
    }
}

/// The items of an entry. Ends after an error.
pub fn items(payload: &[u8]) -> impl Iterator<Item = Result<Item<'_>, DecodeError>> {
    let mut decoder = Decoder::new(payload, "item");
    let mut has_failed = false;
    std::iter::from_fn(move || {
        if has_failed || decoder.is_empty() {
            return None;
        }
        let item = Item::read(&mut decoder);
        has_failed = item.is_err();
        Some(item)
    })
}
