//! Reports of the thread that delivers the records of a head to the thread of the connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gridhaul_linux::Clock;
use gridhaul_scenario::units::{Duration, Instant};

use crate::head::Unconfirmed;
use crate::runtime::RunError;
use crate::runtime::poll::Waker;

/// Shared by both threads.
#[derive(Debug, Clone)]
pub(crate) struct DeliveryStatus(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    delivered: AtomicU64,
    /// Position that a restart finds: later records may be delivered again, and must stay in the
    /// log.
    saved: AtomicU64,
    state: Mutex<State>,
    clock: Clock,
    head: Arc<Waker>,
}

#[derive(Debug, Default)]
struct State {
    /// Why the thread has ended.
    end: Option<RunError>,
    /// Why records wait, and since when.
    delivery_error: Option<(String, Instant)>,
    /// Data that a TCP server has not confirmed.
    unconfirmed: Unconfirmed,
}

impl DeliveryStatus {
    /// Records before `position` of the log are delivered. `head` is woken by reports.
    pub(crate) fn new(position: u64, head: Arc<Waker>) -> Self {
        let (delivered, saved) = (AtomicU64::new(position), AtomicU64::new(position));
        let clock = Clock::starts_in(Duration::ZERO);
        Self(Arc::new(Shared { delivered, saved, state: Mutex::default(), clock, head }))
    }

    /// Position of the log before which all records are delivered.
    ///
    /// # Errors
    /// The delivering thread has ended.
    pub(crate) fn delivered(&self) -> Result<u64, RunError> {
        match self.state().end.take() {
            Some(error) => Err(error),
            None => Ok(self.0.delivered.load(Ordering::Acquire)),
        }
    }

    /// Position of the log before which no record is needed.
    pub(crate) fn saved(&self) -> u64 {
        self.0.saved.load(Ordering::Acquire)
    }

    /// Why records wait, for the status.
    pub(crate) fn delivery_error(&self) -> Option<String> {
        self.state().delivery_error.as_ref().map(|error| error.0.clone())
    }

    /// Seconds for which records have waited.
    pub(crate) fn delivery_error_age(&self) -> Option<f64> {
        let since = self.state().delivery_error.as_ref().map(|error| error.1)?;
        Some(self.0.clock.now().since(since).as_secs_f64())
    }

    /// Data that a TCP server has acknowledged, and not confirmed.
    pub(crate) fn unconfirmed(&self) -> Unconfirmed {
        self.state().unconfirmed
    }

    pub(crate) fn set_unconfirmed(&self, unconfirmed: Unconfirmed) {
        self.state().unconfirmed = unconfirmed;
    }

    pub(crate) fn set_delivered(&self, position: u64) {
        if self.0.delivered.swap(position, Ordering::AcqRel) != position {
            self.0.head.wake();
        }
    }

    pub(crate) fn set_saved(&self, position: u64) {
        if self.0.saved.swap(position, Ordering::AcqRel) != position {
            self.0.head.wake();
        }
    }

    pub(crate) fn set_delivery_error(&self, error: Option<&str>) {
        let now = self.0.clock.now();
        let mut state = self.state();
        let since = state.delivery_error.as_ref().map_or(now, |error| error.1);
        state.delivery_error = error.map(|error| (error.to_owned(), since));
    }

    /// The result of the delivering thread.
    pub(crate) fn end(&self, result: Result<(), RunError>) {
        if let Err(error) = result {
            self.state().end = Some(error);
            self.0.head.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
