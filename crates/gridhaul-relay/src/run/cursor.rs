//! The position up to which a head has delivered its log, in a file beside the log.
//!
//! The file is replaced about once per second. After a crash, records that were delivered since then are delivered again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Name of the file in the folder of the log.
const NAME: &str = "delivered";

/// The file.
#[derive(Debug)]
pub(super) struct Cursor {
    path: PathBuf,
    /// Identifies the log.
    epoch: u64,
    saved: u64,
}

impl Cursor {
    /// Reads the file. Without one, or with that of another log, delivery begins with the log.
    pub(super) fn open(folder: &Path, epoch: u64, (start, end): (u64, u64)) -> Self {
        let path = folder.join(NAME);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let read = || {
            let (of, position) = text.trim_end().split_once(' ')?;
            let position: u64 = position.parse().ok()?;
            (u64::from_str_radix(of, 16).ok()? == epoch).then_some(position)
        };
        let saved = read().filter(|position| (start..=end).contains(position)).unwrap_or(start);
        Self { path, epoch, saved }
    }

    /// The position in the file.
    pub(super) const fn position(&self) -> u64 {
        self.saved
    }

    /// Replaces the file, if the position has changed.
    pub(super) fn save(&mut self, position: u64) -> io::Result<()> {
        if position == self.saved {
            return Ok(());
        }
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        writeln!(file, "{:016x} {position}", self.epoch)?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        self.saved = position;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_of_another_log_or_outside_of_it_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let mut cursor = Cursor::open(folder.path(), 7, (100, 900));
        assert_eq!(cursor.position(), 100);
        cursor.save(500).unwrap();
        assert_eq!(Cursor::open(folder.path(), 7, (100, 900)).position(), 500);
        assert_eq!(Cursor::open(folder.path(), 8, (100, 900)).position(), 100, "another log");
        assert_eq!(Cursor::open(folder.path(), 7, (600, 900)).position(), 600, "trimmed");
        assert_eq!(Cursor::open(folder.path(), 7, (0, 400)).position(), 0, "the log was damaged");
        fs::write(folder.path().join(NAME), "0000000000000007 5").unwrap();
        assert_eq!(Cursor::open(folder.path(), 7, (1, 900)).position(), 5);
        fs::write(folder.path().join(NAME), "garbage").unwrap();
        assert_eq!(Cursor::open(folder.path(), 7, (1, 900)).position(), 1);
    }
}
