//! Ctrl-C, SIGTERM and SIGHUP: what is being written is removed, and what is finished may be kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use crate::terminal::say;

/// What a program that ends early removes from the disk, of one results folder.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The folder that is being written in the place of the results folder.
    pub(crate) partial: Option<PathBuf>,
    /// The lock of the results folder.
    pub(crate) lock: Option<PathBuf>,
    /// Folders that were made around it, the innermost first. They are removed if they are empty.
    pub(crate) made: Vec<PathBuf>,
}

/// While this lives, the first signal asks the run to end and to keep what is finished.
#[derive(Debug)]
pub(crate) struct Graceful(());

/// Leftovers by results folder. Whoever touches the disk holds this lock, so that the handler finds
/// no half of a step.
static LEFTOVERS: Mutex<BTreeMap<PathBuf, Leftovers>> = Mutex::new(BTreeMap::new());
static GRACEFUL: AtomicBool = AtomicBool::new(false);
static REQUESTED: AtomicBool = AtomicBool::new(false);

/// 128 + SIGINT, as shells expect it.
pub(crate) const EXIT_CODE: u8 = 130;

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
    /// Removes everything. What cannot be removed stays: there is nobody left to tell.
    pub(crate) fn remove(self) {
        if let Some(partial) = self.partial {
            let _ = std::fs::remove_dir_all(partial);
        }
        if let Some(lock) = self.lock {
            let _ = std::fs::remove_file(lock);
        }
        for folder in self.made {
            let _ = std::fs::remove_dir(folder);
        }
    }
}

/// Whether the user has asked the run to end.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

/// What is to be removed. While the guard lives, no signal ends the program.
pub(crate) fn leftovers() -> MutexGuard<'static, BTreeMap<PathBuf, Leftovers>> {
    LEFTOVERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Installs the handler, once.
pub(crate) fn catch_signals() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if let Err(error) = ctrlc::set_handler(on_signal) {
            say(format_args!("warning: Ctrl-C may leave a hidden partial folder: {error}"));
        }
    });
}

fn on_signal() {
    if GRACEFUL.load(Ordering::Relaxed) && !REQUESTED.swap(true, Ordering::Relaxed) {
        say(format_args!(
            "interrupted: ending the run and keeping what is finished; Ctrl-C again ends at once"
        ));
        return;
    }
    for (_, leftovers) in std::mem::take(&mut *leftovers()) {
        leftovers.remove();
    }
    std::process::exit(EXIT_CODE.into());
}
