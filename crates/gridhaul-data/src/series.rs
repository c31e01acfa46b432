//! Recorded series as Parquet files.

use std::borrow::Borrow;
use std::sync::Arc;

use gridhaul_scenario::answer::{Answer, Column, ColumnData, Series, SeriesInfo};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use thiserror::Error;

/// Why a series cannot be written as Parquet.
#[derive(Debug, Error)]
pub enum SeriesError {
    /// A column is longer or shorter than the first.
    #[error("series {series}: column {column} has {found} rows, not {rows}")]
    Length {
        /// Name of the series.
        series: String,
        /// Name of the column.
        column: String,
        /// Number of its rows.
        found: usize,
        /// Number of rows of the first column.
        rows: usize,
    },
    /// A row of a text column has an index outside its list of texts.
    #[error("column {column}: unknown text index")]
    Word {
        /// Name of the column.
        column: String,
    },
    /// The schema of the file has fewer columns than the series.
    #[error("column {column}: not in the schema")]
    Schema {
        /// Name of the column.
        column: String,
    },
    /// The Parquet writer failed.
    #[error("cannot write a Parquet file: {0}")]
    Parquet(#[from] ParquetError),
    /// The metadata cannot be written as JSON.
    #[error("cannot write the metadata of a Parquet file: {0}")]
    Metadata(#[from] serde_json::Error),
}

/// Rows per row group; limits the memory of readers.
const ROWS_PER_GROUP: usize = 1 << 20;

/// The Parquet file of a series of an answer: the columns of the table, `member`, `point` and a column
/// for each swept key, with metadata that identify the run. NaN is written as null.
///
/// # Errors
/// Columns of different lengths, or an invalid text index.
pub fn encode(series: &Series, answer: &Answer) -> Result<Vec<u8>, SeriesError> {
    let rows = series.columns.first().map_or(0, |column| length(&column.data));
    let common = common(series, answer, rows);
    let columns: Vec<&Column> = series.columns.iter().chain(&common).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gridhaul {}", answer.gridhaul))
        .set_key_value_metadata(Some(metadata(series, answer)?))
        .build();
    encode_columns(&series.name, &columns, Arc::new(properties))
}

/// The Parquet file of columns of equal length.
pub(crate) fn encode_columns(
    name: &str,
    columns: &[impl Borrow<Column>],
    properties: Arc<WriterProperties>,
) -> Result<Vec<u8>, SeriesError> {
    let columns: Vec<&Column> = columns.iter().map(Borrow::borrow).collect();
    let rows = columns.first().map_or(0, |column| length(&column.data));
    for column in &columns {
        let found = length(&column.data);
        if found != rows {
            let (series, column) = (name.to_owned(), column.name.clone());
            return Err(SeriesError::Length { series, column, found, rows });
        }
    }
    let schema = Arc::new(schema(name, &columns)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties)?;
    for start in (0..rows).step_by(ROWS_PER_GROUP) {
        let end = rows.min(start + ROWS_PER_GROUP);
        let mut group = writer.next_row_group()?;
        for column in &columns {
            write(&mut group, column, start..end)?;
        }
        group.close()?;
    }
    Ok(writer.into_inner()?)
}

fn length(data: &ColumnData) -> usize {
    match data {
        ColumnData::Real(values) => values.len(),
        ColumnData::Whole(values) => values.len(),
        ColumnData::Text { rows, .. } => rows.len(),
    }
}

/// The columns that every file has in addition to those of its table.
fn common(series: &Series, answer: &Answer, rows: usize) -> Vec<Column> {
    let members = match series.members.len() {
        0 => vec![0; rows],
        _ => series.members.iter().map(|&member| u64::from(member)).collect(),
    };
    let whole = |name: &str, values| Column { name: name.into(), data: ColumnData::Whole(values) };
    let mut columns =
        vec![whole("member", members), whole("point", vec![series.point as u64; rows])];
    let parameters = answer.points.get(series.point).map(|point| &point.parameters);
    for (key, value) in parameters.into_iter().flatten() {
        let data = ColumnData::Text { words: vec![value.clone()], rows: vec![0; rows] };
        columns.push(Column { name: key.clone(), data });
    }
    columns
}

/// Metadata that identify the run and give the units of the columns.
fn metadata(series: &Series, answer: &Answer) -> Result<Vec<KeyValue>, SeriesError> {
    let parameters = answer.points.get(series.point).map(|point| &point.parameters);
    let info = SeriesInfo::ALL.iter().find(|info| {
        let rest = series.name.strip_prefix(info.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let own = info.map_or(&[][..], |info| info.columns);
    let units: serde_json::Map<_, _> = own
        .iter()
        .filter(|column| !column.unit.is_empty())
        .map(|column| (column.name.to_owned(), column.unit.into()))
        .collect();
    let entry = |key: &str, value: String| KeyValue::new(format!("gridhaul.{key}"), value);
    Ok(vec![
        entry("version", answer.gridhaul.clone()),
        entry("series", info.map_or(series.name.as_str(), |info| info.name).to_owned()),
        entry("backend", answer.backend.clone()),
        entry("title", answer.title.clone()),
        entry("scenario_sha256", answer.scenario_sha256.clone()),
        entry("seed", answer.seed.to_string()),
        entry("replication", "0".to_owned()),
        entry("point", series.point.to_string()),
        entry("parameters", serde_json::to_string(&parameters.cloned().unwrap_or_default())?),
        entry("units", serde_json::to_string(&units)?),
    ])
}

fn schema(name: &str, columns: &[&Column]) -> Result<Type, SeriesError> {
    let mut fields = Vec::new();
    for column in columns {
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
    Ok(Type::group_type_builder(name).with_fields(fields).build()?)
}

fn write(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    column: &Column,
    rows: std::ops::Range<usize>,
) -> Result<(), SeriesError> {
    let Some(mut writer) = group.next_column()? else {
        return Err(SeriesError::Schema { column: column.name.clone() });
    };
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
            let unknown = || SeriesError::Word { column: column.name.clone() };
            let values = values.ok_or_else(unknown)?;
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
            name: "windows-1".into(),
            point: 1,
            members: Vec::new(),
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

    const ANSWER: &str = r#"{"schema": 1, "gridhaul": "1.2.3", "backend": "sim", "title": "t",
        "scenario_sha256": "abc", "seed": 7, "replications": 1, "warnings": [], "points": [
            {"parameters": {"a.b": "1 s"}, "flows": [], "links": []},
            {"parameters": {"a.b": "2 s"}, "flows": [], "links": []}]}"#;

    fn encode(series: &Series) -> Result<Vec<u8>, SeriesError> {
        super::encode(series, &serde_json::from_str(ANSWER).unwrap())
    }

    #[test]
    fn metadata_identify_the_run_and_the_point() {
        let members = vec![4, 3, 2, 1, 0];
        let bytes = encode(&Series { members, ..series(5) }).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        let last: Vec<_> =
            row.get_column_iter().skip(4).map(|(n, f)| (n.clone(), f.clone())).collect();
        assert_eq!(
            last,
            [
                ("member".to_owned(), Field::ULong(4)),
                ("point".to_owned(), Field::ULong(1)),
                ("a.b".to_owned(), Field::Str("2 s".into())),
            ]
        );
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let value = |key: &str| {
            let found = metadata.iter().find(|entry| entry.key == format!("gridhaul.{key}"));
            found.and_then(|entry| entry.value.clone()).unwrap_or_default()
        };
        assert_eq!(
            value("version") + " " + &value("seed") + " " + &value("scenario_sha256"),
            "1.2.3 7 abc"
        );
        assert_eq!((value("series"), value("point")), ("windows".to_owned(), "1".to_owned()));
        assert_eq!(value("parameters"), r#"{"a.b":"2 s"}"#);
        assert!(value("units").contains(r#""cwnd_byte":"B""#), "{}", value("units"));
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
