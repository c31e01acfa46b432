//! The file operations of a record log, so that tests can replace the disk by a model.

use std::fmt;
use std::io;

/// A folder that holds the files of one log.
pub trait Storage: fmt::Debug {
    /// An open file.
    type File: StorageFile;

    /// Names of all files.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates a file, which must not exist.
    ///
    /// # Errors
    /// The file exists, or the disk is full.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// There is no such file, or access is denied.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Removes a file.
    ///
    /// # Errors
    /// There is no such file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file; a file with the new name is replaced.
    ///
    /// # Errors
    /// There is no such file.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Whether a name still refers to a file that was opened or created with it.
    ///
    /// # Errors
    /// The disk has failed.
    fn is_named(&self, name: &str, file: &Self::File) -> io::Result<bool>;

    /// Makes the names of all files durable.
    ///
    /// # Errors
    /// The disk has failed.
    fn sync_names(&self) -> io::Result<()>;
}

/// An open file of a [`Storage`].
pub trait StorageFile: fmt::Debug {
    /// Reads at most `buffer.len()` bytes from an offset; 0 at the end of the file.
    ///
    /// # Errors
    /// The disk has failed.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// The disk is full or has failed; some of the bytes may have been written.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes all written data durable.
    ///
    /// # Errors
    /// The disk has failed. Which data is durable is then unknown, and another call cannot tell:
    /// the kernel may have discarded it.
    fn sync(&self) -> io::Result<()>;

    /// Cuts the file to a length, or extends it by zeros.
    ///
    /// # Errors
    /// The disk has failed.
    fn resize(&self, length: u64) -> io::Result<()>;

    /// Length of the file in bytes.
    ///
    /// # Errors
    /// The disk has failed.
    fn length(&self) -> io::Result<u64>;
}
