//! Tables as streams of the Arrow C interface.
//!
//! Data frames take them by the PyCapsule interface of Arrow
//! (<https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>) without a copy,
//! batch by batch: a recorded series may exceed the memory.

mod array;
mod source;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyKeyError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use crate::error::panic_text;

pub(crate) use source::TableSource;

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// A table, in memory or in the file of a recording.
#[pyclass(frozen, skip_from_py_object, module = "gridhaul._native")]
#[derive(Debug, Clone)]
pub(crate) struct Table {
    source: Arc<TableSource>,
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
        self.source.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The first `rows` of a column as a list, or all; None for missing values.
    #[pyo3(signature = (name, rows=None))]
    fn column(&self, py: Python<'_>, name: &str, rows: Option<usize>) -> PyResult<Py<PyList>> {
        let Ok(index) = self.source.schema().index_of(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let list = PyList::empty(py);
        let end = self.source.rows().min(rows.unwrap_or(usize::MAX));
        for start in (0..end).step_by(BATCH) {
            let array = self.source.column(index, start..end.min(start + BATCH));
            append(&list, &array.map_err(|error| PyOSError::new_err(error.to_string()))?)?;
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

/// A table whose rows panic with a text, so that the tests of a wheel can check that a panic does
/// not unwind through the functions of C that read a table.
#[pyfunction]
pub(crate) fn panic_in_stream(text: String) -> Table {
    Table::new(TableSource::panicking(text))
}

impl Table {
    pub(crate) fn new(source: TableSource) -> Self {
        Self { source: Arc::new(source) }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (start, end) = (self.next, self.source.rows());
        if start >= end {
            return None;
        }
        self.next = end.min(start + BATCH);
        let batch = || self.source.batch(start..self.next);
        // The caller is a function of C, through which a panic must not unwind.
        let batch = catch_unwind(AssertUnwindSafe(batch));
        Some(batch.unwrap_or_else(|payload| Err(ArrowError::ComputeError(panic_text(&*payload)))))
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.source.schema())
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
