//! Answers as tables: one schema for CSV, JSON, Parquet and data frames.

mod columns;
mod error;
mod lines;
mod metric_cursor;
mod name;

use crate::answer::{Answer, Column, Metric};

pub use error::TableError;
pub use name::{TableInfo, TableName};

/// A table of one or several answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name of the table.
    pub name: TableName,
    /// The columns, of equal length. Real numbers that are not known are NaN.
    pub columns: Vec<Column>,
}

impl Table {
    /// A table of labelled answers. `only` selects metrics; if it is empty, the table has all
    /// metrics that any of its rows has.
    ///
    /// # Errors
    /// A table of replications whose answer has only their means.
    pub fn new(
        name: TableName,
        answers: &[(String, &Answer)],
        only: &[Metric],
    ) -> Result<Self, TableError> {
        let columns = match name {
            TableName::Answers => columns::of_rows(answers, None, only),
            TableName::Flows | TableName::Links => columns::of_rows(answers, name.scope(), only),
            TableName::Parameters => columns::of_parameters(answers),
            TableName::Points => columns::of_points(answers),
            TableName::Replications => columns::of_replications(answers, only)?,
            TableName::Members => columns::of_members(answers, only),
        };
        Ok(Self { name, columns })
    }

    /// Number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::ColumnData;

    /// Two points with two replications of a flow and a link.
    fn answer() -> Answer {
        let point = |delay: &str, seconds: f64| {
            format!(
                r#"{{"parameters": {{"delay": "{delay}"}}, "numbers": {{"delay_s": {seconds}}},
                "flows": [{{"name": "up", "count": 3, "metrics": {{
                    "goodput_bit_per_s": {{"mean": 3.0, "ci95": 1.0, "n": 2}},
                    "rtt_mean_s": {{"mean": 0.5, "ci95": null, "n": 1}}}},
                    "replications": {{"goodput_bit_per_s": [2.0, 4.0],
                        "rtt_mean_s": [null, 0.5]}}}}],
                "links": [{{"name": "wire.forward", "count": 1, "metrics": {{
                    "loss_ratio": {{"mean": 0.1, "ci95": 0.0, "n": 2}}}},
                    "replications": {{"loss_ratio": [0.1, 0.1]}}}}],
                "members": [{{"flow": "up", "replication": 1,
                    "metrics": {{"goodput_bit_per_s": [1.0, null, 3.0]}}}}]}}"#
            )
        };
        let points = [point("1 ms", 0.001), point("2 ms", 0.002)].join(",");
        let text = format!(
            r#"{{"schema": 1, "gridhaul": "1", "backend": "sim", "title": "t",
            "scenario_sha256": "", "seed": 1, "replications": 2, "warnings": [],
            "points": [{points}]}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    fn table(name: TableName, answer: &Answer) -> Table {
        Table::new(name, &[("a".to_owned(), answer)], &[]).unwrap()
    }

    fn names(table: &Table) -> Vec<&str> {
        table.columns.iter().map(|column| column.name.as_str()).collect()
    }

    fn real<'t>(table: &'t Table, name: &str) -> &'t [f64] {
        let column = table.columns.iter().find(|column| column.name == name).expect(name);
        match &column.data {
            ColumnData::Real(values) => values,
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn a_flow_has_a_row_with_text_and_number_of_the_swept_value() {
        let table = table(TableName::Flows, &answer());
        assert_eq!(
            names(&table),
            [
                "answer",
                "backend",
                "point",
                "delay",
                "delay_s",
                "name",
                "count",
                "goodput_bit_per_s",
                "goodput_bit_per_s_ci95",
                "goodput_bit_per_s_n",
                "rtt_mean_s",
                "rtt_mean_s_ci95",
                "rtt_mean_s_n"
            ]
        );
        assert_eq!(real(&table, "delay_s"), [0.001, 0.002]);
        assert_eq!(real(&table, "goodput_bit_per_s"), [3.0, 3.0]);
        assert!(real(&table, "rtt_mean_s_ci95")[0].is_nan());
    }

    #[test]
    fn a_replication_has_a_row_for_each_flow_and_link() {
        let table = table(TableName::Replications, &answer());
        assert_eq!(table.row_count(), 8);
        // Replication 0 of flow and link, replication 1 of both, then the second point.
        let goodput = real(&table, "goodput_bit_per_s");
        assert_eq!((goodput[0], goodput[2]), (2.0, 4.0));
        assert!(goodput[1].is_nan(), "a link has no goodput");
        assert!(real(&table, "rtt_mean_s")[0].is_nan(), "unknown in this replication");
    }

    #[test]
    fn each_replication_of_a_deterministic_point_has_its_mean() {
        let mut answer = answer();
        answer.remove_replications();
        answer.points.iter_mut().for_each(|point| point.deterministic = true);
        let table = table(TableName::Replications, &answer);
        assert_eq!(table.row_count(), 8);
        let goodput = real(&table, "goodput_bit_per_s");
        assert_eq!((goodput[0], goodput[2]), (3.0, 3.0));
    }

    #[test]
    fn means_alone_give_no_table_of_replications() {
        let mut answer = answer();
        answer.remove_replications();
        let answers = [("a".to_owned(), &answer)];
        let error = Table::new(TableName::Replications, &answers, &[]).unwrap_err();
        assert!(error.to_string().contains("record.each_replication"), "{error}");
    }

    #[test]
    fn a_member_has_a_row_in_each_replication() {
        let table = table(TableName::Members, &answer());
        assert_eq!(table.row_count(), 6);
        let goodput = real(&table, "goodput_bit_per_s");
        assert_eq!((goodput[0], goodput[2]), (1.0, 3.0));
        assert!(goodput[1].is_nan());
    }

    #[test]
    fn a_swept_key_has_a_row_with_its_number_and_unit() {
        let table = table(TableName::Parameters, &answer());
        assert_eq!(
            names(&table),
            ["answer", "backend", "point", "key", "value", "label", "number", "unit", "column"]
        );
        assert_eq!(real(&table, "number"), [0.001, 0.002]);
        let texts = |name: &str| {
            let column = table.columns.iter().find(|column| column.name == name).expect(name);
            match &column.data {
                ColumnData::Text { words, rows } => {
                    rows.iter().map(|row| words[*row as usize].clone()).collect::<Vec<_>>()
                }
                other => panic!("{name}: {other:?}"),
            }
        };
        assert_eq!(texts("key"), ["delay", "delay"]);
        assert_eq!(texts("value"), ["1 ms", "2 ms"]);
        assert_eq!(texts("label"), ["", ""]);
        assert_eq!(texts("unit"), ["s", "s"]);
        assert_eq!(texts("column"), ["delay_s", "delay_s"]);
    }

    #[test]
    fn a_point_has_one_row() {
        let table = table(TableName::Points, &answer());
        assert_eq!(table.row_count(), 2);
        assert_eq!(real(&table, "delay_s"), [0.001, 0.002]);
        assert_eq!(names(&table)[5..], ["deterministic", "disturbed_count", "replications_count"]);
    }

    #[test]
    fn every_column_of_a_table_is_documented() {
        let answer = answer();
        for name in TableName::ALL {
            let table = table(name, &answer);
            for column in names(&table) {
                let metric = column.trim_end_matches("_ci95").trim_end_matches("_n");
                let is_known = name.info().columns.iter().any(|info| info.name == column)
                    || metric.parse::<Metric>().is_ok()
                    || column == "delay"
                    || column == "delay_s";
                assert!(is_known, "{}: {column}", name.name());
            }
        }
    }
}
