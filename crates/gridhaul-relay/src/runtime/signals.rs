//! Signals: SIGTERM and SIGINT end the daemon, SIGHUP makes it read its configuration again,
//! SIGUSR2 begins an upgrade.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use gridhaul_linux::Error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR2};
use signal_hook::iterator;

use super::poll::Waker;

/// Requests by signals.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signals(Arc<Flags>);

#[derive(Debug, Default)]
struct Flags {
    stop: AtomicBool,
    reload: AtomicBool,
    upgrade: AtomicBool,
}

impl Signals {
    /// Observes the signals in a thread, which wakes the event loop.
    pub(crate) fn install(waker: Arc<Waker>) -> Result<Self, Error> {
        let signals = Self::default();
        let flags = Arc::clone(&signals.0);
        let mut received = iterator::Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR2])
            .map_err(Error::call("installing signal handlers"))?;
        thread::spawn(move || {
            for signal in received.forever() {
                let flag = match signal {
                    SIGHUP => &flags.reload,
                    SIGUSR2 => &flags.upgrade,
                    _ => &flags.stop,
                };
                flag.store(true, Ordering::Release);
                waker.wake();
            }
        });
        Ok(signals)
    }

    /// Whether the daemon is to stop.
    pub(crate) fn is_stopped(&self) -> bool {
        self.0.stop.load(Ordering::Acquire)
    }

    /// Whether the configuration is to be read again; false until the next signal.
    pub(crate) fn take_reload(&self) -> bool {
        self.0.reload.swap(false, Ordering::AcqRel)
    }

    /// Whether another version of the program is to continue; false until the next signal.
    pub(crate) fn take_upgrade(&self) -> bool {
        self.0.upgrade.swap(false, Ordering::AcqRel)
    }
}
