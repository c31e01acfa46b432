//! What watches the work of the library.

use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{NoProgress, Progress};

/// Follows a call of the library, for example to draw a progress bar. [`NoProgress`] follows nothing.
pub trait Observer: Sync {
    /// A part of the work begins, such as the run of one backend. The progress is dropped at its end;
    /// [`Progress::is_interrupted`] ends the work early.
    fn begin(&self, part: &str) -> Box<dyn Progress>;

    /// A backend has answered. `alone` if no other backend answers the scenario.
    fn on_answer(&self, _answer: &Answer, _alone: bool) {}

    /// A part of the work is left out; the note says which and why.
    fn on_note(&self, _note: &str) {}
}

impl Observer for NoProgress {
    fn begin(&self, _part: &str) -> Box<dyn Progress> {
        Box::new(Self)
    }
}
