//! Ctrl-C, SIGTERM and SIGHUP: partial files are removed, and finished results are kept if the run
//! allows it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use gridhaul_cli::{exit_code, say, signal};

/// Files of one results folder to remove if the program ends early.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The temporary folder that becomes the results folder.
    pub(crate) partial: Option<PathBuf>,
    /// The lock of the results folder.
    pub(crate) lock: Option<PathBuf>,
    /// Parent folders that were created, the innermost first. They are removed if they are empty.
    pub(crate) created: Vec<PathBuf>,
}

/// While this value exists, the first signal requests an orderly end of the run that keeps its
/// finished results.
#[derive(Debug)]
pub(crate) struct Graceful(());

/// Leftovers by results folder. Code that changes the disk holds this lock, so that the handler
/// never sees a partial change.
static LEFTOVERS: Mutex<BTreeMap<PathBuf, Leftovers>> = Mutex::new(BTreeMap::new());
static GRACEFUL: AtomicBool = AtomicBool::new(false);

impl Graceful {
    pub(crate) fn begin() -> Self {
        catch_signals();
        GRACEFUL.store(true, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for Graceful {
    fn drop(&mut self) {
        GRACEFUL.store(false, Ordering::Relaxed);
    }
}

impl Leftovers {
    /// Removes everything. Errors are ignored, since the program is ending.
    pub(crate) fn remove(self) {
        if let Some(partial) = self.partial {
            let _ = std::fs::remove_dir_all(partial);
        }
        if let Some(lock) = self.lock {
            let _ = std::fs::remove_file(lock);
        }
        for folder in self.created {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// The leftovers to remove. While the guard exists, no signal ends the program.
pub(crate) fn leftovers() -> MutexGuard<'static, BTreeMap<PathBuf, Leftovers>> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler, once.
pub(crate) fn catch_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = signal::on_signal(on_signal) {
            say(format_args!("warning: Ctrl-C may leave a hidden partial folder: {error:#}"));
        }
    });
}

fn on_signal() {
    if GRACEFUL.load(Ordering::Relaxed) && !signal::request_end() {
        say(format_args!(
            "interrupted: ending with the finished results; press Ctrl-C again to end immediately"
        ));
        return;
    }
    for (_, leftovers) in std::mem::take(&mut *leftovers()) {
        leftovers.remove();
    }
    std::process::exit(exit_code::INTERRUPTED.into());
}
