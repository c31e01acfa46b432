//! Points of a long line, thinned out while they are read.

use std::ops::Range;

use crate::chart::DataPoint;
use crate::chart::decimate::{Extremes, Position};

/// The points of a line: all, or those of each bucket of time that determine its look.
#[derive(Default)]
pub(super) struct ThinnedPoints {
    points: Vec<DataPoint>,
    /// Numbers of the buckets, in order, with their extremes.
    buckets: Vec<(u64, Extremes)>,
}

/// The times of the rows in a part of a table.
pub(super) struct Times {
    all: Vec<f64>,
    /// Whether they never decrease, as those of samples.
    is_ordered: bool,
}

impl Times {
    pub(super) fn new(all: Vec<f64>) -> Self {
        // Without a branch for each time, several of them are compared at once.
        let pairs = all.iter().zip(all.iter().skip(1));
        let is_ordered = pairs.fold(true, |ordered, (a, b)| ordered & (a <= b));
        Self { all, is_ordered }
    }
}

/// The values of a quantity in a part of a table.
pub(super) struct Values {
    all: Vec<f64>,
    /// Whether all of them are known.
    is_complete: bool,
}

impl Values {
    pub(super) fn new(all: Vec<f64>) -> Self {
        let is_complete = all.iter().fold(true, |complete, value| complete & value.is_finite());
        Self { all, is_complete }
    }
}

/// Consecutive points of a line in the same bucket of time.
pub(super) struct Span {
    bucket: u64,
    points: Range<usize>,
}

impl Span {
    /// Divides the points of a line by the buckets of their times. Most points follow in the order
    /// of time, so that a bucket is found once for several points; and once for all quantities.
    pub(super) fn all(rows: &[u32], times: &Times, width: f64) -> Vec<Self> {
        let Times { all: times, is_ordered } = times;
        let mut spans = Vec::new();
        let mut start = 0;
        while let Some(&first) = rows.get(start) {
            let bucket = (times[first as usize] / width) as u64;
            let within = bucket as f64 * width..(bucket + 1) as f64 * width;
            let others = &rows[start + 1..];
            let same = if *is_ordered {
                others.partition_point(|&row| times[row as usize] < within.end)
            } else {
                let is_same = |row: &&u32| within.contains(&times[**row as usize]);
                others.iter().take_while(is_same).count()
            };
            let end = start + 1 + same;
            spans.push(Self { bucket, points: start..end });
            start = end;
        }
        spans
    }
}

impl ThinnedPoints {
    /// Reserves memory for a number of further buckets: a line of a long table has thousands.
    pub(super) fn reserve(&mut self, buckets: usize) {
        self.buckets.reserve(buckets);
    }

    /// Adds the points of some rows; without `spans`, all of them are kept.
    pub(super) fn extend(
        &mut self,
        spans: Option<&[Span]>,
        rows: &[u32],
        times: &Times,
        values: &Values,
    ) {
        let (Times { all: times, .. }, Values { all: values, is_complete }) = (times, values);
        let position = |row: &u32| Position { x: times[*row as usize], y: values[*row as usize] };
        let Some(spans) = spans else {
            self.points.extend(rows.iter().map(position).map(point));
            return;
        };
        for Span { bucket, points } in spans {
            let rows = &rows[points.clone()];
            if *is_complete {
                let first = position(&rows[0]);
                self.add(*bucket, first).extend(&rows[1..], times, values);
                continue;
            }
            for position in rows.iter().map(position) {
                // A value that is not known is a gap, which stays.
                if position.y.is_finite() {
                    self.add(*bucket, position);
                } else {
                    self.points.push(point(position));
                }
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
        let Self { mut points, buckets } = self;
        points.reserve(buckets.len() * Extremes::POINTS_MAX);
        for (_, bucket) in &buckets {
            points.extend(bucket.points().map(point));
        }
        if !points.is_sorted_by(|a, b| a.x.total_cmp(&b.x).is_le()) {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        points
    }
}

const fn point(Position { x, y }: Position) -> DataPoint {
    DataPoint { x, y, ci95: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thinned(times: &[f64], values: &[f64]) -> Vec<DataPoint> {
        let rows: Vec<u32> = (0..times.len() as u32).collect();
        let mut points = ThinnedPoints::default();
        let (times, values) = (Times::new(times.to_vec()), Values::new(values.to_vec()));
        points.extend(Some(&Span::all(&rows, &times, 1.0)), &rows, &times, &values);
        points.finish()
    }

    #[test]
    fn a_bucket_that_is_entered_again_keeps_its_extremes() {
        // Messages are recorded in the order of arrival. (0.25, 6.0) is no extreme.
        let times = [0.1, 1.1, 0.2, 0.25, 1.2, 0.3, 0.4];
        let points = thinned(&times, &[5.0, 1.0, 9.0, 6.0, 2.0, 1.0, 4.0]);
        let kept: Vec<_> = points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(kept, [(0.1, 5.0), (0.2, 9.0), (0.3, 1.0), (0.4, 4.0), (1.1, 1.0), (1.2, 2.0)]);
    }

    #[test]
    fn points_between_gaps_are_those_of_a_bucket_without_gaps() {
        let time = |row: u32| f64::from(row) / 10.0;
        let times: Vec<f64> = (0..100).map(time).collect();
        let values: Vec<f64> = (0..100).map(|row| f64::from(row * 37 % 11)).collect();
        let mut with_gaps = (times.clone(), values.clone());
        for row in [0, 15, 16, 99] {
            with_gaps.0.insert(row, time(row as u32));
            with_gaps.1.insert(row, f64::NAN);
        }
        let mut kept = thinned(&with_gaps.0, &with_gaps.1);
        assert_eq!(kept.iter().filter(|point| point.y.is_nan()).count(), 4);
        kept.retain(|point| !point.y.is_nan());
        assert_eq!(kept, thinned(&times, &values));
    }
}
