//! Recorded series as Parquet files.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;

use gridhaul_scenario::answer::{
    Answer, Column, ColumnData, ColumnKind, Point, Series, SeriesBatch, SeriesColumn, SeriesInfo,
};
use gridhaul_scenario::units::BaseUnit;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type};
use thiserror::Error;

use crate::column_values::FileColumn;

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
    /// The recorded rows cannot be read.
    #[error("cannot read a recorded series: {0}")]
    Rows(#[from] io::Error),
    /// The metadata cannot be written as JSON.
    #[error("cannot write the metadata of a Parquet file: {0}")]
    Metadata(#[from] serde_json::Error),
}

/// Rows per row group; limits the memory of readers and of the writer.
const ROWS_PER_GROUP: usize = 1 << 17;

/// Writes the Parquet file of a series of an answer: the columns of the table, `member`, `point`,
/// `replication`, and columns with the text and the number of each swept value, with metadata that
/// identify the run. NaN is written as null.
/// One row group is in memory at a time.
///
/// # Errors
/// The rows cannot be read, the file cannot be written, or a text index is invalid.
pub fn write(series: &Series, answer: &Answer, out: impl Write + Send) -> Result<(), SeriesError> {
    let whole = |name: &str| SeriesColumn { name: name.into(), kind: ColumnKind::Whole };
    let point = answer.points.get(series.point);
    let parameters: Vec<(&String, &String)> =
        point.map_or_else(Vec::new, |point| point.parameters.iter().collect());
    let numbers: Vec<(&String, &f64)> =
        point.map_or_else(Vec::new, |point| point.numbers.iter().collect());
    let swept = parameters.iter().map(|(key, value)| SeriesColumn {
        name: (*key).clone(),
        kind: ColumnKind::Text(vec![(*value).clone()]),
    });
    let swept_numbers = numbers
        .iter()
        .map(|(name, _)| SeriesColumn { name: (*name).clone(), kind: ColumnKind::Real });
    let mut columns = series.columns.clone();
    columns.extend([whole("member"), whole("point"), whole("replication")]);
    columns.extend(swept);
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("gridhaul {}", answer.gridhaul))
        .set_key_value_metadata(Some(metadata(series, answer)?));
    let properties = columns.iter().fold(properties, encoding).build();
    // A swept number is equal in all rows: a dictionary, which is the default, is the shortest.
    columns.extend(swept_numbers);
    let batch = |rows: Range<usize>| {
        let SeriesBatch { mut columns, members } = series.batch(rows)?;
        let constant = |value| ColumnData::Whole(vec![value]);
        columns.push(members.map_or_else(|| constant(0), ColumnData::Whole));
        columns.extend([constant(series.point as u64), constant(u64::from(series.replication))]);
        columns.extend(
            parameters.iter().map(|(_, value)| ColumnData::Text {
                words: vec![(*value).clone()],
                rows: vec![0],
            }),
        );
        columns.extend(numbers.iter().map(|(_, number)| ColumnData::Real(vec![**number])));
        Ok(columns)
    };
    let table = Table { name: &series.name, columns: &columns, rows: series.row_count() };
    table.write(batch, Arc::new(properties), out)
}

/// Chooses the encoding of a column of a series by its kind.
///
/// Times and measured values seldom repeat, so that a dictionary of them is slow and large: the
/// bytes of the same significance are stored together, which compresses well. Whole numbers are
/// stored as differences, which are short for samples and without size for constants. Only text
/// columns have a dictionary. The smallest and largest values, by which readers skip parts of a
/// file, are those of times and whole numbers: few readers search for measured values.
fn encoding(properties: WriterPropertiesBuilder, column: &SeriesColumn) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(column.name.as_str());
    let has_statistics = column.kind == ColumnKind::Whole || column.name == "time_s";
    let statistics = if has_statistics { EnabledStatistics::Page } else { EnabledStatistics::None };
    let properties = properties.set_column_statistics_enabled(path.clone(), statistics);
    let encoding = match column.kind {
        ColumnKind::Text(_) => return properties,
        ColumnKind::Real => Encoding::BYTE_STREAM_SPLIT,
        ColumnKind::Whole => Encoding::DELTA_BINARY_PACKED,
    };
    properties
        .set_column_dictionary_enabled(path.clone(), false)
        .set_column_encoding(path, encoding)
}

