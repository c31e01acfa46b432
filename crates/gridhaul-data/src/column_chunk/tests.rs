use std::sync::Arc;

use gridhaul_scenario::answer::{ColumnData, ColumnKind, SeriesColumn};
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;

use super::encode;
use crate::series::{schema, write_column, write_values};

/// Rows at the ends of groups of eight values, of batches and of pages.
const ROWS: [usize; 8] = [1, 7, 8, 9, 1_025, 20_480, 20_481, 70_000];

/// A value of each row.
type OfRow<T> = fn(usize) -> T;

/// The file of one column, whose parts are row groups, encoded here or by the crate `parquet`.
fn file(parts: &[ColumnData], is_own: bool) -> Vec<u8> {
    let kind = match &parts[0] {
        ColumnData::Real(_) => ColumnKind::Real,
        ColumnData::Whole(_) => ColumnKind::Whole,
        ColumnData::Text { words, .. } => ColumnKind::Text(words.clone()),
    };
    let schema = schema("table", &[SeriesColumn { name: "value".into(), kind }]).unwrap();
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut out = Vec::new();
    let mut writer =
        SerializedFileWriter::new(&mut out, Arc::new(schema), Arc::new(properties)).unwrap();
    let descriptor = writer.schema_descr().column(0);
    for part in parts {
        let mut group = writer.next_row_group().unwrap();
        if is_own {
            assert!(encode(part, &descriptor).unwrap().is_some());
            write_column(&mut group, &descriptor, part.clone()).unwrap();
        } else {
            write_values(&mut group, "value", part.clone()).unwrap();
        }
        group.close().unwrap();
    }
    writer.close().unwrap();
    out
}

fn assert_same_bytes(name: &str, parts: &[ColumnData]) {
    let (own, other) = (file(parts, true), file(parts, false));
    let rows: Vec<usize> = parts.iter().map(ColumnData::len).collect();
    assert!(own == other, "{name} with {rows:?} rows: {} and {} bytes", own.len(), other.len());
}

/// Numbers without order (Knuth's multiplicative hash).
const fn shuffled(row: usize) -> u64 {
    (row as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

#[test]
fn whole_numbers_have_the_bytes_of_the_general_writer() {
    let patterns: [(&str, OfRow<u64>); 8] = [
        ("constant", |_| 0),
        ("largest", |_| u64::MAX),
        ("rising", |row| row as u64),
        ("falling", |row| u64::MAX - row as u64),
        ("twice each", |row| row as u64 / 2),
        ("few", |row| shuffled(row) % 5),
        ("many", |row| shuffled(row) % 3_000),
        ("runs", |row| shuffled(row / 11) % 100),
    ];
    for (name, value) in patterns {
        for rows in ROWS {
            assert_same_bytes(name, &[ColumnData::Whole((0..rows).map(value).collect())]);
        }
    }
}

#[test]
fn real_numbers_have_the_bytes_of_the_general_writer() {
    let special =
        [0.0, -0.0, 1.5, -2.5, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE, f64::NAN];
    let patterns: [(&str, &dyn Fn(usize) -> f64); 8] = [
        ("times", &|row| row as f64 / 100.0),
        ("negative times", &|row| -(row as f64) / 100.0),
        ("null", &|_| f64::NAN),
        ("null at first", &|row| if row < 30_000 { f64::NAN } else { 7.0 }),
        ("null at last", &|row| if row < 30_000 { row as f64 } else { f64::NAN }),
        ("null at times", &|row| if shuffled(row).is_multiple_of(3) { f64::NAN } else { 0.25 }),
        ("special", &|row| special[shuffled(row) as usize % special.len()]),
        ("many", &|row| (shuffled(row) % 9_000) as f64 - 4_500.0),
    ];
    for (name, value) in patterns {
        for rows in ROWS {
            assert_same_bytes(name, &[ColumnData::Real((0..rows).map(value).collect())]);
        }
    }
}

#[test]
fn texts_have_the_bytes_of_the_general_writer() {
    let words = ["forward", "reverse", "", "way (forward)", "forward", "z\u{e4}hler"];
    let words: Vec<String> = words.map(str::to_owned).to_vec();
    let patterns: [(&str, OfRow<usize>); 5] = [
        ("constant", |_| 1),
        ("two", |row| row % 2),
        ("last first", |row| 5 - row % 6),
        ("empty", |_| 2),
        ("all", |row| shuffled(row) as usize % 6),
    ];
    for (name, word) in patterns {
        for rows in ROWS {
            let rows = (0..rows).map(|row| word(row) as u32).collect();
            assert_same_bytes(name, &[ColumnData::Text { words: words.clone(), rows }]);
        }
    }
}

#[test]
fn every_row_group_has_its_own_dictionary() {
    let part = |from: u64| ColumnData::Whole((from..from + 25_000).map(|row| row / 3).collect());
    assert_same_bytes("parts", &[part(100), part(0), part(7)]);
}

#[test]
fn columns_that_need_more_than_a_dictionary_are_left_to_the_general_writer() {
    let columns = [
        // More than a megabyte of distinct values: the encoding changes within the column.
        ColumnData::Whole((0..1 << 17).collect()),
        ColumnData::Text { words: vec!["x".repeat(65)], rows: vec![0] },
        ColumnData::Text { words: Vec::new(), rows: vec![0] },
        ColumnData::Whole(Vec::new()),
    ];
    for column in columns {
        let (name, kind) = match &column {
            ColumnData::Text { .. } => ("text", ColumnKind::Text(Vec::new())),
            _ => ("whole", ColumnKind::Whole),
        };
        let schema = schema("table", &[SeriesColumn { name: name.into(), kind }]).unwrap();
        let schema = parquet::schema::types::SchemaDescriptor::new(Arc::new(schema));
        assert!(encode(&column, &schema.column(0)).unwrap().is_none());
    }
    let largest = ColumnData::Whole((1..1 << 17).collect());
    assert_same_bytes("largest dictionary", &[largest]);
}
