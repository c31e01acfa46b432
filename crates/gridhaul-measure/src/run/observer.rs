//! Progress of the library for its caller.

use std::sync::atomic::AtomicBool;

/// Receives the progress of a measurement, for example to draw a progress bar. All methods are
/// called on the thread of the caller.
pub trait Observer {
    /// Ends the measurement early when it becomes `true`.
    fn stop(&self) -> &AtomicBool;

    /// The messages of a run begin: their number with the warm-up.
    fn on_start(&self, _messages: u64) {}

    /// Number of messages that the schedule has reached.
    fn on_sent(&self, _messages: u64) {}

    /// The messages of a run have ended.
    fn on_end(&self) {}

    /// A part of the work has ended or begins.
    fn on_note(&self, _note: &str) {}

    /// A part of the work has failed, and the others continue.
    fn on_failure(&self, _failure: &str) {}
}

/// Without progress, a flag that ends the measurement early is enough.
impl Observer for AtomicBool {
    fn stop(&self) -> &AtomicBool {
        self
    }
}
