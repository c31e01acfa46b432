//! Charts of recorded time series.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use gridhaul_scenario::Answer;
use gridhaul_scenario::answer::{ColumnData, ColumnKind, Series, SeriesColumn};
use indexmap::IndexSet;

use super::{NamedChart, capital, slug};
use crate::chart::decimate::Extremes;
use crate::chart::{Axis, Chart, DataPoint, LineChart, LineSeries};
use crate::format::column;
use crate::parameter_label::PointLabels;

/// Maximum number of lines in a chart, and of charts for a quantity.
const LINES_MAX: usize = 8;
const CHARTS_MAX: usize = 6;

/// Quantities that share one chart.
const TOGETHER: (&str, &str) = ("cwnd_byte", "ssthresh_byte");

/// A quantity that is omitted because it is the first one in other units.
const REDUNDANT: (&str, &str) = ("queue_packets", "queue_byte");

/// Its rows have times and reasons, and no quantity over time.
const TABLE_WITHOUT_CHART: &str = "losses";

/// The data of a line.
struct Line {
    /// Label of the answer, point of the sweep, quantity, then the keys of the row.
    parts: Vec<String>,
    points: Vec<DataPoint>,
}

/// One chart for each table and quantity; several answers and several points of a sweep share the
/// axes. `names` are the names of the points, if they have any.
pub(super) fn charts(answers: &[(String, &Answer)], names: &[String]) -> Vec<NamedChart> {
    let mut quantities: IndexSet<(&str, &str)> = IndexSet::new();
    for (_, answer) in answers {
        for series in &answer.series {
            let (table, _) = table_and_point(series, answer);
            if table == TABLE_WITHOUT_CHART {
                continue;
            }
            let columns = series.columns.iter().skip(1).filter(|column| !is_key(column));
            quantities.extend(columns.map(|column| (table, column.name.as_str())));
        }
    }
    let all = quantities.clone();
    let follows = |table: &str, quantity: &str, (first, second): (&str, &str)| {
        quantity == second && all.contains(&(table, first))
    };
    quantities.retain(|(table, quantity)| {
        !follows(table, quantity, TOGETHER) && !follows(table, quantity, REDUNDANT)
    });
    let charts = quantities.into_iter().map(|(table, quantity)| {
        let mut lines = lines(answers, names, table, quantity);
        if quantity == TOGETHER.0 {
            lines.extend(self::lines(answers, names, table, TOGETHER.1));
        }
        draw(lines, table, quantity)
    });
    charts.flatten().collect()
}

/// Congestion windows and queues explain most; all time series rank below charts of differences
/// between points.
pub(super) fn rank(chart: &NamedChart) -> f64 {
    let ranks = [("queues-", 0.3), ("windows-cwnd", 0.28), ("delays-", 0.22), ("throughput-", 0.2)];
    let found = ranks.iter().find(|(name, _)| chart.name.starts_with(name));
    found.map_or(0.1, |(_, rank)| *rank)
}

/// One quantity of one flow or direction, with a line for each point of the sweep.
pub(super) fn chart_of(
    answer: &Answer,
    names: &[String],
    title: &str,
    quantity: &str,
    of: &str,
) -> Option<Chart> {
    let has = |series: &&Series| series.columns.iter().any(|column| column.name == quantity);
    let (table, _) = table_and_point(answer.series.iter().find(has)?, answer);
    let mut lines = lines(&[(String::new(), answer)], names, table, quantity);
    lines.retain(|line| line.parts[3..].iter().any(|part| part == of));
    let (heading, unit) = column(quantity);
    let y = Axis::new(heading, unit).including(0.0);
    let mut chart = LineChart::new(title, Axis::new("time", "s"), y);
    chart.series = lines
        .into_iter()
        .map(|Line { parts, points }| LineSeries {
            name: parts[1].clone(),
            points,
            ..LineSeries::default()
        })
        .collect();
    (!chart.series.is_empty()).then(|| chart.into())
}

