//! Recorded data of a run, in memory or in a file without a name.

use std::fs::File;
use std::io::{self, Write};
#[cfg(unix)]
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file without a name that the recordings of a command share, so that a sweep of a thousand
/// points needs one open file. Each recording has blocks of its own in it.
#[derive(Debug)]
pub struct RecordingFile {
    #[cfg_attr(not(unix), expect(dead_code, reason = "a browser has no files"))]
    file: File,
    /// Position of the next block.
    end: AtomicU64,
}

/// Recorded data, such as a capture. A file is deleted when the last copy of its recordings is
/// dropped.
#[derive(Debug, Clone)]
pub struct RecordedBytes(Storage);

#[derive(Debug, Clone)]
enum Storage {
    Memory(Vec<u8>),
    /// Positions of the blocks; all but the last have [`BLOCK`] bytes.
    File {
        file: Arc<RecordingFile>,
        blocks: Vec<u64>,
        length: u64,
    },
}

/// Appends recorded data. The first error is reported by [`RecordedBytesWriter::finish`], so that
/// the recording of a packet cannot fail.
#[derive(Debug)]
pub struct RecordedBytesWriter {
    file: Option<Arc<RecordingFile>>,
    blocks: Vec<u64>,
    /// Bytes that are not in the file.
    rest: Vec<u8>,
    error: Option<io::Error>,
}

/// Bytes that are written to the file at once. A recording up to this size stays in memory.
const BLOCK: usize = 1 << 16;

impl RecordingFile {
    /// Takes an empty file.
    #[must_use]
    pub const fn new(file: File) -> Self {
        Self { file, end: AtomicU64::new(0) }
    }

    /// Appends a block. Returns its position.
    fn append(&self, block: &[u8]) -> io::Result<u64> {
        // The counter only assigns positions, so that threads write to different places of the file
        // without a lock. No other memory depends on it.
        let position = self.end.fetch_add(block.len() as u64, Ordering::Relaxed);
        self.write_at(block, position)?;
        Ok(position)
    }

    #[cfg(unix)]
    fn write_at(&self, block: &[u8], position: u64) -> io::Result<()> {
        self.file.write_all_at(block, position)
    }

    #[cfg(unix)]
    fn read_at(&self, block: &mut [u8], position: u64) -> io::Result<()> {
        self.file.read_exact_at(block, position)
    }

    /// A browser has no files: recordings stay in memory.
    #[cfg(not(unix))]
    fn write_at(&self, _block: &[u8], _position: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(unix))]
    fn read_at(&self, _block: &mut [u8], _position: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl RecordedBytes {
    /// Number of bytes.
    #[must_use]
    pub const fn len(&self) -> u64 {
        match &self.0 {
            Storage::Memory(bytes) => bytes.len() as u64,
            Storage::File { length, .. } => *length,
        }
    }

    /// Whether nothing was recorded.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies all bytes.
    ///
    /// # Errors
    /// The file cannot be read, or the bytes cannot be written.
    pub fn copy_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut chunk = vec![0; BLOCK.min(self.len() as usize)];
        let mut position = 0;
        while position < self.len() {
            let length = chunk.len().min((self.len() - position) as usize);
            self.read_at(position, &mut chunk[..length])?;
            out.write_all(&chunk[..length])?;
            position += length as u64;
        }
        Ok(())
    }

    /// Fills a buffer with the bytes from a position on.
    ///
    /// # Errors
    /// The file cannot be read, or has fewer bytes.
    pub fn read_at(&self, mut position: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        match &self.0 {
            Storage::File { file, blocks, length } => {
                if position + buffer.len() as u64 > *length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                while !buffer.is_empty() {
                    let (block, within) = (position / BLOCK as u64, position % BLOCK as u64);
                    let count = buffer.len().min(BLOCK - within as usize);
                    let (part, rest) = buffer.split_at_mut(count);
                    file.read_at(part, blocks[block as usize] + within)?;
                    position += count as u64;
                    buffer = rest;
                }
                Ok(())
            }
            Storage::Memory(bytes) => {
                let start = position as usize;
                let part = bytes.get(start..).and_then(|rest| rest.get(..buffer.len()));
                let part = part.ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(part);
                Ok(())
            }
        }
    }
}

impl Default for RecordedBytes {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl From<Vec<u8>> for RecordedBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Storage::Memory(bytes))
    }
}

