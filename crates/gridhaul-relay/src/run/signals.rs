//! SIGTERM and SIGINT end the daemon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_linux::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::poll::Waker;

/// Whether the daemon is to stop.
#[derive(Debug, Clone, Default)]
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Stops on SIGTERM and SIGINT.
    pub(super) fn on_signals(waker: Arc<Waker>) -> Result<Self, Error> {
        let stop = Self::default();
        let flag = Arc::clone(&stop.0);
        let mut signals =
            Signals::new([SIGTERM, SIGINT]).map_err(Error::call("installing signal handlers"))?;
        thread::spawn(move || {
            for _ in signals.forever() {
                flag.store(true, Ordering::Release);
                waker.wake();
            }
        });
        Ok(stop)
    }

    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
