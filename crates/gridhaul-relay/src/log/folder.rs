//! A folder of the file system as storage of a log.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FlockOperation, flock};

use super::{LogError, Storage, StorageFile};
use crate::file_lock::FileLock;

/// Name of the file whose lock excludes a second daemon.
const LOCK: &str = "lock";

/// A folder of the file system, locked for one process. Clones share the lock.
#[derive(Debug, Clone)]
pub struct Folder {
    path: PathBuf,
    /// Ends with the last clone.
    _lock: Arc<FileLock>,
}

impl Folder {
    /// Opens a folder and locks it; a missing folder is created.
    ///
    /// # Errors
    /// [`LogError::Locked`] if another process uses the folder; the folder cannot be created or
    /// written.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let failed = |operation: &'static str| {
            move |source| LogError::Storage { operation, name: path.display().to_string(), source }
        };
        fs::create_dir_all(path).map_err(failed("creating the folder"))?;
        let lock = FileLock::try_new(&path.join(LOCK));
        let lock = lock.map_err(failed("opening the lock in the folder"))?;
        let lock = lock.ok_or_else(|| LogError::Locked { folder: path.display().to_string() })?;
        Ok(Self { path: path.to_owned(), _lock: Arc::new(lock) })
    }

    /// Whether a process uses the folder.
    #[must_use]
    pub fn is_locked(path: &Path) -> bool {
        let lock = File::open(path.join(LOCK));
        lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err())
    }
}

impl Storage for Folder {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        let names = fs::read_dir(&self.path)?
            .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
            .collect::<io::Result<Vec<_>>>()?;
        Ok(names.into_iter().filter(|name| name != LOCK).collect())
    }

    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        options.open(self.path.join(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(self.path.join(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn is_named(&self, name: &str, file: &File) -> io::Result<bool> {
        let named = match fs::symlink_metadata(self.path.join(name)) {
            Ok(named) => named,
            Err(error) if is_absent(&error) => return Ok(false),
            Err(error) => return Err(error),
        };
        let open = file.metadata()?;
        Ok((named.dev(), named.ino()) == (open.dev(), open.ino()))
    }

    fn sync_names(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

/// Whether a file, or a folder on its path, does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl StorageFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn resize(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
