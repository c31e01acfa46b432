//! The thread that writes the record log: while one group becomes durable, records of the next one are collected.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use super::poll::Waker;
use super::{Level, report};
use crate::aggregate::Group;
use crate::log::{Folder, LogError, LogWriter};

/// The writing thread. It ends when this handle is dropped.
#[derive(Debug)]
pub(super) struct Committer {
    work: Sender<Work>,
    results: Receiver<Result<u64, LogError>>,
}

#[derive(Debug)]
enum Work {
    Group(Group),
    Trim(u64),
}

/// Interval of attempts while the disk is full.
const RETRY: Duration = Duration::from_secs(1);

impl Committer {
    pub(super) fn start(mut writer: LogWriter<Folder>, waker: Arc<Waker>) -> Self {
        let (work, orders) = channel();
        let (answers, results) = channel();
        thread::spawn(move || {
            for order in orders {
                match order {
                    Work::Group(group) => {
                        let done = write(&mut writer, &group);
                        let has_failed = done.is_err();
                        let is_received = answers.send(done).is_ok();
                        waker.wake();
                        if has_failed || !is_received {
                            return;
                        }
                    }
                    Work::Trim(position) => {
                        if let Err(error) = writer.trim(position) {
                            report(Level::Warning, &error.to_string());
                        }
                    }
                }
            }
        });
        Self { work, results }
    }

    /// Begins to write a group. The result follows.
    pub(super) fn write(&self, group: Group) {
        // If the thread has ended, its error is among the results.
        let _ = self.work.send(Work::Group(group));
    }

    /// Removes segments before a position.
    pub(super) fn trim(&self, position: u64) {
        let _ = self.work.send(Work::Trim(position));
    }

    /// The end of the log after the group, once it is durable.
    ///
    /// # Errors
    /// The disk has failed. Nothing more is written.
    pub(super) fn poll(&self) -> Result<Option<u64>, LogError> {
        self.results.try_recv().ok().transpose()
    }
}

/// Appends a group and makes it durable. While the disk is full, attempts are repeated.
fn write(writer: &mut LogWriter<Folder>, group: &Group) -> Result<u64, LogError> {
    let mut is_reported = false;
    let mut retry = |error: LogError| {
        if !error.is_full() {
            return Err(error);
        }
        if !is_reported {
            report(Level::Error, &format!("{error}; reading from peers stops until space is free"));
            is_reported = true;
        }
        pause();
        Ok(())
    };
    if let Some(snapshot) = &group.snapshot {
        while let Err(error) = writer.roll(snapshot) {
            retry(error)?;
        }
    }
    while let Err(error) = writer.append(&group.payload) {
        retry(error)?;
    }
    writer.commit()
}

#[expect(clippy::disallowed_methods, reason = "the daemon runs in real time")]
fn pause() {
    thread::sleep(RETRY);
}