/// Equal bytes; the storage does not matter. A file that cannot be read equals no other one.
impl PartialEq for RecordedBytes {
    fn eq(&self, other: &Self) -> bool {
        let bytes = |one: &Self| {
            let mut bytes = Vec::new();
            one.copy_to(&mut bytes).map(|()| bytes)
        };
        self.len() == other.len()
            && matches!((bytes(self), bytes(other)), (Ok(own), Ok(other)) if own == other)
    }
}

impl RecordedBytesWriter {
    /// Appends to a file, or without a file to memory.
    #[must_use]
    pub const fn new(file: Option<Arc<RecordingFile>>) -> Self {
        Self { file, blocks: Vec::new(), rest: Vec::new(), error: None }
    }

    /// Appends bytes; after an error nothing is appended.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) {
        self.append_with(|buffer| buffer.extend_from_slice(bytes));
    }

    /// Appends the bytes that `write` adds at the end of a buffer, whose other bytes are those of
    /// earlier calls; after an error nothing is appended.
    #[inline]
    pub fn append_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if self.error.is_some() {
            return;
        }
        write(&mut self.rest);
        if self.rest.len() >= BLOCK {
            self.store_blocks();
        }
    }

    /// Moves complete blocks to the file.
    #[inline(never)]
    fn store_blocks(&mut self) {
        let Some(file) = &self.file else { return };
        let complete = self.rest.len() / BLOCK * BLOCK;
        for block in self.rest[..complete].chunks(BLOCK) {
            match file.append(block) {
                Ok(position) => self.blocks.push(position),
                // The first error has the cause; later ones follow from it.
                Err(error) => self.error = self.error.take().or(Some(error)),
            }
        }
        self.rest.drain(..complete);
    }

    /// All bytes.
    ///
    /// # Errors
    /// The file could not be written, such as on a full disk.
    pub fn finish(self) -> io::Result<RecordedBytes> {
        let Self { file, mut blocks, rest, error } = self;
        if let Some(error) = error {
            return Err(error);
        }
        let Some(file) = file.filter(|_| !blocks.is_empty()) else { return Ok(rest.into()) };
        let length = (blocks.len() * BLOCK + rest.len()) as u64;
        if !rest.is_empty() {
            blocks.push(file.append(&rest)?);
        }
        Ok(RecordedBytes(Storage::File { file, blocks, length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn temporary() -> Arc<RecordingFile> {
        Arc::new(RecordingFile::new(tempfile::tempfile().unwrap()))
    }

    fn recorded(file: Option<Arc<RecordingFile>>, parts: &[&[u8]]) -> RecordedBytes {
        let mut writer = RecordedBytesWriter::new(file);
        parts.iter().for_each(|part| writer.append(part));
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_returns_the_bytes_that_memory_returns() {
        let long = vec![7; BLOCK + 1];
        let parts: [&[u8]; 3] = [b"one", &long, b"two"];
        let in_memory = recorded(None, &parts);
        let in_file = recorded(Some(temporary()), &parts);
        let mut bytes = Vec::new();
        in_file.copy_to(&mut bytes).unwrap();
        assert_eq!((bytes.len() as u64, &bytes), (in_file.len(), &parts.concat()));
        assert_eq!(in_file, in_memory);
        assert_eq!(in_file.clone(), in_file);
        assert_ne!(in_file, recorded(None, &[b"one"]));
        let mut end = [0; 3];
        in_file.read_at(in_file.len() - 3, &mut end).unwrap();
        assert_eq!(&end, b"two");
        assert!(in_memory.read_at(in_memory.len() - 2, &mut end).is_err());
    }

    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut writer = RecordedBytesWriter::new(Some(Arc::new(RecordingFile::new(full))));
        writer.append(&vec![0; 2 * BLOCK]);
        writer.append(b"more");
        let error = writer.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn recordings_that_share_a_file_keep_their_own_bytes() {
        let file = temporary();
        let mut writers = [0, 1].map(|_| RecordedBytesWriter::new(Some(file.clone())));
        for round in 0..5_u8 {
            for (number, writer) in writers.iter_mut().enumerate() {
                writer.append(&vec![16 * round + number as u8; BLOCK / 2 + 3 + number]);
            }
        }
        for (number, writer) in writers.into_iter().enumerate() {
            let part = |round: u8| vec![16 * round + number as u8; BLOCK / 2 + 3 + number];
            assert_eq!(writer.finish().unwrap(), (0..5).flat_map(part).collect::<Vec<_>>().into());
        }
    }

    #[test]
    fn a_small_recording_needs_no_file() {
        let file = temporary();
        assert_eq!(recorded(Some(file.clone()), &[&[1; BLOCK - 1]]).len(), BLOCK as u64 - 1);
        assert_eq!(file.file.metadata().unwrap().len(), 0);
    }
}
