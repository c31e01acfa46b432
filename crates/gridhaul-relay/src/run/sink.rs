//! The thread that delivers the records of a head to a file.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time;

use gridhaul_linux::Clock;
use gridhaul_scenario::units::{Duration, Instant};

use super::poll::Waker;
use super::progress::Progress;
use super::{Level, RunError, report};
use crate::head::{Deliveries, Delivery, JsonLines, SinkError};
use crate::log::{Folder, Lost};

/// Longest time between a line and the synchronisation of the file.
const SYNC_INTERVAL: Duration = Duration::from_millis(200);

/// Longest time for which the thread waits for further records.
const IDLE: time::Duration = time::Duration::from_secs(3_600);

/// Bytes of lines after which they are written.
const WRITE_SIZE: usize = 256 * 1024;

/// The delivering thread.
#[derive(Debug)]
pub(super) struct Sink {
    limits: Sender<u64>,
    progress: Progress,
}

/// Where the head's log begins.
#[derive(Debug, Clone)]
pub(super) struct LogStart {
    pub storage: Folder,
    pub epoch: u64,
    pub snapshot: Vec<u8>,
    pub start: u64,
    pub end: u64,
}

impl LogStart {
    /// Deliveries from a position on. Records before it restore the state of the meters.
    pub(super) fn deliveries_from(&self, position: u64) -> Result<Deliveries<Folder>, RunError> {
        self.deliveries_after(position, |_| {})
    }

    /// The same; records before the position are passed to `before`.
    pub(super) fn deliveries_after(
        &self,
        position: u64,
        mut before: impl FnMut(&Delivery<'_>),
    ) -> Result<Deliveries<Folder>, RunError> {
        let mut deliveries =
            Deliveries::new(self.storage.clone(), self.epoch, &self.snapshot, self.start);
        if position < self.start {
            // The first segments are missing.
            deliveries.note_lost(Lost { bytes: Some(self.start - position) });
        }
        while deliveries.position() < position && deliveries.next(position, |it| before(&it))? {}
        Ok(deliveries)
    }
}

impl Sink {
    /// Continues after the last line of the file.
    pub(super) fn start(path: &Path, log: LogStart, waker: Arc<Waker>) -> Result<Self, RunError> {
        let lines = JsonLines::open(path)?;
        let (limits, orders) = channel();
        let progress = Progress::new(log.start, waker);
        let sink = Self { limits, progress: progress.clone() };
        thread::spawn(move || {
            let clock = Clock::starts_in(Duration::ZERO);
            let mut worker = Worker { log, lines, progress: progress.clone(), clock };
            progress.end(worker.run(&orders));
        });
        Ok(sink)
    }

    /// Records up to this position of the log are durable.
    pub(super) fn deliver(&self, limit: u64) {
        // If the thread has ended, its failure is reported.
        let _ = self.limits.send(limit);
    }

    pub(super) const fn progress(&self) -> &Progress {
        &self.progress
    }
}

struct Worker {
    log: LogStart,
    lines: JsonLines,
    progress: Progress,
    clock: Clock,
}

impl Worker {
    fn run(&mut self, orders: &Receiver<u64>) -> Result<(), RunError> {
        let mut deliveries = self.resume()?;
        let mut limit = self.log.end;
        // What was written before the restart may not be durable.
        let mut sync_at = Some(self.clock.now() + SYNC_INTERVAL);
        loop {
            while deliveries.next(limit, |delivery| self.lines.push(&delivery))? {
                sync_at = sync_at.or_else(|| Some(self.clock.now() + SYNC_INTERVAL));
                if self.lines.buffered() > WRITE_SIZE {
                    self.write();
                }
            }
            self.write();
            if sync_at.is_some_and(|at| at <= self.clock.now()) {
                self.lines.sync()?;
                sync_at = None;
                self.progress.set_delivered(deliveries.position());
                self.progress.set_saved(deliveries.position());
            }
            let timeout = self.clock.until(sync_at.unwrap_or(Instant::NEVER));
            match orders.recv_timeout(timeout.min(IDLE)) {
                Ok(next) => limit = orders.try_iter().last().unwrap_or(next),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.lines.sync()?;
                    return Ok(());
                }
            }
        }
    }

    /// Deliveries that begin after the last line of the file, or at the start of the log if that line's record is no
    /// longer in the log.
    fn resume(&mut self) -> Result<Deliveries<Folder>, RunError> {
        let open = || {
            let log = &self.log;
            Deliveries::new(log.storage.clone(), log.epoch, &log.snapshot, log.start)
        };
        let mut search = open();
        let mut found = false;
        while !found && search.next(self.log.end, |it| found |= self.lines.is_last(&it))? {}
        let mut deliveries = open();
        if !found {
            return Ok(deliveries);
        }
        let mut is_after = false;
        while !is_after {
            let lines = &mut self.lines;
            let is_more = deliveries.next(self.log.end, |delivery| {
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

    /// Writes all lines. While the disk is full, attempts are repeated.
    fn write(&mut self) {
        let mut is_reported = false;
        while let Err(error) = self.lines.write() {
            self.report_once(&mut is_reported, &error);
            pause();
        }
        if is_reported {
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
