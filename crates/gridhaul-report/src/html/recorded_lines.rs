//! The lines of recorded series: their rows by flow, link and other keys.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use gridhaul_scenario::answer::{ColumnData, ColumnKind, Series, SeriesColumn};

use crate::chart::DataPoint;
use crate::chart::decimate::{Extremes, Position};

/// A line of a quantity.
pub(super) struct RecordedLine {
    /// The keys of its rows as text.
    pub(super) keys: Vec<String>,
    pub(super) points: Vec<DataPoint>,
}

/// The lines of several quantities of a table, whose rows are read once: one line for each
/// combination of keys. A quantity that the table lacks has no lines.
pub(super) fn recorded_lines(
    series: &Series,
    quantities: &[&str],
) -> io::Result<Vec<Vec<RecordedLine>>> {
    let columns = &series.columns;
    let column_of = |quantity: &&str| columns.iter().position(|column| column.name == **quantity);
    let values: Vec<Option<usize>> = quantities.iter().map(column_of).collect();
    let keys = (1..columns.len()).filter(|&column| is_key(&columns[column]));
    let selected: Vec<usize> =
        [0].into_iter().chain(values.iter().flatten().copied()).chain(keys).collect();
    let found = values.iter().flatten().count();
    let mut lines = LinesByKey::new(found, bucket(series)?);
    for rows in parts_of(series) {
        let mut columns = series.selected(&selected, rows.clone())?;
        let keys = columns.split_off(1 + found);
        let lines_of_rows: Vec<usize> =
            (0..rows.len()).map(|row| lines.index(&keys, row)).collect();
        let mut columns = columns.into_iter().map(numbers);
        let Some(times) = columns.next() else { break };
        for (quantity, values) in columns.enumerate() {
            for ((&x, y), &line) in times.iter().zip(values).zip(&lines_of_rows) {
                lines.lines[line].points[quantity].push(DataPoint { x, y, ci95: None });
            }
        }
    }
    let mut found = lines.finish().into_iter();
    Ok(values.iter().map(|column| column.and_then(|_| found.next()).unwrap_or_default()).collect())
}

/// Lines found by the keys of a row.
struct LinesByKey {
    quantities: usize,
    /// Width of the buckets of time, for a long table.
    bucket: Option<f64>,
    lines: Vec<KeyedLine>,
    index: BTreeMap<Vec<u64>, usize>,
    /// The line of the last row.
    last: usize,
}

/// The rows with the same keys.
struct KeyedLine {
    key: Vec<u64>,
    /// The keys as text.
    words: Vec<String>,
    /// The points of each quantity.
    points: Vec<ThinnedPoints>,
    /// The line of the row that followed the last row of this line.
    next: usize,
}

impl LinesByKey {
    const fn new(quantities: usize, bucket: Option<f64>) -> Self {
        Self { quantities, bucket, lines: Vec::new(), index: BTreeMap::new(), last: 0 }
    }

    /// The index of the line of a row.
    fn index(&mut self, keys: &[ColumnData], row: usize) -> usize {
        // Samples of flows and links are recorded in the same order each time.
        let expected = self.lines.get(self.last).map_or(0, |line| line.next);
        let has_key = |line: &KeyedLine| {
            line.key.iter().zip(keys).all(|(known, data)| *known == code(data, row))
        };
        let is_expected = self.lines.get(expected).is_some_and(has_key);
        self.last = if is_expected { expected } else { self.search(keys, row) };
        self.last
    }

    /// The index of the line of a row, which is added if it is new.
    fn search(&mut self, keys: &[ColumnData], row: usize) -> usize {
        let key: Vec<u64> = keys.iter().map(|data| code(data, row)).collect();
        let line = *self.index.entry(key.clone()).or_insert(self.lines.len());
        if line == self.lines.len() {
            let words = keys.iter().map(|data| word(data, row)).collect();
            let points = (0..self.quantities).map(|_| ThinnedPoints::new(self.bucket)).collect();
            self.lines.push(KeyedLine { key, words, points, next: line });
        }
        self.lines[self.last].next = line;
        line
    }

    /// The lines of each quantity.
    fn finish(self) -> Vec<Vec<RecordedLine>> {
        let mut quantities: Vec<_> = (0..self.quantities).map(|_| Vec::new()).collect();
        for KeyedLine { words, points, .. } in self.lines {
            for (lines, points) in quantities.iter_mut().zip(points) {
                lines.push(RecordedLine { keys: words.clone(), points: points.finish() });
            }
        }
        quantities
    }
}

/// Rows that are in memory at once.
const ROWS_READ: usize = 1 << 16;

fn parts_of(series: &Series) -> impl Iterator<Item = Range<usize>> {
    let count = series.row_count();
    (0..count).step_by(ROWS_READ).map(move |start| start..count.min(start + ROWS_READ))
}

/// Points of a line with more rows are thinned out while they are read. A chart has less than a
/// thousand columns of pixels.
const POINTS_MAX: usize = 1 << 16;
const BUCKETS: f64 = 8192.0;

