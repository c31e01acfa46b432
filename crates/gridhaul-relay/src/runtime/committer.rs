//! The thread that writes the record log: while one group becomes durable, records of the next one
//! are collected.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::poll::Waker;
use super::{Level, report};
use crate::log::{Durable, Folder, Group, LogError, LogWriter};

/// The writing thread. It ends when this handle is dropped.
#[derive(Debug)]
pub(crate) struct Committer {
    work: Sender<Work>,
    results: Receiver<Result<Durable<u64>, LogError>>,
    /// Segments before this position are not needed any more.
    trim_to: Arc<AtomicU64>,
    append_error: SharedError,
    removal_error: SharedError,
}

/// Why nothing can be appended, or why segments that are not needed any more are still there.
type SharedError = Arc<Mutex<Option<String>>>;

#[derive(Debug)]
enum Work {
    Group(Group),
    Trim,
}

/// The log, and the position from which its segments are needed.
struct Writer {
    log: LogWriter<Folder>,
    trim_to: Arc<AtomicU64>,
    append_error: SharedError,
    removal_error: SharedError,
}

/// Interval in which the log checks that its files are there, and tries to remove segments again.
const CHECK: Duration = Duration::from_secs(10);

/// Interval of attempts while the disk is full.
const RETRY: Duration = Duration::from_secs(1);

impl Committer {
    pub(crate) fn start(log: LogWriter<Folder>, waker: Arc<Waker>) -> Self {
        let trim_to = Arc::new(AtomicU64::new(log.start()));
        let [append_error, removal_error] = [(); 2].map(|()| SharedError::default());
        let mut writer = Writer {
            log,
            trim_to: Arc::clone(&trim_to),
            append_error: Arc::clone(&append_error),
            removal_error: Arc::clone(&removal_error),
        };
        let (work, requested) = channel();
        let (completed, results) = channel();
        thread::spawn(move || {
            loop {
                let done = match requested.recv_timeout(CHECK) {
                    Ok(Work::Group(group)) => writer.write(&group).map(Some),
                    Ok(Work::Trim) => {
                        writer.trim();
                        Ok(None)
                    }
                    Err(RecvTimeoutError::Timeout) => writer.check().map(|()| None),
                    Err(RecvTimeoutError::Disconnected) => return,
                };
                let has_failed = done.is_err();
                if let Some(result) = done.transpose() {
                    let is_received = completed.send(result).is_ok();
                    waker.wake();
                    if has_failed || !is_received {
                        return;
                    }
                }
            }
        });
        Self { work, results, trim_to, append_error, removal_error }
    }

    /// Begins to write a group. The result follows.
    pub(crate) fn write(&self, group: Group) {
        // If the thread has ended, its error is among the results.
        let _ = self.work.send(Work::Group(group));
    }

    /// Removes segments before a position.
    pub(crate) fn trim(&self, position: u64) {
        self.trim_to.store(position, Ordering::Release);
        let _ = self.work.send(Work::Trim);
    }

    /// Why nothing can be appended now, or why segments that are not needed any more could not be
    /// removed.
    pub(crate) fn error(&self) -> Option<String> {
        let append_error = lock(&self.append_error).clone();
        append_error.or_else(|| lock(&self.removal_error).clone())
    }

    /// The end of the log after the group, once it is durable.
    ///
    /// # Errors
    /// The disk has failed. Nothing more is written.
    pub(crate) fn poll(&self) -> Result<Option<Durable<u64>>, LogError> {
        self.results.try_recv().ok().transpose()
    }
}

impl Writer {
    /// Appends a group and makes it durable. While the disk is full, attempts are repeated.
    fn write(&mut self, group: &Group) -> Result<Durable<u64>, LogError> {
        let mut is_reported = false;
        if let Some(snapshot) = &group.snapshot {
            while let Err(error) = self.log.roll(snapshot) {
                self.wait_for_space(error, &mut is_reported)?;
            }
        }
        while let Err(error) = self.log.append(&group.payload) {
            self.wait_for_space(error, &mut is_reported)?;
        }
        if is_reported {
            *lock(&self.append_error) = None;
            report(Level::Notice, "space is free again: reading from peers continues");
        }
        self.log.commit()
    }

    /// Waits until the next attempt, if the disk is full. The log itself may have filled the disk:
    /// segments that were confirmed meanwhile are removed.
    fn wait_for_space(&mut self, error: LogError, is_reported: &mut bool) -> Result<(), LogError> {
        if !error.is_full() {
            return Err(error);
        }
        if !*is_reported {
            let text = format!("reading from peers stops until space is free: {error}");
            report(Level::Error, &text);
            *lock(&self.append_error) = Some(text);
            *is_reported = true;
        }
        pause();
        self.trim();
        self.log.check()
    }

    /// Removes segments that are not needed any more. A failure is reported once, and the attempt
    /// is repeated later.
    fn trim(&mut self) {
        // A delivered segment that stays costs space, but no data: the relay continues.
        let error = match self.log.trim(self.trim_to.load(Ordering::Acquire)) {
            Ok(_) => None,
            Err(error) => {
                let count = self.log.unremoved();
                Some(format!("{error}; {count} segments that were delivered are still on the disk"))
            }
        };
        let before = mem::replace(&mut *lock(&self.removal_error), error.clone());
        match (before, error) {
            (None, Some(error)) => report(Level::Error, &error),
            (Some(_), None) => {
                report(Level::Notice, "record log: delivered segments are removed again");
            }
            _ => {}
        }
    }

    /// The log is idle.
    fn check(&mut self) -> Result<(), LogError> {
        if self.log.unremoved() > 0 {
            self.trim();
        }
        self.log.check()
    }
}

fn lock(error: &SharedError) -> MutexGuard<'_, Option<String>> {
    error.lock().unwrap_or_else(PoisonError::into_inner)
}

#[expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]
fn pause() {
    thread::sleep(RETRY);
}
