//! The thread that delivers the records of a head to a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time;

use gridhaul_linux::Clock;
use gridhaul_scenario::relay::FileRotation;
use gridhaul_scenario::units::{Duration, Instant};

use super::delivery_log::DeliveryLog;
use super::json_lines::{JsonLines, Replaced, SinkError};
use super::position_file::PositionFile;
use super::status::DeliveryStatus;
use crate::head::Deliveries;
use crate::log::{Durable, Folder};
use crate::runtime::poll::Waker;
use crate::runtime::{Level, RunError, report};

/// Longest time between a line and the synchronisation of the file.
const SYNC_INTERVAL: Duration = Duration::from_millis(200);

/// Longest time for which the thread waits for further records.
const IDLE: time::Duration = time::Duration::from_secs(3_600);

/// Bytes of lines after which they are written.
const WRITE_SIZE: usize = 256 * 1024;

/// Bytes of lines after which the file is synchronised: they are in memory until then, because the
/// file may be removed.
const UNCONFIRMED_MAX: usize = 4 * 1024 * 1024;

/// The delivering thread.
#[derive(Debug)]
pub(crate) struct FileDelivery {
    commands: Sender<Command>,
    progress: DeliveryStatus,
}

#[derive(Debug)]
enum Command {
    /// Records up to this position of the log are durable.
    DurableEnd(Durable<u64>),
    /// The file may have been renamed.
    Reopen,
}

impl FileDelivery {
    /// Continues at the position that was saved, or after the last line of the file if its record
    /// is later.
    pub(crate) fn start(
        path: &Path,
        rotation: Option<FileRotation>,
        log_folder: &Path,
        log: DeliveryLog,
        waker: Arc<Waker>,
    ) -> Result<Self, RunError> {
        let lines = JsonLines::open(path)?;
        let (commands, received) = channel();
        let position_file = PositionFile::open(log_folder, &log, waker);
        let progress = position_file.progress();
        let delivery = Self { commands, progress: progress.clone() };
        let (name, clock) = (path.display().to_string(), Clock::starts_in(Duration::ZERO));
        thread::spawn(move || {
            let worker_progress = progress.clone();
            let (confirmed, is_rotation_reported) = (position_file.position(), false);
            let mut worker = Worker {
                name,
                log,
                lines,
                rotation,
                position_file,
                progress: worker_progress,
                clock,
                confirmed,
                is_rotation_reported,
            };
            progress.end(worker.run(&received));
        });
        Ok(delivery)
    }

    /// Records up to this position of the log are durable.
    pub(crate) fn deliver(&self, durable_end: Durable<u64>) {
        // If the thread has ended, its failure is reported.
        let _ = self.commands.send(Command::DurableEnd(durable_end));
    }

    /// The file may have been renamed: if so, another one is begun.
    pub(crate) fn reopen(&self) {
        let _ = self.commands.send(Command::Reopen);
    }

    pub(crate) const fn progress(&self) -> &DeliveryStatus {
        &self.progress
    }
}

struct Worker {
    /// Name of the file, for messages.
    name: String,
    log: DeliveryLog,
    lines: JsonLines,
    rotation: Option<FileRotation>,
    position_file: PositionFile,
    progress: DeliveryStatus,
    clock: Clock,
    /// Position up to which the lines are durable in a file that has a name.
    confirmed: u64,
    is_rotation_reported: bool,
}

impl Worker {
    fn run(&mut self, commands: &Receiver<Command>) -> Result<(), RunError> {
        let mut deliveries = self.resume()?;
        let mut durable_end = self.log.range.end;
        // What was written before the restart may not be durable.
        let mut sync_at = Some(self.clock.now() + SYNC_INTERVAL);
        loop {
            while deliveries.next(durable_end.position(), |delivery| self.lines.push(&delivery))? {
                sync_at = sync_at.or_else(|| Some(self.clock.now() + SYNC_INTERVAL));
                if self.lines.buffered() > WRITE_SIZE {
                    self.write();
                }
                if self.lines.unconfirmed() > UNCONFIRMED_MAX {
                    self.confirm(deliveries.position())?;
                }
            }
            self.write();
            if sync_at.is_some_and(|at| at <= self.clock.now()) {
                sync_at = None;
                self.confirm(deliveries.position())?;
            }
            self.position_file.note(self.clock.now(), self.confirmed);
            let wake_at =
                sync_at.unwrap_or(Instant::NEVER).min(self.position_file.deadline(self.confirmed));
            let mut command = match commands.recv_timeout(self.clock.until(wake_at).min(IDLE)) {
                Ok(command) => Some(command),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => {
                    self.confirm(deliveries.position())?;
                    self.position_file.save(self.confirmed);
                    return Ok(());
                }
            };
            while let Some(next) = command {
                match next {
                    Command::DurableEnd(end) => durable_end = end,
                    Command::Reopen => sync_at = Some(self.clock.now()),
                }
                command = commands.try_recv().ok();
            }
        }
    }

