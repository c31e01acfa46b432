//! Runs that a later request replaces, or whose page was closed.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whether a run is to end, because a later request of the same page replaces it, or because the
/// page was closed.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Whether the run is to end.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The latest run of each place of a page, such as one of the two variants that it draws.
#[derive(Debug, Default)]
pub(crate) struct LatestRuns(Mutex<VecDeque<(String, Cancellation)>>);

/// Number of places that are kept. The run of a place beyond that is not cancelled, and ends by
/// itself.
const PLACES_MAX: usize = 64;

impl LatestRuns {
    /// Begins a run in a place, and cancels the run that is in progress there.
    pub(crate) fn begin(&self, place: &str, run: &Cancellation) {
        let mut runs = self.lock();
        runs.retain(|(other, earlier)| {
            if other == place {
                earlier.cancel();
            }
            other != place
        });
        if runs.len() >= PLACES_MAX {
            runs.pop_front();
        }
        runs.push_back((place.to_owned(), run.clone()));
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, Cancellation)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_run_cancels_the_one_in_its_place_only() {
        let runs = LatestRuns::default();
        let begin = |place: &str| {
            let run = Cancellation::default();
            runs.begin(place, &run);
            run
        };
        let [first, other, second] = ["a", "b", "a"].map(begin);
        assert!(first.is_cancelled());
        assert!(!second.is_cancelled() && !other.is_cancelled());
    }

    #[test]
    fn the_number_of_places_is_bounded() {
        let runs = LatestRuns::default();
        for place in 0..10 * PLACES_MAX {
            runs.begin(&place.to_string(), &Cancellation::default());
        }
        assert_eq!(runs.lock().len(), PLACES_MAX);
    }
}
