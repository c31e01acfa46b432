//! The header before the payload, by which the receiver identifies a message and detects
//! corruption.

use std::ops::Range;

use thiserror::Error;

/// Bytes of the header: run, sequence number, CRC-32 (ISO 3309), in network byte order.
pub const HEADER_BYTES: usize = 16;

/// Bytes of the fields of a header.
const RUN: Range<usize> = 0..4;
pub(crate) const SEQUENCE: Range<usize> = 4..12;
const CHECKSUM: Range<usize> = 12..HEADER_BYTES;

/// Identification of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Number of the run: messages of other programs and of earlier runs are not counted.
    pub run: u32,
    /// Sequence number, from 0.
    pub sequence: u64,
}

/// Why received bytes are not an intact message of this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HeaderError {
    /// The bytes belong to another run or another program.
    #[error("a message of another run")]
    Foreign,
    /// The CRC does not match. The sequence number may be wrong as well.
    #[error("a corrupt message, with sequence number {sequence}")]
    Corrupt {
        /// Sequence number as received.
        sequence: u64,
    },
    /// Fewer bytes than a header.
    #[error("a message of {0} B is shorter than its header")]
    Truncated(usize),
}

impl Header {
    /// Writes the header and its CRC, which covers the whole message, over the first bytes of a
    /// message.
    ///
    /// # Panics
    /// The message is shorter than [`HEADER_BYTES`].
    pub fn write(self, message: &mut [u8]) {
        message[RUN].copy_from_slice(&self.run.to_be_bytes());
        message[SEQUENCE].copy_from_slice(&self.sequence.to_be_bytes());
        message[CHECKSUM].fill(0);
        let sum = crc32fast::hash(message);
        message[CHECKSUM].copy_from_slice(&sum.to_be_bytes());
    }

    /// Reads the header of a message of run `run` and checks the CRC.
    ///
    /// # Errors
    /// The message is too short, belongs to another run, or is corrupt.
    pub fn read(message: &[u8], run: u32) -> Result<Self, HeaderError> {
        let Some((header, payload)) = message.split_first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::Truncated(message.len()));
        };
        let number = |range: Range<usize>| {
            header[range].iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
        };
        let sequence = number(SEQUENCE);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&header[..CHECKSUM.start]);
        hasher.update(&[0; 4]);
        hasher.update(payload);
        let is_intact = u64::from(hasher.finalize()) == number(CHECKSUM);
        match (number(RUN) == u64::from(run), is_intact) {
            (true, true) => Ok(Self { run, sequence }),
            (false, true) => Err(HeaderError::Foreign),
            (_, false) => Err(HeaderError::Corrupt { sequence }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_message_is_read_back(run: u32, sequence: u64, payload: Vec<u8>) {
            let mut message = vec![0; HEADER_BYTES];
            message.extend(payload);
            let header = Header { run, sequence };
            header.write(&mut message);
            prop_assert_eq!(Header::read(&message, run), Ok(header));
            prop_assert_eq!(Header::read(&message, !run), Err(HeaderError::Foreign));
        }

        #[test]
        fn every_flipped_bit_is_detected(
            sequence: u64,
            length in 0_usize..100,
            bit: prop::sample::Index,
        ) {
            let mut message = vec![0x5a; HEADER_BYTES + length];
            Header { run: 7, sequence }.write(&mut message);
            let bit = bit.index(8 * message.len());
            message[bit / 8] ^= 1 << (bit % 8);
            let read = Header::read(&message, 7);
            prop_assert!(matches!(read, Err(HeaderError::Corrupt { .. })), "{read:?}");
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>, run: u32) {
            let _ = Header::read(&bytes, run);
        }
    }

    #[test]
    fn a_message_shorter_than_the_header_is_truncated() {
        assert_eq!(Header::read(&[0; 15], 0), Err(HeaderError::Truncated(15)));
    }
}
