//! Progress of the library for its caller.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{NoProgress, Progress};

/// Receives the progress of a call of the library, for example to draw a progress bar.
/// [`NoProgress`] ignores it.
pub trait Observer: Sync {
    /// A part of the work begins, such as the run of one backend. The progress is dropped at its
    /// end; [`Progress::is_interrupted`] ends the work early.
    fn begin(&self, part: &str) -> Box<dyn Progress>;

    /// A backend has finished. `alone` if the scenario runs on no other backend.
    fn on_answer(&self, _answer: &Answer, _alone: bool) {}

    /// A part of the work is skipped; the note names the part and the reason.
    fn on_note(&self, _note: &str) {}

    /// The expected time of work that begins.
    fn on_estimate(&self, _estimate: &str) {}
}

impl Observer for NoProgress {
    fn begin(&self, _part: &str) -> Box<dyn Progress> {
        Box::new(Self)
    }
}
