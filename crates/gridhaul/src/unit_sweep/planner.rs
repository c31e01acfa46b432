//! Assigns the parts of a sweep to threads, some at a time.
//!
//! The threads build their points themselves, so that the first run of a large sweep begins when
//! its point has been built, and not when all points of the first unit have.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::parts::{PartBuilder, Parts, PlannedPart, run_seconds};

/// The parts of a sweep that are not assigned to a thread yet.
#[derive(Debug)]
pub(super) struct Planner<'a> {
    pub(super) parts: Parts<'a>,
    /// Estimated length of a unit.
    pub(super) unit_seconds: f64,
    /// Number of parts that a thread takes at once.
    parts_at_once: u64,
    /// Number of parts that threads have taken.
    taken: AtomicU64,
}

/// Units per thread, so that threads finish at about the same time.
const UNITS_PER_THREAD: f64 = 8.0;

/// Assignments of parts to a thread per unit, for the same reason.
const ASSIGNMENTS_PER_UNIT: f64 = 8.0;

/// Points whose run time is estimated to choose the length of units.
const POINTS_SAMPLED: usize = 50;

impl<'a> Planner<'a> {
    /// # Errors
    /// A point that is not a valid scenario.
    pub(super) fn new(
        parts: Parts<'a>,
        unit_seconds_max: f64,
        threads: usize,
    ) -> anyhow::Result<Self> {
        let points = parts.points;
        let step = points.len().div_ceil(POINTS_SAMPLED).max(1);
        let (mut sampled, mut count) = (0.0, 0.0);
        for index in (0..points.len()).step_by(step) {
            sampled += run_seconds(&points.get(index)?.scenario);
            count += 1.0;
        }
        let per_run = sampled / count;
        let runs = points.len() as f64 * f64::from(parts.rule.replications().min());
        let unit_seconds = per_run * runs / (UNITS_PER_THREAD * threads as f64);
        let unit_seconds = unit_seconds.min(unit_seconds_max);
        // A number beyond the range of an integer becomes the largest one.
        let parts_at_once = (unit_seconds / per_run / ASSIGNMENTS_PER_UNIT) as u64;
        let (parts_at_once, taken) = (parts_at_once.max(1), AtomicU64::new(0));
        Ok(Self { parts, unit_seconds, parts_at_once, taken })
    }

    /// The next parts of the shard; `None` if all are taken.
    pub(super) fn take(&self) -> Option<Range<u64>> {
        let end = self.parts.count();
        let next = self.taken.fetch_add(self.parts_at_once, Ordering::Relaxed);
        (next < end).then(|| next..end.min(next + self.parts_at_once))
    }

    /// The missing parts, in their order.
    ///
    /// # Errors
    /// Those of [`PartBuilder::missing`].
    pub(super) fn missing(
        &self,
    ) -> impl Iterator<Item = anyhow::Result<Option<PlannedPart>>> + use<'a> {
        let mut builder = PartBuilder::new(self.parts);
        (0..self.parts.count()).map(move |index| builder.missing(index))
    }
}
