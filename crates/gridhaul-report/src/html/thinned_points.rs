//! Points of a long line, thinned out while they are read.

use crate::chart::DataPoint;
use crate::chart::decimate::{Extremes, Position};

/// The points of a line: all, or those of each bucket of time that determine its look.
pub(super) struct ThinnedPoints {
    bucket: Option<f64>,
    points: Vec<DataPoint>,
    /// Numbers of the buckets, in order, with their extremes.
    buckets: Vec<(u64, Extremes)>,
}

impl ThinnedPoints {
    pub(super) const fn new(bucket: Option<f64>) -> Self {
        Self { bucket, points: Vec::new(), buckets: Vec::new() }
    }

    /// Adds points in any order.
    pub(super) fn extend(&mut self, mut points: impl Iterator<Item = Position>) {
        let mut next = points.next();
        while let Some(point) = next {
            next = points.next();
            // A value that is not known is a gap, which stays.
            let Some(bucket) = self.bucket.filter(|_| point.y.is_finite()) else {
                self.points.push(DataPoint { x: point.x, y: point.y, ci95: None });
                continue;
            };
            let number = (point.x / bucket) as u64;
            let extremes = self.add(number, point);
            // Most points follow in the order of time.
            let times = number as f64 * bucket..(number + 1) as f64 * bucket;
            while let Some(point) = next
                && times.contains(&point.x)
                && point.y.is_finite()
            {
                extremes.add(point);
                next = points.next();
            }
        }
    }

    /// Adds a point to the bucket with a number.
    fn add(&mut self, number: u64, point: Position) -> &mut Extremes {
        let is_last = self.buckets.last().is_none_or(|(last, _)| *last < number);
        let found = if is_last {
            Err(self.buckets.len())
        } else {
            self.buckets.binary_search_by_key(&number, |(number, _)| *number)
        };
        match found {
            Ok(at) => self.buckets[at].1.add(point),
            Err(at) => self.buckets.insert(at, (number, Extremes::new(point))),
        }
        &mut self.buckets[found.unwrap_or_else(|at| at)].1
    }

    /// The points in the order of time: messages are recorded in the order of arrival, with the
    /// time of their submission.
    pub(super) fn finish(self) -> Vec<DataPoint> {
        let Self { mut points, buckets, .. } = self;
        for (_, bucket) in &buckets {
            points.extend(bucket.points().map(|Position { x, y }| DataPoint { x, y, ci95: None }));
        }
        if !points.is_sorted_by(|a, b| a.x.total_cmp(&b.x).is_le()) {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_that_is_entered_again_keeps_its_extremes() {
        let mut points = ThinnedPoints::new(Some(1.0));
        // Messages are recorded in the order of arrival. (0.25, 6.0) is no extreme.
        let recorded =
            [(0.1, 5.0), (1.1, 1.0), (0.2, 9.0), (0.25, 6.0), (1.2, 2.0), (0.3, 1.0), (0.4, 4.0)];
        points.extend(recorded.into_iter().map(|(x, y)| Position { x, y }));
        let kept: Vec<_> = points.finish().into_iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(kept, [(0.1, 5.0), (0.2, 9.0), (0.3, 1.0), (0.4, 4.0), (1.1, 1.0), (1.2, 2.0)]);
    }
}
