//! Errors of a record log.

use std::io;

use rustix::io::Errno;
use thiserror::Error;

/// A record log that cannot be used.
#[derive(Debug, Error)]
pub enum LogError {
    /// A file operation has failed.
    #[error("record log: {operation} {name}: {source}{}", disk_remedy(source, "log.folder"))]
    Storage {
        /// Operation that failed.
        operation: &'static str,
        /// File or folder.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// Another process uses the log.
    #[error(
        "record log: {folder} is in use by another relay\n  \
         help: stop the other process, or choose another `log.folder`"
    )]
    Locked {
        /// The folder.
        folder: String,
    },
    /// A segment was written by another version.
    #[error(
        "record log: {name} has format version {found}; this relay reads version {expected}\n  \
         help: start the {} relay that wrote the log, deliver its records (`gridhaul relay \
         drain`), and stop it; then move the \
         folder of the log aside and start this relay",
        if found > expected { "newer" } else { "older" }
    )]
    Version {
        /// File name of the segment.
        name: String,
        /// Version in the file.
        found: u16,
        /// Version of this program.
        expected: u16,
    },
    /// An earlier synchronisation has failed: which data is durable is unknown until the log is
    /// opened again.
    #[error(
        "record log: an earlier fdatasync failed, so the log accepts no more data\n  \
             help: check the disk, then restart the relay; it verifies the log"
    )]
    SyncFailed,
    /// Another program has removed or replaced a segment while the log was in use.
    #[error(
        "record log: {name} was removed or replaced while the relay runs: {} bytes at position \
         {position} are lost, unless they \
         were delivered before; the relay stops, so that it confirms nothing that is not stored\n  \
         help: find out what removes files in `log.folder`, and start the relay again; \
         `gridhaul-relay log verify` names the gap",
        end - position
    )]
    Removed {
        /// File name of the segment.
        name: String,
        /// Position of its first entry.
        position: u64,
        /// Position of its end.
        end: u64,
    },
    /// The log belongs to another stream of records.
    #[error("record log: {name} belongs to epoch {found:016x}, the log to {expected:016x}")]
    Epoch {
        /// File name of the segment.
        name: String,
        /// Epoch in the file.
        found: u64,
        /// Epoch of the log.
        expected: u64,
    },
}

/// The remedy for an error of a file that a key of the configuration names.
pub(crate) fn disk_remedy(error: &io::Error, key: &str) -> String {
    let text = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "free space on the file system of",
        Some(Errno::ROFS) => "mount the file system for writing, or change",
        Some(Errno::ACCESS | Errno::PERM) => "permit the user of the relay to write to",
        _ => return String::new(),
    };
    format!("\n  help: {text} `{key}`")
}

impl LogError {
    pub(super) fn storage(
        operation: &'static str,
        name: &str,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let name = name.to_owned();
        move |source| Self::Storage { operation, name, source }
    }

    /// Whether the disk is full or no file descriptor is left: the operation may be repeated later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Storage { source, .. } => matches!(
                source.raw_os_error().map(Errno::from_raw_os_error),
                Some(Errno::NOSPC | Errno::DQUOT | Errno::MFILE | Errno::NFILE)
            ),
            _ => false,
        }
    }

    /// Whether an entry is damaged or missing: reading it again does not help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Storage { source, .. } => source.kind() == io::ErrorKind::InvalidData,
            Self::Removed { .. } => true,
            _ => false,
        }
    }
}