/// The Parquet file of columns of equal length.
pub(crate) fn encode_columns(
    name: &str,
    columns: &[Column],
    properties: Arc<WriterProperties>,
) -> Result<Vec<u8>, SeriesError> {
    let rows = columns.first().map_or(0, |column| column.data.len());
    for column in columns {
        let found = column.data.len();
        if found != rows {
            let (series, column) = (name.to_owned(), column.name.clone());
            return Err(SeriesError::Length { series, column, found, rows });
        }
    }
    let table = Series::from_columns(name, columns.to_vec());
    let batch = |rows: Range<usize>| Ok(table.batch(rows)?.columns);
    let mut bytes = Vec::new();
    Table { name, columns: &table.columns, rows }.write(batch, properties, &mut bytes)?;
    Ok(bytes)
}

/// Name, columns and number of rows of a table.
struct Table<'a> {
    name: &'a str,
    columns: &'a [SeriesColumn],
    rows: usize,
}

impl Table<'_> {
    /// Writes the rows group by group; `batch` returns some rows of all columns. A column with one
    /// value has it in all of them.
    fn write(
        &self,
        batch: impl Fn(Range<usize>) -> Result<Vec<ColumnData>, SeriesError>,
        properties: Arc<WriterProperties>,
        out: impl Write + Send,
    ) -> Result<(), SeriesError> {
        let schema = Arc::new(schema(self.name, self.columns)?);
        let mut writer = SerializedFileWriter::new(out, schema, properties)?;
        let columns = FileColumn::all(&writer);
        for start in (0..self.rows).step_by(ROWS_PER_GROUP) {
            let end = self.rows.min(start + ROWS_PER_GROUP);
            let mut group = writer.next_row_group()?;
            for (column, values) in columns.iter().zip(batch(start..end)?) {
                column.write(&mut group, values, end - start)?;
            }
            group.close()?;
        }
        writer.into_inner()?;
        Ok(())
    }
}

