//! Ctrl-C, SIGTERM and SIGHUP, which request the end of the program.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

static END_REQUESTED: AtomicBool = AtomicBool::new(false);

/// Calls `handle` at each of these signals. To be called once in a program.
///
/// # Errors
/// The handler cannot be installed.
pub fn on_signal(handle: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    ctrlc::set_handler(handle).context("cannot install the handler of Ctrl-C")
}

/// Requests the end of the program. Returns whether it was requested before.
pub fn request_end() -> bool {
    END_REQUESTED.swap(true, Ordering::Relaxed)
}

/// Whether the user has requested the end of the program.
#[must_use]
pub fn end_requested() -> bool {
    END_REQUESTED.load(Ordering::Relaxed)
}