/// Name of the table, and the index of its point in the sweep.
fn table_and_point<'a>(series: &'a Series, answer: &Answer) -> (&'a str, Option<usize>) {
    let parts = series.name.rsplit_once('-').filter(|_| answer.points.len() > 1);
    let found = parts.and_then(|(table, point)| Some((table, point.parse().ok()?)));
    found.map_or((series.name.as_str(), None), |(table, point)| (table, Some(point)))
}

/// The lines of a quantity that was recorded and is not always zero.
fn lines(answers: &[(String, &Answer)], names: &[String], of: &str, quantity: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for (label, answer) in answers {
        let labels = PointLabels::new(&answer.points);
        for series in &answer.series {
            let (table, point) = table_and_point(series, answer);
            if table != of {
                continue;
            }
            let point =
                point.map(|index| names.get(index).cloned().unwrap_or_else(|| labels.of(index)));
            let label = if answers.len() > 1 { label.as_str() } else { "" };
            let parts = vec![label.to_owned(), point.unwrap_or_default(), column(quantity).0];
            // A read error is reported when the same rows are written to the results folder.
            lines.extend(split(series, quantity, &parts).unwrap_or_default());
        }
    }
    lines.retain(|line| line.points.iter().any(|point| point.y.is_finite() && point.y != 0.0));
    lines
}

/// One chart, or one for each flow or link if there are too many lines.
fn draw(lines: Vec<Line>, table: &str, quantity: &str) -> Vec<NamedChart> {
    if lines.is_empty() {
        return Vec::new();
    }
    let rows: IndexSet<Vec<String>> = lines.iter().map(|line| line.parts[3..].to_vec()).collect();
    if lines.len() <= LINES_MAX || rows.len() < 2 {
        return vec![chart(lines, table, quantity, "")];
    }
    let (mut lines, mut charts) = (lines, Vec::new());
    let more = rows.len().saturating_sub(CHARTS_MAX);
    let note = if more > 0 { format!(" ({more} more without a chart)") } else { String::new() };
    for (index, row) in rows.iter().take(CHARTS_MAX).enumerate() {
        let (own, others) = lines.into_iter().partition(|line| line.parts[3..] == **row);
        let note = if index + 1 == CHARTS_MAX { note.as_str() } else { "" };
        charts.push(chart(own, table, quantity, note));
        lines = others;
    }
    charts
}

fn chart(mut lines: Vec<Line>, table: &str, quantity: &str, note: &str) -> NamedChart {
    let all = lines.len();
    lines.truncate(LINES_MAX);
    let (heading, unit) = column(quantity);
    let mut title = format!("{} over time", capital(&heading));
    // Common parts of the names are in the title, the others in the legend.
    let shared: Vec<bool> = (0..lines[0].parts.len())
        .map(|part| lines.iter().all(|line| line.parts.get(part) == lines[0].parts.get(part)))
        .collect();
    for (part, text) in lines[0].parts.iter().enumerate() {
        if shared[part] && part != 2 && !text.is_empty() {
            title += &format!(", {text}");
        }
    }
    if all > lines.len() {
        title += &format!(" (first {LINES_MAX} of {all} lines)");
    }
    title += note;
    let name = slug(&format!("{table}-{quantity}"));
    let mut chart = LineChart::new(title, Axis::new("time", "s"), Axis::new(heading, unit));
    chart.series = lines
        .into_iter()
        .map(|line| {
            let own = line
                .parts
                .iter()
                .zip(&shared)
                .filter(|(text, shared)| !**shared && !text.is_empty());
            let own: Vec<&str> = own.map(|(text, _)| text.as_str()).collect();
            LineSeries { name: own.join(", "), points: line.points, ..LineSeries::default() }
        })
        .collect();
    NamedChart { name, section: "Over time".to_owned(), chart: chart.into() }
}