    /// Deliveries from the saved position on, or after the last record of the file if it is later:
    /// the position is saved about once per second.
    fn resume(&mut self) -> Result<Deliveries<Folder>, RunError> {
        let position = self.position_file.position();
        let mut search = self.log.deliveries_from(position)?;
        let mut found = false;
        while !found
            && search.next(self.log.end(), |delivery| found |= self.lines.is_last(&delivery))?
        {
        }
        let mut deliveries = self.log.deliveries_from(position)?;
        if !found {
            if self.lines.has_last() && self.position_file.is_new() && position < self.log.end() {
                let text = format!(
                    "file {}: neither its last record nor a saved position is in the log: {} \
                     bytes of the log are delivered, \
                     some of them perhaps again",
                    self.name,
                    self.log.end() - position
                );
                report(Level::Warning, &text);
            }
            return Ok(deliveries);
        }
        let mut is_after = false;
        while !is_after {
            let lines = &mut self.lines;
            let is_more = deliveries.next(self.log.end(), |delivery| {
                if is_after {
                    lines.push(&delivery);
                }
                is_after |= lines.is_last(&delivery);
            })?;
            if !is_more {
                break;
            }
        }
        Ok(deliveries)
    }

    /// Makes all lines up to a position durable, in a file that has a name. While that is
    /// impossible, attempts are repeated.
    fn confirm(&mut self, position: u64) -> Result<(), RunError> {
        self.write();
        self.lines.sync()?;
        let mut is_reported = false;
        let replaced = loop {
            match self.lines.confirm() {
                Ok(replaced) => break replaced,
                Err(error) => self.report_once(&mut is_reported, &error),
            }
            pause();
        };
        if is_reported {
            self.progress.set_delivery_error(None);
        }
        match replaced {
            Some(Replaced::Removed(bytes)) => {
                let text = format!(
                    "file {} was removed: another one is begun, with the last {bytes} bytes",
                    self.name
                );
                report(Level::Error, &text);
            }
            Some(Replaced::Renamed) => {
                let text = format!("file {} was renamed: another one is begun", self.name);
                report(Level::Notice, &text);
            }
            None => {}
        }
        self.rotate();
        self.confirmed = position;
        if replaced.is_some() {
            // The last lines of the new file do not prove what was delivered.
            self.position_file.save(position);
        }
        Ok(())
    }

    /// Rotates the file, if the configuration says so. A failure is reported once; lines are
    /// written to the large file.
    fn rotate(&mut self) {
        let Some(rotation) = &self.rotation else { return };
        match self.lines.rotate(rotation.size.get(), rotation.keep) {
            Ok(_) => self.is_rotation_reported = false,
            Err(error) => {
                if !std::mem::replace(&mut self.is_rotation_reported, true) {
                    report(Level::Error, &format!("the file is not rotated: {error}"));
                }
            }
        }
    }

    /// Writes all lines. While the disk is full, attempts are repeated.
    fn write(&mut self) {
        let mut is_reported = false;
        while let Err(error) = self.lines.write() {
            self.report_once(&mut is_reported, &error);
            pause();
        }
        if is_reported {
            report(Level::Notice, "the file accepts lines again: delivery continues");
            self.progress.set_delivery_error(None);
        }
    }

    fn report_once(&self, is_reported: &mut bool, error: &SinkError) {
        if !*is_reported {
            report(Level::Error, &format!("delivery is repeated every second: {error}"));
            self.progress.set_delivery_error(Some(&error.to_string()));
            *is_reported = true;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]
fn pause() {
    thread::sleep(time::Duration::from_secs(1));
}
