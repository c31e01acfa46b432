//! Files that are replaced completely or not at all.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::interrupt::leftovers;

/// Writes a file under a temporary name and moves it into place, so that an error leaves the old
/// file. Devices and pipes, such as `/dev/stdout`, are written directly.
///
/// # Errors
/// The folder does not exist or cannot be written, or the disk is full.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // While this guard exists, Ctrl-C does not end the program.
    let _leftovers = leftovers();
    // A symbolic link remains, and its target is replaced.
    let target = match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => std::path::absolute(path)?,
        found => found?,
    };
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(&target, bytes);
    }
    let partial = partial(&target)?;
    let written = File::create_new(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        match &old {
            Some(old) => file.set_permissions(old.permissions()),
            None => Ok(()),
        }
    });
    let moved = written.and_then(|()| fs::rename(&partial, &target));
    if moved.is_err() {
        let _ = fs::remove_file(&partial);
    }
    moved
}

/// The temporary name: a hidden file in the same folder, since a file can only be moved within a
/// file system.
fn partial(target: &Path) -> io::Result<PathBuf> {
    let name = target.file_name().ok_or(ErrorKind::InvalidInput)?.to_string_lossy();
    Ok(target.with_file_name(format!(".{name}.partial-{}", std::process::id())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        write(&file, b"first, and longer").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let link = dir.path().join("link.csv");
        symlink("a.csv", &link).unwrap();
        write(&link, b"second").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_reader_keeps_the_complete_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        write(&file, b"first").unwrap();
        let reader = File::open(&file).unwrap();
        write(&file, b"second").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "first");
    }

    #[test]
    fn an_error_leaves_the_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.csv");
        write(&file, b"first").unwrap();
        // The temporary name is taken, as by a process with the same number that was killed.
        fs::create_dir(partial(&file).unwrap()).unwrap();
        assert!(write(&file, b"second").is_err());
        assert_eq!(fs::read(&file).unwrap(), b"first");
        assert!(write(&dir.path().join("none/a.csv"), b"").is_err());
    }

    #[test]
    fn devices_are_written_directly() {
        write(Path::new("/dev/null"), b"text").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(
            write(Path::new("/dev/full"), b"text").unwrap_err().kind(),
            ErrorKind::StorageFull
        );
    }
}