/// The lines of a quantity in a table: one for each combination of keys.
fn split(series: &Series, quantity: &str, parts: &[String]) -> io::Result<Vec<Line>> {
    let columns = &series.columns;
    let Some(values) = columns.iter().position(|column| column.name == quantity) else {
        return Ok(Vec::new());
    };
    let keys = (1..columns.len()).filter(|&column| is_key(&columns[column]));
    let selected: Vec<usize> = [0, values].into_iter().chain(keys).collect();
    let bucket = bucket(series)?;
    let mut index: BTreeMap<Vec<u64>, usize> = BTreeMap::new();
    let mut lines: Vec<(Vec<String>, ThinnedPoints)> = Vec::new();
    // Of the current row; reused for all rows.
    let mut key: Vec<u64> = Vec::new();
    for rows in parts_of(series) {
        let columns = series.selected(&selected, rows.clone())?;
        let [times, values, keys @ ..] = &columns[..] else { return Ok(Vec::new()) };
        for row in 0..rows.len() {
            key.clear();
            key.extend(keys.iter().map(|key| code(key, row)));
            let line = index.get(&key).copied().unwrap_or_else(|| {
                let words = keys.iter().map(|key| word(key, row));
                let parts = parts.iter().cloned().chain(words).collect();
                lines.push((parts, ThinnedPoints::new(bucket)));
                index.insert(key.clone(), lines.len() - 1);
                lines.len() - 1
            });
            let (x, y) = (number(times, row), number(values, row));
            lines[line].1.push(DataPoint { x, y, ci95: None });
        }
    }
    let lines = lines.into_iter().map(|(parts, points)| Line { parts, points: points.finish() });
    Ok(lines.collect())
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
    /// The buckets before and after the current one.
    others: BTreeMap<u64, Extremes>,
    /// The bucket of the last point: most points follow in the order of time.
    current: Option<(u64, Extremes)>,
}

impl ThinnedPoints {
    const fn new(bucket: Option<f64>) -> Self {
        Self { bucket, points: Vec::new(), others: BTreeMap::new(), current: None }
    }

    fn push(&mut self, point: DataPoint) {
        // A value that is not known is a gap, which stays.
        let Some(bucket) = self.bucket.filter(|_| point.y.is_finite()) else {
            return self.points.push(point);
        };
        let number = (point.x / bucket) as u64;
        match &mut self.current {
            Some((current, extremes)) if *current == number => extremes.add((point.x, point.y)),
            _ => self.open(number, point),
        }
    }

    /// Adds a point to a bucket that is not the current one.
    fn open(&mut self, number: u64, DataPoint { x, y, .. }: DataPoint) {
        self.others.extend(self.current.take());
        let extremes = match self.others.remove(&number) {
            Some(mut extremes) => {
                extremes.add((x, y));
                extremes
            }
            None => Extremes::new((x, y)),
        };
        self.current = Some((number, extremes));
    }

    /// The points in the order of time: messages are recorded in the order of arrival, with the
    /// time of their submission.
    fn finish(self) -> Vec<DataPoint> {
        let Self { mut points, mut others, current, .. } = self;
        others.extend(current);
        for bucket in others.values() {
            points.extend(bucket.points().map(|(x, y)| DataPoint { x, y, ci95: None }));
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }
}

/// Whether a column identifies rows: text, and these numbers.
fn is_key(column: &SeriesColumn) -> bool {
    matches!(column.kind, ColumnKind::Text(_))
        || matches!(column.name.as_str(), "point" | "replication" | "run")
}

fn number(data: &ColumnData, row: usize) -> f64 {
    match data {
        ColumnData::Real(rows) => rows[row],
        ColumnData::Whole(rows) => rows[row] as f64,
        ColumnData::Text { .. } => f64::NAN,
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
        let all = split(&saw(1000), "cwnd_byte", &[]).unwrap();
        assert_eq!(all[0].points.len(), 1000);
        let lines = split(&saw(200_000), "cwnd_byte", &[]).unwrap();
        let points = &lines[0].points;
        assert!(points.len() <= 4 * (BUCKETS as usize + 1), "{}", points.len());
        assert!(points.iter().any(|point| point.x == 77.777 && point.y == 1e6));
        assert_eq!((points[0].x, points[points.len() - 1].x), (0.0, 199.999));
        assert!(points.is_sorted_by(|a, b| a.x <= b.x));
    }
}