/// Metadata that identify the run and give the units of the columns.
fn metadata(series: &Series, answer: &Answer) -> Result<Vec<KeyValue>, SeriesError> {
    let parameters = answer.points.get(series.point).map(|point| &point.parameters);
    // In a sweep, the number of the point follows the name of the table: `windows-0`.
    let info = SeriesInfo::ALL.iter().find(|info| {
        let rest = series.name.strip_prefix(info.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    });
    let own = info.map_or(&[][..], |info| info.columns);
    let units: serde_json::Map<_, _> = own
        .iter()
        .filter(|column| !column.unit.is_empty())
        .map(|column| (column.name.to_owned(), column.unit.into()))
        .chain(number_units(answer.points.get(series.point)))
        .collect();
    let entry = |key: &str, value: String| KeyValue::new(format!("gridhaul.{key}"), value);
    Ok(vec![
        entry("version", answer.gridhaul.clone()),
        entry("series", info.map_or(series.name.as_str(), |info| info.name).to_owned()),
        entry("backend", answer.backend.clone()),
        entry("title", answer.title.clone()),
        entry("scenario_sha256", answer.scenario_sha256.clone()),
        entry("seed", answer.seed.to_string()),
        entry("replication", series.replication.to_string()),
        entry("point", series.point.to_string()),
        entry("parameters", serde_json::to_string(&parameters.cloned().unwrap_or_default())?),
        entry("units", serde_json::to_string(&units)?),
    ])
}

/// The units of the numbers of swept values.
fn number_units(point: Option<&Point>) -> impl Iterator<Item = (String, serde_json::Value)> {
    let names = point.into_iter().flat_map(|point| point.numbers.keys());
    names.filter_map(|name| {
        let ends_in = |unit: &BaseUnit| name.ends_with(&format!("_{}", unit.suffix()));
        let unit = BaseUnit::ALL.into_iter().map(|(unit, _)| unit).find(ends_in)?;
        (!unit.symbol().is_empty()).then(|| (name.clone(), unit.symbol().into()))
    })
}

pub(crate) fn schema(name: &str, columns: &[SeriesColumn]) -> Result<Type, SeriesError> {
    let mut fields = Vec::new();
    for column in columns {
        let (physical, repetition, logical) = match column.kind {
            ColumnKind::Real => (Physical::DOUBLE, Repetition::OPTIONAL, None),
            ColumnKind::Whole => {
                let unsigned = LogicalType::integer(64, false);
                (Physical::INT64, Repetition::REQUIRED, Some(unsigned))
            }
            ColumnKind::Text(_) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::answer::Recording;
    use gridhaul_scenario::units::{Duration, Instant};
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn columns(rows: usize) -> Vec<Column> {
        let column = |name: &str, data| Column { name: name.into(), data };
        vec![
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
        ]
    }

    fn series(rows: usize) -> Series {
        let mut series = Series::from_columns("windows-1", columns(rows));
        (series.point, series.replication) = (1, 3);
        series
    }

    const ANSWER: &str = r#"{"schema": 1, "gridhaul": "1.2.3", "backend": "sim", "title": "t",
        "scenario_sha256": "abc", "seed": 7, "replications": 1, "warnings": [], "points": [
            {"parameters": {"a.b": "1 s"}, "numbers": {"a.b_s": 1}, "flows": [], "links": []},
            {"parameters": {"a.b": "2 s"}, "numbers": {"a.b_s": 2}, "flows": [], "links": []}]}"#;

    fn encode(series: &Series) -> Result<Vec<u8>, SeriesError> {
        let mut bytes = Vec::new();
        write(series, &serde_json::from_str(ANSWER).unwrap(), &mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn metadata_identify_the_run_and_the_point() {
        let bytes = encode(&series(5)).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let row = reader.get_row_iter(None).unwrap().next().unwrap().unwrap();
        let last: Vec<_> =
            row.get_column_iter().skip(4).map(|(n, f)| (n.clone(), f.clone())).collect();
        assert_eq!(
            last,
            [
                ("member".to_owned(), Field::ULong(0)),
                ("point".to_owned(), Field::ULong(1)),
                ("replication".to_owned(), Field::ULong(3)),
                ("a.b".to_owned(), Field::Str("2 s".into())),
                ("a.b_s".to_owned(), Field::Double(2.0)),
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
        assert!(value("units").contains(r#""a.b_s":"s""#), "{}", value("units"));
        assert_eq!(value("replication"), "3");
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
    fn only_texts_and_swept_numbers_have_a_dictionary() {
        let bytes = encode(&series(1000)).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let columns = reader.metadata().row_group(0).columns();
        let with_dictionary = columns.iter().filter(|column| {
            column.encodings().any(|encoding| encoding == Encoding::RLE_DICTIONARY)
        });
        let names: Vec<_> = with_dictionary.map(|column| column.column_path().string()).collect();
        assert_eq!(names, ["flow", "a.b", "a.b_s"]);
        // 8 bytes a row without compression; the differences of times and numbers are short.
        let sizes: i64 = columns.iter().map(|column| column.compressed_size()).sum();
        assert!(sizes < 5 * 1000, "{sizes}");
    }

    #[test]
    fn equal_pages_read_back() {
        let rows = 40_000;
        let mut columns = columns(rows);
        // Three flows in turn, but for one row in the middle of a page.
        let order: Vec<u32> =
            (0..rows).map(|row| if row == 30_000 { 1 } else { row % 3 } as u32).collect();
        let words: Vec<String> = ["up", "down", "third"].map(String::from).into();
        columns[3].data = ColumnData::Text { words: words.clone(), rows: order.clone() };
        let mut table = Series::from_columns("windows-1", columns);
        table.point = 1;
        let reader =
            SerializedFileReader::new(bytes::Bytes::from(encode(&table).unwrap())).unwrap();
        let group = reader.get_row_group(0).unwrap();
        assert_eq!(group.metadata().column(3).num_values(), rows as i64);
        // The dictionary, and pages of 4 · 1023 rows: a multiple of the number of flows.
        assert_eq!(group.get_column_page_reader(3).unwrap().count(), 1 + rows.div_ceil(4_092));
        for (row, (found, flow)) in reader.get_row_iter(None).unwrap().zip(order).enumerate() {
            let found = found.unwrap();
            let fields: Vec<_> = found.get_column_iter().map(|(_, field)| field.clone()).collect();
            assert_eq!(fields[0], Field::Double(row as f64));
            assert_eq!(fields[3], Field::Str(words[flow as usize].clone()), "row {row}");
            assert_eq!(fields[4..7], [Field::ULong(0), Field::ULong(1), Field::ULong(0)]);
            assert_eq!(fields[7], Field::Str("2 s".into()));
        }
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
    fn rows_of_members_have_their_number() {
        let mut recording = Recording::new(None);
        for member in [4, 0] {
            let delay = Duration::from_millis(1);
            recording.on_message(Instant::from_nanos(7), 0, member, delay);
        }
        let names = ["up".to_owned()];
        let series = recording.into_series(&names, &[]).unwrap();
        let bytes = encode(&series[0]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        let member = |row: parquet::record::Row| row.get_column_iter().nth(3).unwrap().1.clone();
        let members: Vec<_> = rows.map(member).collect();
        assert_eq!(members, [Field::ULong(4), Field::ULong(0)]);
    }

    #[test]
    fn columns_of_different_length_are_refused() {
        let mut columns = columns(5);
        columns[1].data = ColumnData::Whole(vec![1]);
        let error = encode_columns("answers", &columns, Arc::default()).unwrap_err();
        assert!(error.to_string().contains("cwnd_byte"), "{error}");
    }
}
