//! The content of tables: columns in memory, or a recorded series.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use gridhaul_scenario::answer::{Answer, Column, Metric, Series};
use gridhaul_scenario::table::TableName;

use super::BATCH;
use super::array::{array, data_type};

/// The content of a table.
#[derive(Debug)]
pub(crate) struct TableSource {
    schema: SchemaRef,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Memory(RecordBatch),
    Series(SeriesRows),
    /// A row that panics with a text, for the tests of a wheel.
    Panic(String),
}

/// A recorded series, and its columns that have one value.
#[derive(Debug)]
struct SeriesRows {
    series: Series,
    /// The columns after those of the series, in the length of a batch, of which all batches share
    /// the memory. The first is the member, for a series in which all rows are of member 0.
    constants: Vec<ArrayRef>,
}

impl TableSource {
    /// A table of answers. Those of flows and links have all metrics, known or not.
    pub(crate) fn named(name: &str, answers: &[(String, &Answer)]) -> Result<Self, String> {
        let name: TableName = name.parse()?;
        let is_in_scope = |metric: &Metric| name.scope() == Some(metric.info().scope);
        let metrics: Vec<Metric> = Metric::ALL.iter().copied().filter(is_in_scope).collect();
        let table = gridhaul_scenario::table::Table::new(name, answers, &metrics);
        Ok(Self::of_columns(table.map_err(|error| error.to_string())?.columns))
    }

    /// A table of columns in memory.
    pub(crate) fn of_columns(columns: Vec<Column>) -> Self {
        let arrays: Vec<(String, ArrayRef)> =
            columns.into_iter().map(|column| (column.name, array(column.data))).collect();
        let fields: Vec<Field> =
            arrays.iter().map(|(name, array)| field(name, array.data_type().clone())).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        let batch = batch.expect("the columns of a table have the same length");
        Self { schema, rows: Rows::Memory(batch) }
    }

    /// A recorded series with the columns of its Parquet file: after those of the table, the
    /// member, the point, the replication, and the texts and numbers of the swept values.
    pub(crate) fn of_series(answer: &Answer, series: &Series) -> Self {
        let rows = BATCH.min(series.row_count());
        let whole = |number: u64| -> ArrayRef { Arc::new(UInt64Array::from(vec![number; rows])) };
        let mut constants = vec![
            ("member", whole(0)),
            ("point", whole(series.point as u64)),
            ("replication", whole(series.replication.into())),
        ];
        if let Some(point) = answer.points.get(series.point) {
            for (key, text) in &point.parameters {
                let texts = StringArray::from_iter_values(std::iter::repeat_n(text, rows));
                let texts: ArrayRef = Arc::new(texts);
                constants.push((key.as_str(), texts));
            }
            for (name, number) in &point.numbers {
                let numbers: ArrayRef = Arc::new(Float64Array::from(vec![*number; rows]));
                constants.push((name.as_str(), numbers));
            }
        }
        let own = series.columns.iter().map(|column| field(&column.name, data_type(&column.kind)));
        let constant_fields =
            constants.iter().map(|(name, array)| field(name, array.data_type().clone()));
        let schema = Arc::new(Schema::new(own.chain(constant_fields).collect::<Vec<_>>()));
        let constants = constants.into_iter().map(|(_, array)| array).collect();
        Self { schema, rows: Rows::Series(SeriesRows { series: series.clone(), constants }) }
    }

    /// A table whose only row panics with a text.
    pub(crate) fn panicking(text: String) -> Self {
        Self { schema: Arc::new(Schema::empty()), rows: Rows::Panic(text) }
    }

    pub(super) const fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn rows(&self) -> usize {
        match &self.rows {
            Rows::Memory(batch) => batch.num_rows(),
            Rows::Series(SeriesRows { series, .. }) => series.row_count(),
            Rows::Panic(_) => 1,
        }
    }

    /// All columns in at most [`BATCH`] rows.
    pub(super) fn batch(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        match &self.rows {
            Rows::Memory(batch) => Ok(batch.slice(rows.start, rows.len())),
            Rows::Series(series) => {
                RecordBatch::try_new(Arc::clone(&self.schema), series.batch(rows)?)
            }
            Rows::Panic(text) => panic!("{text}"),
        }
    }

    /// A column in at most [`BATCH`] rows.
    pub(super) fn column(&self, index: usize, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        match &self.rows {
            Rows::Memory(batch) => Ok(batch.column(index).slice(rows.start, rows.len())),
            Rows::Series(series) => series.column(index, rows),
            Rows::Panic(text) => panic!("{text}"),
        }
    }
}

impl SeriesRows {
    fn batch(&self, rows: Range<usize>) -> Result<Vec<ArrayRef>, ArrowError> {
        let count = rows.len();
        let read = self.series.batch(rows).map_err(failed)?;
        let members = read.members.map(|members| Arc::new(UInt64Array::from(members)) as ArrayRef);
        let constants = self.constants.iter().map(|array| array.slice(0, count));
        let mut arrays: Vec<ArrayRef> = read.columns.into_iter().map(array).collect();
        let place_of_members = arrays.len();
        arrays.extend(constants);
        if let Some(members) = members {
            arrays[place_of_members] = members;
        }
        Ok(arrays)
    }

    fn column(&self, index: usize, rows: Range<usize>) -> Result<ArrayRef, ArrowError> {
        let count = rows.len();
        Ok(match index.checked_sub(self.series.columns.len()) {
            None => array(self.series.values(index, rows).map_err(failed)?),
            Some(0) => Arc::new(UInt64Array::from(self.series.members(rows).map_err(failed)?)),
            Some(constant) => self.constants[constant].slice(0, count),
        })
    }
}

fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, true)
}

fn failed(error: io::Error) -> ArrowError {
    ArrowError::IoError(error.to_string(), error)
}
