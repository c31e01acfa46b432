//! Recorded data of a run, in memory or in a file without a name.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Recorded data, such as a capture. A file is deleted when the last copy of this value is dropped.
#[derive(Debug, Clone)]
pub struct RecordedBytes(Storage);

#[derive(Debug, Clone)]
enum Storage {
    Memory(Vec<u8>),
    File { file: Arc<File>, length: u64 },
}

/// Appends recorded data. The first error is reported by [`RecordedBytesWriter::finish`], so that the
/// recording of a packet cannot fail.
#[derive(Debug)]
pub struct RecordedBytesWriter {
    target: Target,
    length: u64,
    error: Option<io::Error>,
}

#[derive(Debug)]
enum Target {
    Memory(Vec<u8>),
    File(BufWriter<File>),
}

/// Bytes that are read from a file at once.
const CHUNK: usize = 1 << 16;

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
        let mut chunk = vec![0; CHUNK.min(self.len() as usize)];
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
    pub fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<()> {
        match &self.0 {
            Storage::File { file, .. } => file.read_exact_at(buffer, position),
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
    /// Appends to an empty file, or without a file to memory.
    #[must_use]
    pub fn new(file: Option<File>) -> Self {
        let target = match file {
            Some(file) => Target::File(BufWriter::with_capacity(CHUNK, file)),
            None => Target::Memory(Vec::new()),
        };
        Self { target, length: 0, error: None }
    }

    /// Appends bytes; after an error nothing is appended.
    pub fn append(&mut self, bytes: &[u8]) {
        if self.error.is_some() {
            return;
        }
        match &mut self.target {
            Target::Memory(all) => all.extend_from_slice(bytes),
            Target::File(file) => self.error = file.write_all(bytes).err(),
        }
        self.length += bytes.len() as u64;
    }

    /// All bytes.
    ///
    /// # Errors
    /// The file could not be written, such as on a full disk.
    pub fn finish(self) -> io::Result<RecordedBytes> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(RecordedBytes(match self.target {
            Target::Memory(bytes) => Storage::Memory(bytes),
            Target::File(file) => {
                let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                Storage::File { file: Arc::new(file), length: self.length }
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(file: Option<File>, parts: &[&[u8]]) -> RecordedBytes {
        let mut writer = RecordedBytesWriter::new(file);
        parts.iter().for_each(|part| writer.append(part));
        writer.finish().unwrap()
    }

    #[test]
    fn a_file_returns_the_bytes_that_memory_returns() {
        let long = vec![7; CHUNK + 1];
        let parts: [&[u8]; 3] = [b"one", &long, b"two"];
        let in_memory = recorded(None, &parts);
        let in_file = recorded(Some(tempfile::tempfile().unwrap()), &parts);
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
        let mut writer = RecordedBytesWriter::new(Some(full));
        writer.append(&vec![0; 2 * CHUNK]);
        writer.append(b"more");
        let error = writer.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
