//! Tables of answers as CSV and JSON.

use gridhaul_scenario::answer::{Answer, Column, ColumnData, Metric};
use gridhaul_scenario::table::{Table, TableName};
use serde_json::Value as Json;

use crate::error::Error;

/// Formats labelled answers as CSV: a line for each answer, point, and flow or link direction.
/// `only` selects metrics; if it is empty, all metrics of the answers are written. Each metric has
/// three columns: its mean in the unit of its name, the half width of its 95 % confidence interval
/// (`_ci95`) and its number of replications (`_n`). The cell of an unknown value is empty.
///
/// # Errors
/// An internal error of the CSV writer.
pub fn csv(answers: &[(String, &Answer)], only: &[Metric]) -> Result<String, Error> {
    table_csv(&answers_table(answers, only))
}

/// The table of [`csv()`] as columns, for other formats: point and count are whole numbers, metrics
/// are real numbers, NaN if they are unknown, and everything else is text.
#[must_use]
pub fn columns(answers: &[(String, &Answer)], only: &[Metric]) -> Vec<Column> {
    answers_table(answers, only).columns
}

/// Every answer has this table.
fn answers_table(answers: &[(String, &Answer)], only: &[Metric]) -> Table {
    let name = TableName::Answers;
    Table::new(name, answers, only).unwrap_or(Table { name, columns: Vec::new() })
}

/// Formats a table as CSV (RFC 4180). The cell of an unknown value is empty.
///
/// # Errors
/// An internal error of the CSV writer.
pub fn table_csv(table: &Table) -> Result<String, Error> {
    text(table).map_err(Error::Internal)
}

fn text(table: &Table) -> anyhow::Result<String> {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(table.columns.iter().map(|column| &column.name))?;
    for row in 0..table.row_count() {
        writer.write_record(table.columns.iter().map(|column| cell(&column.data, row)))?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

fn cell(data: &ColumnData, row: usize) -> String {
    match data {
        ColumnData::Real(values) if values[row].is_nan() => String::new(),
        ColumnData::Real(values) => values[row].to_string(),
        ColumnData::Whole(values) => values[row].to_string(),
        ColumnData::Text { words, rows } => words[rows[row] as usize].clone(),
    }
}

/// Formats a table as JSON: a list with an object for each row, on a line of its own. An unknown
/// value is null.
#[must_use]
pub fn table_json(table: &Table) -> String {
    let names: Vec<Json> = table.columns.iter().map(|column| column.name.as_str().into()).collect();
    let row = |row: usize| {
        let cells = names.iter().zip(&table.columns);
        let cells = cells.map(|(name, column)| format!("{name}: {}", value(&column.data, row)));
        format!("  {{{}}}", cells.collect::<Vec<_>>().join(", "))
    };
    let rows: Vec<String> = (0..table.row_count()).map(row).collect();
    format!("[\n{}\n]\n", rows.join(",\n"))
}

/// A value; JSON has no number for NaN, which becomes null.
fn value(data: &ColumnData, row: usize) -> Json {
    match data {
        ColumnData::Real(values) => values[row].into(),
        ColumnData::Whole(values) => values[row].into(),
        ColumnData::Text { words, rows } => words[rows[row] as usize].as_str().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_and_csv_have_the_same_cells() {
        let column = |name: &str, data| Column { name: name.into(), data };
        let words = ["up, \"fast\"".to_owned()].into();
        let columns = vec![
            column("name", ColumnData::Text { words, rows: vec![0, 0] }),
            column("count", ColumnData::Whole(vec![1, u64::MAX])),
            column("delay_s", ColumnData::Real(vec![0.04, f64::NAN])),
        ];
        let table = Table { name: TableName::Flows, columns };
        let csv = table_csv(&table).unwrap();
        assert_eq!(
            csv,
            "name,count,delay_s\n\"up, \"\"fast\"\"\",1,0.04\n\
             \"up, \"\"fast\"\"\",18446744073709551615,\n"
        );
        let json: Json = serde_json::from_str(&table_json(&table)).unwrap();
        assert_eq!(json[1]["count"], u64::MAX);
        assert_eq!((&json[0]["delay_s"], &json[1]["delay_s"]), (&0.04.into(), &Json::Null));
    }
}
