//! Tables of answers as Parquet files.

use std::io::Write;
use std::sync::Arc;

use gridhaul_scenario::answer::{Column, ColumnData, ColumnKind, SeriesColumn};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use crate::column_values::FileColumn;
use crate::series::{SeriesError, encode_columns, schema};

/// The Parquet file of a table with columns of equal length. NaN is written as null.
///
/// # Errors
/// Columns of different lengths, or an invalid text index.
pub fn encode(name: &str, columns: &[Column]) -> Result<Vec<u8>, SeriesError> {
    encode_columns(name, columns, properties())
}

fn properties() -> Arc<WriterProperties> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gridhaul {}", env!("CARGO_PKG_VERSION")))
        .build();
    Arc::new(properties)
}

/// Writes a table that may exceed the memory, in parts.
pub struct TableWriter<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    columns: Vec<SeriesColumn>,
}

impl<W: Write + Send> TableWriter<W> {
    /// A table with the names and types of the columns of its first part.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn new(out: W, name: &str, columns: &[Column]) -> Result<Self, SeriesError> {
        let kind = |data: &ColumnData| match data {
            ColumnData::Real(_) => ColumnKind::Real,
            ColumnData::Whole(_) => ColumnKind::Whole,
            ColumnData::Text { .. } => ColumnKind::Text(Vec::new()),
        };
        let columns: Vec<SeriesColumn> = columns
            .iter()
            .map(|column| SeriesColumn { name: column.name.clone(), kind: kind(&column.data) })
            .collect();
        let schema = Arc::new(schema(name, &columns)?);
        Ok(Self { writer: SerializedFileWriter::new(out, schema, properties())?, columns })
    }

    /// Appends a part: a row group. NaN is written as null.
    ///
    /// # Errors
    /// Other columns than those of the first part, or a file that cannot be written.
    pub fn write(&mut self, columns: Vec<Column>) -> Result<(), SeriesError> {
        let rows = columns.first().map_or(0, |column| column.data.len());
        let same =
            columns.iter().map(|column| &column.name).eq(self.columns.iter().map(|c| &c.name));
        if let Some(column) = columns.iter().find(|column| !same || column.data.len() != rows) {
            return Err(SeriesError::Schema { column: column.name.clone() });
        }
        if rows == 0 {
            return Ok(());
        }
        let places = FileColumn::all(&self.writer);
        let mut group = self.writer.next_row_group()?;
        for (place, column) in places.iter().zip(columns) {
            place.write(&mut group, column.data, rows)?;
        }
        group.close()?;
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<W, SeriesError> {
        Ok(self.writer.into_inner()?)
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    use super::*;

    fn columns(goodputs: &[f64]) -> Vec<Column> {
        let column = |name: &str, data| Column { name: name.into(), data };
        let rows = vec![0; goodputs.len()];
        vec![
            column("name", ColumnData::Text { words: vec!["up".into()], rows }),
            column("goodput_bit_per_s", ColumnData::Real(goodputs.to_vec())),
        ]
    }

    fn goodputs(bytes: Vec<u8>) -> Vec<Field> {
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        rows.map(|row| row.get_column_iter().nth(1).unwrap().1.clone()).collect()
    }

    #[test]
    fn a_table_reads_back_with_null_for_unknown_values() {
        let bytes = encode("answers", &columns(&[f64::NAN, 2.5])).unwrap();
        assert_eq!(goodputs(bytes), [Field::Null, Field::Double(2.5)]);
    }

    #[test]
    fn parts_are_appended_and_have_equal_columns() {
        let first = columns(&[f64::NAN, 2.5]);
        let mut writer = TableWriter::new(Vec::new(), "answers", &first).unwrap();
        writer.write(first).unwrap();
        writer.write(columns(&[])).unwrap();
        writer.write(columns(&[7.0])).unwrap();
        let mut renamed = columns(&[1.0]);
        renamed[0].name = "other".into();
        assert!(writer.write(renamed).is_err());
        let found = goodputs(writer.finish().unwrap());
        assert_eq!(found, [Field::Null, Field::Double(2.5), Field::Double(7.0)]);
    }
}
