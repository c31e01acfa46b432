//! Tables as streams of the Arrow C interface.
//!
//! Data frames take them by the PyCapsule interface of Arrow
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>) without a copy,
//! batch by batch: a recorded series may exceed the memory.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, RecordBatch, RecordBatchReader, StringArray,
    UInt32Array, UInt64Array,
};
use arrow_buffer::{NullBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use gridhaul_scenario::answer::{Answer, Column, ColumnData, ColumnKind, Metric, Series};
use gridhaul_scenario::table::TableName;
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// A table, in memory or in the file of a recording.
#[pyclass(frozen, skip_from_py_object, module = "gridhaul._native")]
#[derive(Debug, Clone)]
pub(crate) struct Table {
    source: Arc<TableSource>,
}

/// The content of a table.
#[derive(Debug)]
pub(crate) struct TableSource {
    schema: SchemaRef,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Memory(RecordBatch),
    /// A recorded series, and the values of its columns that are the same in each row.
    Series {
        series: Series,
        constants: Vec<Constant>,
    },
}

/// A column with one value.
#[derive(Debug, Clone)]
enum Constant {
    Text(String),
    Whole(u64),
}

/// Reads a table batch by batch.
struct Batches {
    source: Arc<TableSource>,
    next: usize,
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.source.rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.source.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// A column as a list; None for missing values.
    fn column(&self, py: Python<'_>, name: &str) -> PyResult<Py<PyList>> {
        let Ok(index) = self.source.schema.index_of(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let list = PyList::empty(py);
        let batches = Batches { source: Arc::clone(&self.source), next: 0 };
        for batch in batches {
            let batch = batch.map_err(|error| PyOSError::new_err(error.to_string()))?;
            append(&list, batch.column(index))?;
        }
        Ok(list.unbind())
    }

    /// The stream of the Arrow PyCapsule interface. A requested schema is ignored, as the interface
    /// permits: the consumer converts.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = Batches { source: Arc::clone(&self.source), next: 0 };
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

impl Table {
    pub(crate) fn new(source: TableSource) -> Self {
        Self { source: Arc::new(source) }
    }
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
        let fields: Vec<Field> = arrays
            .iter()
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = arrays.into_iter().map(|(_, array)| array).collect();
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
        let batch = batch.expect("the columns of a table have the same length");
        Self { schema, rows: Rows::Memory(batch) }
    }

    /// A recorded series, with the point of the sweep.
    pub(crate) fn of_series(answer: &Answer, series: &Series) -> Self {
        let mut fields: Vec<Field> = series
            .columns
            .iter()
            .map(|column| Field::new(&column.name, data_type(&column.kind), true))
            .collect();
        fields.push(Field::new("member", DataType::UInt64, true));
        let mut constants = Vec::new();
        let mut add = |name: &str, constant: Constant| {
            fields.push(Field::new(name, constant.data_type(), true));
            constants.push(constant);
        };
        add("point", Constant::Whole(series.point as u64));
        if let Some(point) = answer.points.get(series.point) {
            for (key, value) in &point.parameters {
                add(key, Constant::Text(value.clone()));
            }
        }
        let rows = Rows::Series { series: series.clone(), constants };
        Self { schema: Arc::new(Schema::new(fields)), rows }
    }

    fn rows(&self) -> usize {
        match &self.rows {
            Rows::Memory(batch) => batch.num_rows(),
            Rows::Series { series, .. } => series.row_count(),
        }
    }

    fn batch(&self, start: usize, count: usize) -> Result<RecordBatch, ArrowError> {
        let Rows::Series { series, constants } = &self.rows else {
            let Rows::Memory(batch) = &self.rows else { unreachable!("one of two kinds") };
            return Ok(batch.slice(start, count));
        };
        let rows = start..start + count;
        let failed = |error: std::io::Error| ArrowError::IoError(error.to_string(), error);
        let mut arrays = Vec::with_capacity(self.schema.fields().len());
        for column in 0..series.columns.len() {
            arrays.push(array(series.values(column, rows.clone()).map_err(failed)?));
        }
        let members = series.members(rows).map_err(failed)?;
        arrays.push(Arc::new(UInt64Array::from(members)));
        arrays.extend(constants.iter().map(|constant| constant.array(count)));
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, end) = (self.next, self.source.rows());
        if start >= end {
            return None;
        }
        let count = BATCH.min(end - start);
        self.next += count;
        Some(self.source.batch(start, count))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.source.schema)
    }
}

impl Constant {
    const fn data_type(&self) -> DataType {
        match self {
            Self::Text(_) => DataType::Utf8,
            Self::Whole(_) => DataType::UInt64,
        }
    }

    fn array(&self, count: usize) -> ArrayRef {
        match self {
            Self::Text(text) => {
                Arc::new(StringArray::from_iter_values(std::iter::repeat_n(text, count)))
            }
            Self::Whole(number) => Arc::new(UInt64Array::from(vec![*number; count])),
        }
    }
}

fn dictionary() -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
}

fn data_type(kind: &ColumnKind) -> DataType {
    match kind {
        ColumnKind::Real => DataType::Float64,
        ColumnKind::Whole => DataType::UInt64,
        ColumnKind::Text(_) => dictionary(),
    }
}

/// The array of a column. NaN stands for a missing value.
fn array(data: ColumnData) -> ArrayRef {
    match data {
        ColumnData::Real(values) => {
            let missing = values.iter().any(|value| value.is_nan());
            let known =
                missing.then(|| NullBuffer::from_iter(values.iter().map(|value| !value.is_nan())));
            Arc::new(Float64Array::new(ScalarBuffer::from(values), known))
        }
        ColumnData::Whole(values) => Arc::new(UInt64Array::from(values)),
        ColumnData::Text { words, rows } => {
            let (keys, words) = (UInt32Array::from(rows), StringArray::from(words));
            let array = DictionaryArray::<UInt32Type>::try_new(keys, Arc::new(words));
            Arc::new(array.expect("each row is one of the words"))
        }
    }
}

/// Appends the values of an array to a list.
fn append(list: &Bound<'_, PyList>, array: &ArrayRef) -> PyResult<()> {
    let known = |row: usize| array.is_valid(row);
    match array.data_type() {
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            (0..array.len()).try_for_each(|row| list.append(known(row).then(|| values.value(row))))
        }
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>();
            (0..array.len()).try_for_each(|row| list.append(known(row).then(|| values.value(row))))
        }
        DataType::Utf8 => {
            let values = array.as_string::<i32>();
            (0..array.len()).try_for_each(|row| list.append(known(row).then(|| values.value(row))))
        }
        _ => {
            let values = array.as_dictionary::<UInt32Type>();
            let (keys, words) = (values.keys(), values.values().as_string::<i32>());
            (0..array.len()).try_for_each(|row| {
                list.append(known(row).then(|| words.value(keys.value(row) as usize)))
            })
        }
    }
}
