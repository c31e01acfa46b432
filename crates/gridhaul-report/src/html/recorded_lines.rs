//! The lines of recorded series: their rows by flow, link and other keys.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use gridhaul_scenario::answer::{ColumnData, ColumnKind, Series, SeriesColumn};

use super::thinned_points::{Span, ThinnedPoints, Times, Values};
use crate::chart::DataPoint;

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
    let keys: Vec<usize> = (1..columns.len()).filter(|&key| is_key(&columns[key])).collect();
    let selected: Vec<usize> =
        [0].iter().chain(values.iter().flatten()).chain(&keys).copied().collect();
    let found = values.iter().flatten().count();
    let mut lines = LinesByKey::new(found, bucket(series)?);
    for rows in parts_of(series) {
        let mut columns = series.selected(&selected, rows.clone())?;
        let keys = columns.split_off(1 + found).into_iter().map(codes).collect::<Vec<_>>();
        lines.assign(keys, rows.len());
        let mut columns = columns.into_iter().map(numbers);
        let Some(times) = columns.next().map(Times::new) else { break };
        let values: Vec<Values> = columns.map(Values::new).collect();
        for KeyedLine { points, rows: of_line, .. } in &mut lines.lines {
            let spans = lines.bucket.map(|width| Span::all(of_line, &times, width));
            // The rows of a line are about as many in each part of the table.
            let parts = if rows.start == 0 { series.row_count().div_ceil(ROWS_READ) } else { 0 };
            let buckets = spans.as_ref().map_or(0, |spans| BUCKETS.min(spans.len() * parts));
            for (points, values) in points.iter_mut().zip(&values) {
                points.reserve(buckets);
                points.extend(spans.as_deref(), of_line, &times, values);
            }
        }
    }
    let words = |key: &[u64]| {
        let kinds = keys.iter().map(|&key| &columns[key].kind);
        kinds.zip(key).map(|(kind, code)| word(kind, *code)).collect::<Vec<_>>()
    };
    let mut found = lines.finish(words).into_iter();
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
    /// The keys of the last part of the table, and its rows.
    keys: Vec<Vec<u64>>,
    rows: usize,
}

/// The rows with the same keys.
struct KeyedLine {
    key: Vec<u64>,
    /// The points of each quantity.
    points: Vec<ThinnedPoints>,
    /// Numbers of its rows in the part of the table that is read.
    rows: Vec<u32>,
    /// The line of the row that followed the last row of this line.
    next: usize,
}

impl LinesByKey {
    const fn new(quantities: usize, bucket: Option<f64>) -> Self {
        Self {
            quantities,
            bucket,
            lines: Vec::new(),
            index: BTreeMap::new(),
            last: 0,
            keys: Vec::new(),
            rows: 0,
        }
    }

    /// Assigns the rows of a part of the table to lines.
    fn assign(&mut self, keys: Vec<Vec<u64>>, rows: usize) {
        // Samples of flows and links are recorded in the same order each time.
        if keys == self.keys && rows == self.rows {
            return;
        }
        self.lines.iter_mut().for_each(|line| line.rows.clear());
        for row in 0..rows {
            let expected = self.lines.get(self.last).map_or(0, |line| line.next);
            let has_key = |line: &KeyedLine| line.key.iter().zip(&keys).all(|(a, b)| *a == b[row]);
            let is_expected = self.lines.get(expected).is_some_and(has_key);
            self.last = if is_expected { expected } else { self.search(&keys, row) };
            self.lines[self.last].rows.push(row as u32);
        }
        (self.keys, self.rows) = (keys, rows);
    }

    /// The index of the line of a row, which is added if it is new.
    fn search(&mut self, keys: &[Vec<u64>], row: usize) -> usize {
        let key: Vec<u64> = keys.iter().map(|codes| codes[row]).collect();
        let line = *self.index.entry(key.clone()).or_insert(self.lines.len());
        if line == self.lines.len() {
            let points = (0..self.quantities).map(|_| ThinnedPoints::default()).collect();
            self.lines.push(KeyedLine { key, points, rows: Vec::new(), next: line });
        }
        self.lines[self.last].next = line;
        line
    }

    /// The lines of each quantity; `words` returns keys as text.
    fn finish(self, words: impl Fn(&[u64]) -> Vec<String>) -> Vec<Vec<RecordedLine>> {
        let mut quantities: Vec<_> = (0..self.quantities).map(|_| Vec::new()).collect();
        for KeyedLine { key, points, .. } in self.lines {
            for (lines, points) in quantities.iter_mut().zip(points) {
                lines.push(RecordedLine { keys: words(&key), points: points.finish() });
            }
        }
        quantities
    }
}

/// Rows that are in memory at once: their columns fit into the cache of a processor. The number has
/// many divisors, so that all parts of a table of few flows or links have the same keys.
const ROWS_READ: usize = 5_040;

fn parts_of(series: &Series) -> impl Iterator<Item = Range<usize>> {
    let count = series.row_count();
    (0..count).step_by(ROWS_READ).map(move |start| start..count.min(start + ROWS_READ))
}

/// The lines of a table with more rows are thinned out while they are read: a chart with all its
/// points would take longer than the simulation that recorded them.
const POINTS_MAX: usize = 1 << 13;
/// A chart has less than 500 columns of pixels. A point that is not drawn has a lower and a higher
/// one in its bucket, which is narrower than a quarter of a column.
const BUCKETS: usize = 2048;

/// Width in seconds of the buckets of a long table; `None` for a table that is drawn as it is.
fn bucket(series: &Series) -> io::Result<Option<f64>> {
    let count = series.row_count();
    if count <= POINTS_MAX {
        return Ok(None);
    }
    // The last rows have the largest times; those of messages, which are recorded when they arrive,
    // differ from the largest one by their delays.
    let ColumnData::Real(times) = series.values(0, count - ROWS_READ..count)? else {
        return Ok(None);
    };
    let end = times.into_iter().fold(0.0, f64::max);
    Ok((end > 0.0).then_some(end / BUCKETS as f64))
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

/// The values of a key as numbers that can be compared.
fn codes(data: ColumnData) -> Vec<u64> {
    match data {
        ColumnData::Real(rows) => rows.into_iter().map(f64::to_bits).collect(),
        ColumnData::Whole(rows) => rows,
        ColumnData::Text { rows, .. } => rows.into_iter().map(u64::from).collect(),
    }
}

fn word(kind: &ColumnKind, code: u64) -> String {
    match kind {
        ColumnKind::Text(words) => words[code as usize].clone(),
        ColumnKind::Real | ColumnKind::Whole => code.to_string(),
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
    fn a_long_line_keeps_its_extremes_with_few_points() {
        let all = recorded_lines(&saw(1000), &["rtt_s", "cwnd_byte"]).unwrap();
        assert!(all[0].is_empty());
        assert_eq!(all[1][0].points.len(), 1000);
        let lines = recorded_lines(&saw(200_000), &["cwnd_byte"]).unwrap();
        let points = &lines[0][0].points;
        assert!(points.len() <= 4 * (BUCKETS + 1), "{}", points.len());
        assert!(points.iter().any(|point| point.x == 77.777 && point.y == 1e6));
        assert_eq!((points[0].x, points[points.len() - 1].x), (0.0, 199.999));
        assert!(points.is_sorted_by(|a, b| a.x <= b.x));
    }
}
