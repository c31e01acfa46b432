//! A file whose lock excludes a second process (flock(2)).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// A file that is locked as long as this value exists. Programs that other threads start have the
/// file until they begin, and would keep the lock of a file that is only closed.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl FileLock {
    /// Locks a file, which is created if it is missing; its folder must exist. `None` if another
    /// process has the lock.
    ///
    /// # Errors
    /// The file cannot be opened for writing, or its file system has no locks.
    pub(crate) fn try_new(path: &Path) -> io::Result<Option<Self>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // An error leaves the end of the lock to the end of the file.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_locked_once_until_the_lock_ends() {
        let path = std::env::temp_dir().join(format!("gridhaul-lock-{}", std::process::id()));
        let lock = FileLock::try_new(&path).unwrap();
        assert!(lock.is_some());
        assert!(FileLock::try_new(&path).unwrap().is_none());
        drop(lock);
        assert!(FileLock::try_new(&path).unwrap().is_some());
        std::fs::remove_file(&path).unwrap();
    }
}
