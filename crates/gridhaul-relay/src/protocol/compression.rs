//! Compression of batches on a connection: the length of the batch (4 bytes, little-endian), and an
//! LZ4 block.

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};

use super::codec::{DecodeError, Decoder};
use super::frame::FRAME_MAX;

/// The compressed form of a batch; `None` if it is not smaller.
#[must_use]
pub fn compress(batch: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(batch.len()).ok()?;
    let mut bytes = vec![0; LENGTH + get_maximum_output_size(batch.len())];
    bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
    let compressed = compress_into(batch, &mut bytes[LENGTH..]).ok()?;
    bytes.truncate(LENGTH + compressed);
    (bytes.len() < batch.len()).then_some(bytes)
}

/// The batch of a compressed form. A batch above the limit is refused before memory is allocated.
///
/// # Errors
/// The bytes are not a compressed batch.
pub fn decompress(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let mut decoder = Decoder::new(bytes, "compressed batch");
    let length = decoder.u32()? as usize;
    if length > FRAME_MAX {
        return Err(DecodeError::TooLong("compressed batch"));
    }
    let mut batch = vec![0; length];
    match decompress_into(&bytes[LENGTH..], &mut batch) {
        Ok(written) if written == length => Ok(batch),
        _ => Err(DecodeError::Undefined("compressed batch")),
    }
}

/// Bytes of the length.
const LENGTH: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_restored_and_wrong_lengths_refused() {
        let batch = b"voltage 230.1 V; ".repeat(100);
        let bytes = compress(&batch).unwrap();
        assert!(bytes.len() < batch.len() / 10, "{}", bytes.len());
        assert_eq!(decompress(&bytes).unwrap(), batch);
        assert_eq!(compress(b"abcdefgh"), None, "not smaller");
        for length in [0, batch.len() - 1, batch.len() + 1, FRAME_MAX + 1, usize::MAX >> 32] {
            let mut wrong = bytes.clone();
            wrong[..LENGTH].copy_from_slice(&(length as u32).to_le_bytes());
            assert!(decompress(&wrong).is_err(), "{length}");
        }
        assert!(decompress(&bytes[..bytes.len() - 3]).is_err());
        assert!(decompress(&[1]).is_err());
    }
}
