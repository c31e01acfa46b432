//! The progress of a direction as a function of time.

use gridhaul_scenario::units::Instant;

use crate::Limit;
use crate::connection::{Checkpoint, History};

/// The progress of a direction as a function of time in s.
#[derive(Debug, Clone)]
pub(super) struct Track {
    points: Vec<Point>,
}

/// The state after an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Point {
    pub(super) time_s: f64,
    pub(super) bytes: f64,
    pub(super) retransmissions: u64,
    /// Time of each limit in s, in the order of [`Limit::ALL`].
    pub(super) limits_s: [f64; Limit::ALL.len()],
}

impl Track {
    /// Of a history that has begun.
    pub(super) fn new(history: &History, origin: Instant) -> Option<Self> {
        let point = |checkpoint: &Checkpoint| Point {
            time_s: checkpoint.at.since(origin).as_secs_f64(),
            bytes: checkpoint.bytes as f64,
            retransmissions: checkpoint.retransmissions,
            limits_s: checkpoint.limits.map(|time| time.as_secs_f64()),
        };
        let points: Vec<_> = history.checkpoints().map(point).collect();
        (!points.is_empty()).then_some(Self { points })
    }

    pub(super) fn points(&self) -> &[Point] {
        &self.points
    }

    /// Acknowledged bytes at a time, between two acknowledgements in proportion.
    pub(super) fn bytes_at(&self, time_s: f64) -> f64 {
        let after = self.points.partition_point(|point| point.time_s <= time_s);
        let Some(before) = after.checked_sub(1).map(|index| self.points[index]) else { return 0.0 };
        let Some(next) = self.points.get(after) else { return before.bytes };
        let share = (time_s - before.time_s) / (next.time_s - before.time_s);
        before.bytes + (next.bytes - before.bytes) * share
    }

    /// The last point at or before a time, or the first one.
    pub(super) fn point_at(&self, time_s: f64) -> Point {
        let after = self.points.partition_point(|point| point.time_s <= time_s);
        self.points[after.saturating_sub(1)]
    }

    /// The first point after a time.
    pub(super) fn point_after(&self, time_s: f64) -> Option<Point> {
        let after = self.points.partition_point(|point| point.time_s <= time_s);
        self.points.get(after).copied()
    }
}
