//! Recorded series for charts: the columns of each flow and each direction of a link, with as many
//! rows as a screen can show.

use std::io;

use gridhaul_scenario::answer::{Answer, ColumnData, Series};
use indexmap::IndexMap;
use serde::Serialize;

/// A series of one flow or one direction of a link.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct SeriesOf {
    /// Name of the table, such as `windows`.
    table: String,
    /// Name of the flow or direction.
    name: String,
    /// Columns by name, of equal length; null for missing values. The first is the time.
    columns: IndexMap<String, Vec<Option<f64>>>,
}

/// Largest number of flows and directions whose series are drawn.
const NAMES_MAX: usize = 32;

/// Largest number of rows of a series.
const ROWS_MAX: usize = 2400;

/// The series of an answer.
pub(crate) fn of(answer: &Answer) -> io::Result<Vec<SeriesOf>> {
    let mut all = Vec::new();
    for series in answer.series.iter().filter(|series| series.point == 0) {
        all.extend(by_name(series)?);
    }
    Ok(all)
}

/// The rows of a series by their text column, which is the second.
fn by_name(series: &Series) -> io::Result<Vec<SeriesOf>> {
    let rows = 0..series.row_count();
    let mut numbers: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut names = (Vec::new(), Vec::new());
    for (index, column) in series.columns.iter().enumerate() {
        match series.values(index, rows.clone())? {
            ColumnData::Real(values) => numbers.push((&column.name, values)),
            ColumnData::Whole(values) => {
                numbers
                    .push((&column.name, values.into_iter().map(|value| value as f64).collect()));
            }
            ColumnData::Text { words, rows } if index == 1 => names = (words, rows),
            ColumnData::Text { .. } => {}
        }
    }
    let (words, name_of_row) = names;
    let mut selected: Vec<Vec<usize>> = vec![Vec::new(); words.len()];
    for (row, name) in name_of_row.iter().enumerate() {
        selected[*name as usize].push(row);
    }
    let largest = numbers.iter().rposition(|(name, _)| *name != "time_s").unwrap_or(0);
    let named = words.into_iter().zip(selected).filter(|(_, rows)| !rows.is_empty());
    let of_name = |(name, rows): (String, Vec<usize>)| {
        let rows = reduced(rows, &numbers[largest].1);
        let column = |(column, values): &(&str, Vec<f64>)| {
            let known = |row: &usize| Some(values[*row]).filter(|value| value.is_finite());
            ((*column).to_owned(), rows.iter().map(known).collect())
        };
        SeriesOf { table: series.name.clone(), name, columns: numbers.iter().map(column).collect() }
    };
    Ok(named.take(NAMES_MAX).map(of_name).collect())
}

/// At most about [`ROWS_MAX`] of the rows: of each group of consecutive ones, the first and that
/// with the largest value, so that a peak is not lost.
fn reduced(rows: Vec<usize>, values: &[f64]) -> Vec<usize> {
    if rows.len() <= ROWS_MAX {
        return rows;
    }
    let mut kept = Vec::new();
    for group in rows.chunks(rows.len().div_ceil(ROWS_MAX / 2)) {
        let first = group[0];
        let peak = group.iter().copied().max_by(|a, b| values[*a].total_cmp(&values[*b]));
        kept.push(first);
        kept.extend(peak.filter(|peak| *peak != first));
    }
    kept
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::answer::Column;

    use super::*;

    fn column(name: &str, data: ColumnData) -> Column {
        Column { name: name.to_owned(), data }
    }

    #[test]
    fn each_name_has_its_own_columns() {
        let words = vec!["up".to_owned(), "down".to_owned()];
        let series = Series::from_columns(
            "windows",
            vec![
                column("time_s", ColumnData::Real(vec![1.0, 1.0, 2.0])),
                column("flow", ColumnData::Text { words, rows: vec![0, 1, 0] }),
                column("cwnd_byte", ColumnData::Real(vec![10.0, 20.0, f64::NAN])),
            ],
        );
        let found = by_name(&series).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((&*found[0].table, &*found[0].name), ("windows", "up"));
        assert_eq!(found[0].columns["time_s"], [Some(1.0), Some(2.0)]);
        assert_eq!(found[0].columns["cwnd_byte"], [Some(10.0), None]);
        assert_eq!(found[1].columns["cwnd_byte"], [Some(20.0)]);
    }

    #[test]
    fn a_long_series_keeps_its_peaks() {
        let mut values = vec![0.0; 1_000_000];
        values[777_777] = 5.0;
        let kept = reduced((0..values.len()).collect(), &values);
        assert!(kept.len() <= ROWS_MAX && kept.contains(&777_777), "{}", kept.len());
        assert!(kept.is_sorted());
    }
}
