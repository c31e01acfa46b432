//! Columns as arrays of Arrow.

use std::sync::Arc;

use arrow_array::types::UInt32Type;
use arrow_array::{ArrayRef, DictionaryArray, Float64Array, StringArray, UInt32Array, UInt64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use gridhaul_scenario::answer::{ColumnData, ColumnKind};

/// The type of the array of a column.
pub(super) fn data_type(kind: &ColumnKind) -> DataType {
    match kind {
        ColumnKind::Real => DataType::Float64,
        ColumnKind::Whole => DataType::UInt64,
        ColumnKind::Text(_) => {
            DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8))
        }
    }
}

/// The array of a column. NaN stands for a missing value.
pub(super) fn array(data: ColumnData) -> ArrayRef {
    match data {
        ColumnData::Real(values) => {
            let known = known(&values);
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

/// The rows with a value; `None` if all have one.
fn known(values: &[f64]) -> Option<NullBuffer> {
    // Without an early end within a part, so that the processor compares several values at once.
    let is_missing_in = |part: &[f64]| part.iter().fold(false, |any, value| any | value.is_nan());
    let is_known = |row: usize| !values[row].is_nan();
    let missing = values.chunks(PART).any(is_missing_in);
    missing.then(|| NullBuffer::new(BooleanBuffer::collect_bool(values.len(), is_known)))
}

/// Values that are searched at once.
const PART: usize = 256;
