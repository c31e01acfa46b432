//! Lock of a results folder: one process at a time writes to it.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// The lock of a results folder: a hidden file next to the folder, locked by the kernel. The kernel
/// releases the lock when its process ends, even if it is killed, so that no stale lock remains.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    /// Holds the lock while it is open. None where the file system has no locks.
    _file: Option<File>,
}

impl Lock {
    /// Takes the lock of a folder whose parent exists.
    ///
    /// # Errors
    /// Another process holds the lock: the message names it.
    pub(crate) fn take(target: &Path) -> anyhow::Result<Self> {
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let path = target.with_file_name(format!(".{name}.lock"));
        loop {
            let cannot = || format!("cannot lock {}: {}", target.display(), path.display());
            let options =
                File::options().create(true).truncate(false).read(true).write(true).clone();
            let mut file = options.open(&path).with_context(cannot)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => bail!(held_by_other(target, &mut file)),
                Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => {
                    return Ok(Self { path, _file: None });
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(cannot),
            }
            // The previous holder may have removed the file after it was opened here.
            if is_at(&file, &path) {
                write_owner(&mut file).with_context(cannot)?;
                return Ok(Self { path, _file: Some(file) });
            }
        }
    }

    /// Path of the lock file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The file is removed while it is locked, so that a process that has opened it detects the
        // removal.
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the path still refers to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => identity(own) == identity(there),
        _ => false,
    }
}

/// Writes the process and the command that hold the lock into the file.
fn write_owner(file: &mut File) -> io::Result<()> {
    let command: Vec<_> = std::env::args().collect();
    file.set_len(0)?;
    writeln!(file, "{}\n{}", std::process::id(), command.join(" "))
}

fn held_by_other(target: &Path, file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.take(4096).read_to_string(&mut text);
    let mut lines = text.lines();
    let holder = match (lines.next(), lines.next()) {
        (Some(process), Some(command)) => format!("process {process} (`{command}`)"),
        _ => "another process".to_owned(),
    };
    format!(
        "{}: {holder} is writing its results into this folder\n  \
         help: wait until it has finished, or choose another folder with --out",
        target.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_rejected_with_the_name_of_the_holder() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("run");
        let first = Lock::take(&target).unwrap();
        let error = Lock::take(&target).unwrap_err().to_string();
        let process = format!("process {} ", std::process::id());
        assert!(error.contains(&process) && error.contains("--out"), "{error}");
        Lock::take(&dir.path().join("other")).unwrap();
        drop(first);
        Lock::take(&target).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn the_lock_file_of_a_killed_process_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".run.lock"), "1\ngridhaul run\n").unwrap();
        Lock::take(&dir.path().join("run")).unwrap();
    }
}
