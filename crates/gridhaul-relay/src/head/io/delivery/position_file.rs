//! The position up to which a head has delivered its log, in a file in the folder of the log.
//!
//! The file is replaced about once per second. After a crash, records that were delivered since
//! then are delivered again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridhaul_scenario::units::{Duration, Instant};

use super::delivery_log::DeliveryLog;
use super::status::DeliveryStatus;
use crate::runtime::poll::Waker;
use crate::runtime::{Level, report};

/// Name of the file in the folder of the log.
const NAME: &str = "delivered";

/// Interval in which the file is replaced.
const INTERVAL: Duration = Duration::from_secs(1);

/// The file, and the report of its position to the thread of the connections.
#[derive(Debug)]
pub(crate) struct PositionFile {
    path: PathBuf,
    /// Identifies the log.
    epoch: u64,
    saved: u64,
    /// There was no file for this log.
    is_new: bool,
    next_save: Instant,
    is_failure_reported: bool,
    progress: DeliveryStatus,
}

impl PositionFile {
    /// Reads the file. Without one, or with that of another log, delivery begins with the log. A
    /// position before the log states that records are lost; one after its end is replaced at once,
    /// because other records will follow there.
    pub(crate) fn open(folder: &Path, log: &DeliveryLog, head: Arc<Waker>) -> Self {
        let (path, epoch, next_save) = (folder.join(NAME), log.epoch, Instant::ZERO);
        let found = read(&path, epoch);
        let is_new = found.is_none();
        let found = found.unwrap_or(log.range.start);
        let progress = DeliveryStatus::new(found.clamp(log.range.start, log.end()), head);
        let is_failure_reported = false;
        let mut position_file =
            Self { path, epoch, saved: found, is_new, next_save, is_failure_reported, progress };
        if found > log.end() {
            position_file.save(log.end());
        }
        position_file
    }

    /// Whether no position was saved for this log.
    pub(crate) const fn is_new(&self) -> bool {
        self.is_new
    }

    /// The position in the file.
    pub(crate) const fn position(&self) -> u64 {
        self.saved
    }

    /// The report of the position to the thread of the connections.
    pub(crate) fn progress(&self) -> DeliveryStatus {
        self.progress.clone()
    }

    /// Notes a position, and saves it if it is time.
    pub(crate) fn note(&mut self, now: Instant, position: u64) {
        self.progress.set_delivered(position);
        if now >= self.next_save {
            self.next_save = now + INTERVAL;
            self.save(position);
        }
    }

    /// When [`Self::note`] must be called again with this position.
    pub(crate) fn deadline(&self, position: u64) -> Instant {
        if position == self.saved { Instant::NEVER } else { self.next_save }
    }

    /// Saves a position. An error is reported once, until a position is saved: without the file,
    /// records are delivered again.
    pub(crate) fn save(&mut self, position: u64) {
        let saved = self.replace(position);
        let was_reported = std::mem::replace(&mut self.is_failure_reported, saved.is_err());
        if let Err(error) = saved
            && !was_reported
        {
            report(Level::Error, &format!("saving the delivered position: {error}"));
        }
    }

    /// Replaces the file, if the position has changed.
    fn replace(&mut self, position: u64) -> io::Result<()> {
        if position == self.saved {
            return Ok(());
        }
        let new = self.path.with_extension("new");
        let mut file = File::create(&new)?;
        writeln!(file, "{:016x} {position}", self.epoch)?;
        file.sync_data()?;
        fs::rename(&new, &self.path)?;
        self.saved = position;
        self.progress.set_saved(position);
        Ok(())
    }
}

/// The position in the file of a log with this epoch.
fn read(path: &Path, epoch: u64) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let (of, position) = text.trim_end().split_once(' ')?;
    let position = position.parse().ok()?;
    (u64::from_str_radix(of, 16).ok()? == epoch).then_some(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Durable, DurableRange};

    #[test]
    fn a_position_is_saved_once_per_second_and_when_delivery_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let saved = || read(&path, 7).unwrap();
        let progress = DeliveryStatus::new(100, Arc::new(Waker::new().unwrap()));
        let next_save = Instant::ZERO;
        let (epoch, saved_position, is_new) = (7, 100, true);
        let mut position_file = PositionFile {
            path: path.clone(),
            epoch,
            saved: saved_position,
            is_new,
            next_save,
            is_failure_reported: false,
            progress,
        };
        position_file.note(Instant::ZERO, 400);
        position_file.note(Instant::ZERO, 500);
        assert_eq!((position_file.progress().delivered().unwrap(), saved()), (500, 400));
        let next = position_file.deadline(500);
        assert_eq!(next, Instant::ZERO + INTERVAL);
        position_file.note(next, 500);
        assert_eq!((position_file.deadline(500), saved()), (Instant::NEVER, 500));
        position_file.save(600);
        assert_eq!((position_file.position(), saved()), (600, 600));
    }

    #[test]
    fn a_position_of_another_log_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        assert_eq!(read(&path, 7), None, "no file");
        fs::write(&path, "0000000000000007 500\n").unwrap();
        assert_eq!((read(&path, 7), read(&path, 8)), (Some(500), None));
        fs::write(&path, "garbage").unwrap();
        assert_eq!(read(&path, 7), None);
    }

    #[test]
    fn a_position_outside_of_the_log_is_a_loss_or_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let storage = crate::log::Folder::open(folder.path()).unwrap();
        let waker = || Arc::new(Waker::new().unwrap());
        let range = DurableRange { start: 400, end: Durable::assumed(900) };
        let log = DeliveryLog { storage, epoch: 7, snapshot: Vec::new(), range };
        fs::write(&path, "0000000000000007 300\n").unwrap();
        let position_file = PositionFile::open(folder.path(), &log, waker());
        assert_eq!(position_file.position(), 300, "100 bytes are missing");
        assert_eq!(position_file.progress().delivered().unwrap(), 400);
        fs::write(&path, "0000000000000007 1000\n").unwrap();
        let position_file = PositionFile::open(folder.path(), &log, waker());
        // Records that are appended later must not count as delivered.
        assert_eq!((position_file.position(), read(&path, 7)), (900, Some(900)));
    }
}
