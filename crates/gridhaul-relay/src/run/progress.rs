//! What a thread that delivers the records of a head reports to the thread of the connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::RunError;
use super::poll::Waker;
use crate::head::Unconfirmed;

/// Shared by both threads.
#[derive(Debug, Clone)]
pub(super) struct Progress(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    delivered: AtomicU64,
    /// Position that a restart finds: later records may be delivered again, and must stay in the log.
    saved: AtomicU64,
    state: Mutex<State>,
    head: Arc<Waker>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the thread has ended.
    end: Option<RunError>,
    /// Why records wait.
    delivery_error: Option<String>,
    /// Data that a TCP server has not confirmed.
    unconfirmed: Unconfirmed,
}

impl Progress {
    /// Records before `position` of the log are delivered. `head` is woken by reports.
    pub(super) fn new(position: u64, head: Arc<Waker>) -> Self {
        let (delivered, saved) = (AtomicU64::new(position), AtomicU64::new(position));
        Self(Arc::new(Shared { delivered, saved, state: Mutex::default(), head }))
    }

    /// Position of the log before which all records are delivered.
    ///
    /// # Errors
    /// The delivering thread has ended.
    pub(super) fn delivered(&self) -> Result<u64, RunError> {
        match self.state().end.take() {
            Some(error) => Err(error),
            None => Ok(self.0.delivered.load(Ordering::Acquire)),
        }
    }

    /// Position of the log before which no record is needed.
    pub(super) fn saved(&self) -> u64 {
        self.0.saved.load(Ordering::Acquire)
    }

    /// Why records wait, for the status.
    pub(super) fn delivery_error(&self) -> Option<String> {
        self.state().delivery_error.clone()
    }

    /// Data that a TCP server has acknowledged, and not confirmed.
    pub(super) fn unconfirmed(&self) -> Unconfirmed {
        self.state().unconfirmed
    }

    pub(super) fn set_unconfirmed(&self, unconfirmed: Unconfirmed) {
        self.state().unconfirmed = unconfirmed;
    }

    pub(super) fn set_delivered(&self, position: u64) {
        if self.0.delivered.swap(position, Ordering::AcqRel) != position {
            self.0.head.wake();
        }
    }

    pub(super) fn set_saved(&self, position: u64) {
        if self.0.saved.swap(position, Ordering::AcqRel) != position {
            self.0.head.wake();
        }
    }

    pub(super) fn set_delivery_error(&self, error: Option<&str>) {
        self.state().delivery_error = error.map(str::to_owned);
    }

    /// The result of the delivering thread.
    pub(super) fn end(&self, result: Result<(), RunError>) {
        if let Err(error) = result {
            self.state().end = Some(error);
            self.0.head.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
