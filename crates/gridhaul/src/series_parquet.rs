//! Series as Parquet files, which every data tool reads.

use std::sync::Arc;

use anyhow::{Context, ensure};
use gridhaul_scenario::answer::{Column, ColumnData, Series};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

/// Rows that are written together; bounds the memory of readers.
const ROWS_PER_GROUP: usize = 1 << 20;

/// The Parquet file of a series. Not-a-number is written as null.
pub(crate) fn encode(series: &Series) -> anyhow::Result<Vec<u8>> {
    let rows = series.columns.first().map_or(0, |column| length(&column.data));
    for column in &series.columns {
        let found = length(&column.data);
        ensure!(
            found == rows,
            "series {}: column {} has {found} rows, not {rows}",
            series.name,
            column.name
        );
    }
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer =
        SerializedFileWriter::new(Vec::new(), Arc::new(schema(series)?), Arc::new(properties))?;
    for start in (0..rows).step_by(ROWS_PER_GROUP) {
        let end = rows.min(start + ROWS_PER_GROUP);
        let mut group = writer.next_row_group()?;
        for column in &series.columns {
            write(&mut group, column, start..end)?;
        }
        group.close()?;
    }
    writer.into_inner().context("cannot write a Parquet file")
}

fn length(data: &ColumnData) -> usize {
    match data {
        ColumnData::Real(values) => values.len(),
        ColumnData::Whole(values) => values.len(),
        ColumnData::Text { rows, .. } => rows.len(),
    }
}

fn schema(series: &Series) -> anyhow::Result<Type> {
    let mut fields = Vec::new();
    for column in &series.columns {
        let (physical, repetition, logical) = match column.data {
            ColumnData::Real(_) => (Physical::DOUBLE, Repetition::OPTIONAL, None),
            ColumnData::Whole(_) => {
                let unsigned = LogicalType::integer(64, false);
                (Physical::INT64, Repetition::REQUIRED, Some(unsigned))
            }
            ColumnData::Text { .. } => {
                (Physical::BYTE_ARRAY, Repetition::REQUIRED, Some(LogicalType::String))
            }
        };
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Type::group_type_builder(&series.name).with_fields(fields).build()?)
}

fn write(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &Column,
    rows: std::ops::Range<usize>,
) -> anyhow::Result<()> {
    let mut writer = group.next_column()?.context("a column without a place in the schema")?;
    match &column.data {
        ColumnData::Real(values) => {
            let values = &values[rows];
            let known: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
            let levels: Vec<i16> = values.iter().map(|value| i16::from(!value.is_nan())).collect();
            writer.typed::<DoubleType>().write_batch(&known, Some(&levels), None)?;
        }
        ColumnData::Whole(values) => {
            let values: Vec<i64> = values[rows].iter().map(|value| value.cast_signed()).collect();
            writer.typed::<Int64Type>().write_batch(&values, None, None)?;
        }
        ColumnData::Text { words, rows: indices } => {
            let words: Vec<ByteArray> = words.iter().map(|word| word.as_str().into()).collect();
            let word = |index: &u32| words.get(*index as usize).cloned();
            let values: Option<Vec<_>> = indices[rows].iter().map(word).collect();
            let values = values.with_context(|| format!("column {}: unknown word", column.name))?;
            writer.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        }
    }
    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn series(rows: usize) -> Series {
        let column = |name: &str, data| Column { name: name.into(), data };
        Series {
            name: "windows".into(),
            columns: vec![
                column("time_s", ColumnData::Real((0..rows).map(|row| row as f64).collect())),
                column("cwnd_byte", ColumnData::Whole(vec![u64::MAX; rows])),
                column("rtt_s", ColumnData::Real(vec![f64::NAN; rows])),
                column(
                    "flow",
                    ColumnData::Text {
                        words: vec!["up".into(), "down".into()],
                        rows: (0..rows).map(|row| (row % 2) as u32).collect(),
                    },
                ),
            ],
        }
    }

    #[test]
    fn a_series_reads_back() {
        let bytes = encode(&series(5)).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 5);
        let fields: Vec<_> = rows[3].get_column_iter().map(|(_, field)| field.clone()).collect();
        assert_eq!(fields[0], Field::Double(3.0));
        assert_eq!(fields[1], Field::ULong(u64::MAX));
        assert_eq!(fields[2], Field::Null);
        assert_eq!(fields[3], Field::Str("down".into()));
    }

    #[test]
    fn rows_beyond_one_group_are_not_lost() {
        let bytes = encode(&series(ROWS_PER_GROUP + 3)).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(reader.metadata().num_row_groups(), 2);
        let rows = reader.metadata().file_metadata().num_rows();
        assert_eq!(rows, ROWS_PER_GROUP as i64 + 3);
    }

    #[test]
    fn columns_of_different_length_are_refused() {
        let mut series = series(5);
        series.columns[1].data = ColumnData::Whole(vec![1]);
        assert!(encode(&series).unwrap_err().to_string().contains("cwnd_byte"));
    }
}
