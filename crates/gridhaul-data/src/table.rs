//! Tables of answers as Parquet files.

use std::sync::Arc;

use gridhaul_scenario::answer::Column;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;

use crate::series::{SeriesError, encode_columns};

/// The Parquet file of a table with columns of equal length. NaN is written as null.
///
/// # Errors
/// Columns of different lengths, or an invalid text index.
pub fn encode(name: &str, columns: &[Column]) -> Result<Vec<u8>, SeriesError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gridhaul {}", env!("CARGO_PKG_VERSION")))
        .build();
    encode_columns(name, columns, Arc::new(properties))
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::answer::ColumnData;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    #[test]
    fn a_table_reads_back_with_null_for_unknown_values() {
        let column = |name: &str, data| Column { name: name.into(), data };
        let columns = [
            column("name", ColumnData::Text { words: vec!["up".into()], rows: vec![0, 0] }),
            column("goodput_bit_per_s", ColumnData::Real(vec![f64::NAN, 2.5])),
        ];
        let bytes = encode("answers", &columns).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let cell = |row: usize| rows[row].get_column_iter().nth(1).unwrap().1.clone();
        assert_eq!((cell(0), cell(1)), (Field::Null, Field::Double(2.5)));
    }
}