/// Width in seconds of the buckets of a long table; `None` for a table that is drawn as it is.
fn bucket(series: &Series) -> io::Result<Option<f64>> {
    if series.row_count() <= POINTS_MAX {
        return Ok(None);
    }
    let mut end = 0.0_f64;
    for rows in parts_of(series) {
        let ColumnData::Real(times) = series.values(0, rows)? else { return Ok(None) };
        end = times.into_iter().fold(end, f64::max);
    }
    Ok(Some(end / BUCKETS))
}

/// The points of a line: all, or those of each bucket of time that determine its look.
struct ThinnedPoints {
    bucket: Option<f64>,
    points: Vec<DataPoint>,
    /// Numbers of the buckets, in order, with their extremes.
    buckets: Vec<(u64, Extremes)>,
    /// Index of the bucket of the last point: most points follow in the order of time.
    current: usize,
}

impl ThinnedPoints {
    const fn new(bucket: Option<f64>) -> Self {
        Self { bucket, points: Vec::new(), buckets: Vec::new(), current: 0 }
    }

    fn push(&mut self, point: DataPoint) {
        // A value that is not known is a gap, which stays.
        let Some(bucket) = self.bucket.filter(|_| point.y.is_finite()) else {
            return self.points.push(point);
        };
        let number = (point.x / bucket) as u64;
        let point = Position { x: point.x, y: point.y };
        match self.buckets.get_mut(self.current) {
            Some((current, extremes)) if *current == number => extremes.add(point),
            _ => self.open(number, point),
        }
    }

    /// Adds a point to a bucket that is not the current one.
    fn open(&mut self, number: u64, point: Position) {
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
        self.current = found.unwrap_or_else(|at| at);
    }

    /// The points in the order of time: messages are recorded in the order of arrival, with the
    /// time of their submission.
    fn finish(self) -> Vec<DataPoint> {
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

/// Whether a column identifies rows: text, and these numbers.
pub(super) fn is_key(column: &SeriesColumn) -> bool {
    matches!(column.kind, ColumnKind::Text(_))
        || matches!(column.name.as_str(), "point" | "replication" | "run")
}

/// The values of a column as numbers.
fn numbers(data: ColumnData) -> Vec<f64> {
    match data {
        ColumnData::Real(rows) => rows,
        ColumnData::Whole(rows) => rows.into_iter().map(|value| value as f64).collect(),
        ColumnData::Text { rows, .. } => vec![f64::NAN; rows.len()],
    }
}

fn code(data: &ColumnData, row: usize) -> u64 {
    match data {
        ColumnData::Real(rows) => rows[row].to_bits(),
        ColumnData::Whole(rows) => rows[row],
        ColumnData::Text { rows, .. } => u64::from(rows[row]),
    }
}

fn word(data: &ColumnData, row: usize) -> String {
    match data {
        ColumnData::Text { words, rows } => words[rows[row] as usize].clone(),
        data => code(data, row).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::answer::Column;

    fn saw(rows: usize) -> Series {
        let real = |name: &str, value: &dyn Fn(usize) -> f64| Column {
            name: name.into(),
            data: ColumnData::Real((0..rows).map(value).collect()),
        };
        let flow = ColumnData::Text { words: vec!["up".into()], rows: vec![0; rows] };
        let columns = vec![
            real("time_s", &|row| row as f64 / 1000.0),
            Column { name: "flow".into(), data: flow },
            real("cwnd_byte", &|row| if row == 77_777 { 1e6 } else { (row % 1000) as f64 }),
        ];
        Series::from_columns("windows", columns)
    }

    #[test]
    fn a_bucket_that_is_entered_again_keeps_its_extremes() {
        let mut points = ThinnedPoints::new(Some(1.0));
        // Messages are recorded in the order of arrival. (0.25, 6.0) is no extreme.
        let recorded =
            [(0.1, 5.0), (1.1, 1.0), (0.2, 9.0), (0.25, 6.0), (1.2, 2.0), (0.3, 1.0), (0.4, 4.0)];
        recorded.into_iter().for_each(|point| points.push(point.into()));
        let kept: Vec<_> = points.finish().into_iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(kept, [(0.1, 5.0), (0.2, 9.0), (0.3, 1.0), (0.4, 4.0), (1.1, 1.0), (1.2, 2.0)]);
    }

    #[test]
    fn a_long_line_keeps_its_extremes_with_few_points() {
        let all = recorded_lines(&saw(1000), &["rtt_s", "cwnd_byte"]).unwrap();
        assert!(all[0].is_empty());
        assert_eq!(all[1][0].points.len(), 1000);
        let lines = recorded_lines(&saw(200_000), &["cwnd_byte"]).unwrap();
        let points = &lines[0][0].points;
        assert!(points.len() <= 4 * (BUCKETS as usize + 1), "{}", points.len());
        assert!(points.iter().any(|point| point.x == 77.777 && point.y == 1e6));
        assert_eq!((points[0].x, points[points.len() - 1].x), (0.0, 199.999));
        assert!(points.is_sorted_by(|a, b| a.x <= b.x));
    }
}
